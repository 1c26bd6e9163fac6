package runtimetest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"haggle/runtime"
	"haggle/runtime/archive"
)

// removeImage lets go of an image of which there are jobs in every state.
func (s *suite) removeImage(t *testing.T) {
	digest := s.importTwice(t)
	of := func(args ...string) runtime.Spec {
		spec := s.spec(t, args...)
		spec.Image, spec.Workdir = digest, runtime.WorkDir
		return spec
	}
	created := of("env", "KEPT")
	s.create(t, created)
	running := s.run(t, of("polite"))
	s.awaitText(t, running, "ready")
	kept := s.run(t, of("write", "a", "kept"))
	wantExit(t, s.await(t, kept), runtime.Exit{})
	for range 2 { // the second time there is none
		if err := s.Runtime.RemoveImage(s.context(t), digest); err != nil {
			t.Fatal(err)
		}
	}
	s.wantGone(t, digest, of("polite"))
	s.create(t, created) // a repetition
	if err := s.Runtime.Start(s.context(t), created.ID); err != nil {
		t.Fatalf("start of a job that was created before: %v", err)
	}
	if out, errs := s.output(t, created.ID); !strings.Contains(out, "KEPT=yes\n") {
		t.Errorf("the job that was created before says %q, %q", out, errs)
	}
	for id, question := range map[string]string{running: "hello", kept: "read /work/a\n"} {
		want := map[string]string{running: "hello", kept: "kept"}[id]
		if got := s.ask(t, id, question); got != want {
			t.Errorf("inside a job that was there before: %q, want %q", got, want)
		}
	}
	heir := of() // which the image's command and environment are for
	heir.From = kept
	s.wantHeir(t, heir)
	if again := s.importTwice(t); again != digest {
		t.Errorf("imported again as %s, not %s", again, digest)
	}
	s.create(t, of("polite"))
	if err := s.Runtime.RemoveImage(s.context(t), digest); err != nil {
		t.Fatal(err)
	}
}

// importTwice imports an image that waits for SIGTERM unless it is told another thing, under two names.
func (s *suite) importTwice(t *testing.T) (digest string) {
	t.Helper()
	var b bytes.Buffer
	if _, err := archive.Write(&b, archive.Image{
		Files: []archive.File{s.Program}, Entrypoint: []string{"/probe"}, Cmd: []string{"polite"}, Env: []string{"KEPT=yes"},
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"haggle.test/going:1", "haggle.test/going:2"} {
		img, err := s.Runtime.Import(s.context(t), name, bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		digest = img.Digest
	}
	return digest
}

// wantHeir makes and starts a job that takes over a disk with the file /work/a, and runs what its image says.
func (s *suite) wantHeir(t *testing.T, heir runtime.Spec) {
	t.Helper()
	s.create(t, heir)
	if got := s.ask(t, heir.ID, "read /work/a\n"); got != "kept" {
		t.Errorf("the job that took the disk over finds %q", got)
	}
	if err := s.Runtime.Start(s.context(t), heir.ID); err != nil {
		t.Fatalf("start of a job that took a disk over: %v", err)
	}
	s.awaitText(t, heir.ID, "ready")
}

// wantGone checks that an image cannot be had, and that what is no image is not either.
func (s *suite) wantGone(t *testing.T, digest string, spec runtime.Spec) {
	t.Helper()
	all, err := s.Runtime.Images(s.context(t))
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(all, func(i runtime.Image) bool { return i.Digest == digest }) {
		t.Errorf("the image is listed still: %+v", all)
	}
	if !slices.ContainsFunc(all, func(i runtime.Image) bool { return i.Digest == s.image.Digest }) {
		t.Errorf("another image went with it: %+v", all)
	}
	if err := s.Runtime.Create(s.context(t), spec); !errors.Is(err, runtime.ErrImageNotFound) {
		t.Errorf("a new job of it: %v", err)
	}
	for _, none := range []string{digestOf("unknown"), "", "sha256:", "sha256:../../jobs", "name==\"a\""} {
		if err := s.Runtime.RemoveImage(s.context(t), none); err != nil {
			t.Errorf("removing %q: %v", none, err)
		}
	}
}
