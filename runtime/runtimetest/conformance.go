package runtimetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"haggle/runtime"
	"haggle/runtime/archive"
)

// Subject is what Conformance examines.
type Subject struct {
	Runtime runtime.Runtime
	// Program is the file /probe of the image: Probe as a program. An engine without files may bring any content. The engine's
	// program for doors is Probe, too, with its command "door".
	Program archive.File
	// Patience bounds one step, as a slow machine needs it. Nothing waits for its end when all goes well.
	Patience time.Duration
	// NoMemoryLimit says that the engine keeps no limit of memory, and says so itself; what examines one is left out.
	NoMemoryLimit bool
}

// suite is a Subject with an image of the program, and the numbering of its jobs.
type suite struct {
	Subject
	image runtime.Image
	jobs  int
}

// Conformance holds an engine to what package runtime promises. It leaves nothing behind in the engine but two
// images.
func Conformance(t *testing.T, subject Subject) {
	subject.Program.Path, subject.Program.Mode = "/probe", 0o755
	s := &suite{Subject: subject}
	t.Run("an image is imported, twice, and listed", s.imports)
	if s.image.Digest == "" {
		t.Fatal("no image, no jobs")
	}
	for name, test := range map[string]func(*testing.T){
		"bytes that are no archive are refused":               s.badArchive,
		"a job that cannot be made is refused with its class": s.refusals,
		"an unknown job is not found":                         s.unknown,
		"a job goes from created to running to stopped":       s.life,
		"a following reader waits for the start":              s.followBeforeStart,
		"the log keeps both streams and gives offsets":        s.logOffsets,
		"a log over its limit is cut":                         s.logLimit,
		"without arguments the image's command runs":          s.imageCommand,
		"simulated cards are named to the job":                s.cards,
		"a polite job ends at SIGTERM":                        s.polite,
		"a stubborn job is killed after the grace":            s.stubborn,
		"a stop that its caller gave up still kills":          s.impatient,
		"a kill ends a job at once":                           s.kill,
		"a created job can be stopped":                        s.stopCreated,
		"memory beyond the limit ends the job as OOM":         s.oom,
		"usage grows, and the total stays after the end":      s.usage,
		"a removed job is gone, a running one too":            s.remove,
		"a sweep removes what is not kept":                    s.sweep,
		"a job is entered before, during and after its run":   s.enterStates,
		"many paths lead into one job":                        s.enterMany,
		"much goes both ways over a path":                     s.enterMuch,
		"a path ends with the job":                            s.enterEnds,
		"a job takes over the disk of a stopped one":          s.from,
		"a disk that cannot be taken over stays":              s.fromRefusals,
		"an image is let go of, and its jobs go on":           s.removeImage,
		"the engine names itself":                             s.probe,
	} {
		t.Run(name, test)
	}
}

func (s *suite) context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
	t.Cleanup(cancel)
	return ctx
}

// spec makes a job that is removed with the test.
func (s *suite) spec(t *testing.T, args ...string) runtime.Spec {
	t.Helper()
	s.jobs++
	id := fmt.Sprintf("conformance-%d", s.jobs)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
		defer cancel()
		if err := s.Runtime.Remove(ctx, id); err != nil {
			t.Errorf("remove %s: %v", id, err)
		}
	})
	return runtime.Spec{ID: id, Image: s.image.Digest, Args: args, Labels: map[string]string{"lease": "l-" + id}}
}

func (s *suite) create(t *testing.T, spec runtime.Spec) string {
	t.Helper()
	if err := s.Runtime.Create(s.context(t), spec); err != nil {
		t.Fatalf("create: %v", err)
	}
	return spec.ID
}

func (s *suite) start(t *testing.T, args ...string) string {
	t.Helper()
	return s.run(t, s.spec(t, args...))
}

func (s *suite) run(t *testing.T, spec runtime.Spec) string {
	t.Helper()
	id := s.create(t, spec)
	if err := s.Runtime.Start(s.context(t), id); err != nil {
		t.Fatalf("start: %v", err)
	}
	return id
}

// output follows the log to its end and returns both streams.
func (s *suite) output(t *testing.T, id string) (string, string) {
	t.Helper()
	r, err := s.Runtime.Log(s.context(t), id, 0, true)
	if err != nil {
		t.Fatalf("log: %v", err)
	}
	defer r.Close()
	var out, errs bytes.Buffer
	if _, ended, err := runtime.Demux(r, &out, &errs); err != nil || !ended {
		t.Errorf("the log ends without its mark (%v): %v", ended, err)
	}
	return out.String(), errs.String()
}

// await watches until the job has stopped and returns its status.
func (s *suite) await(t *testing.T, id string) runtime.Status {
	t.Helper()
	ctx := s.context(t)
	for {
		events, err := s.Runtime.Watch(ctx)
		if err != nil {
			t.Fatalf("watch: %v", err)
		}
		for {
			st, err := s.Runtime.Status(ctx, id)
			if err != nil {
				t.Fatalf("status: %v", err)
			}
			if st.State == runtime.Stopped {
				return st
			}
			if _, open := <-events; !open {
				break
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("job %s did not end in %s", id, s.Patience)
		}
	}
}

// awaitText reads the log until the job has printed text.
func (s *suite) awaitText(t *testing.T, id, text string) {
	t.Helper()
	r, err := s.Runtime.Log(s.context(t), id, 0, true)
	if err != nil {
		t.Fatalf("log: %v", err)
	}
	defer r.Close()
	found := errors.New("found")
	var seen bytes.Buffer
	_, _, err = runtime.Demux(r, writerFunc(func(p []byte) error {
		seen.Write(p)
		if strings.Contains(seen.String(), text) {
			return found
		}
		return nil
	}), io.Discard)
	if !errors.Is(err, found) {
		t.Fatalf("job %s never printed %q, but %q: %v", id, text, seen.String(), err)
	}
}

type writerFunc func([]byte) error

func (f writerFunc) Write(p []byte) (int, error) { return len(p), f(p) }

func wantExit(t *testing.T, st runtime.Status, want runtime.Exit) {
	t.Helper()
	if st.Exit == nil || *st.Exit != want {
		t.Errorf("exit %+v, want %+v", st.Exit, want)
	}
}

func (s *suite) imports(t *testing.T) {
	var b bytes.Buffer
	id, err := archive.Write(&b, archive.Image{
		Name: "ignored.test/other:1", Files: []archive.File{s.Program}, Entrypoint: []string{"/probe"}, Cmd: []string{"print", "from the image"},
		Env: []string{"FROM=image", "LD_PRELOAD=/evil.so"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		img, err := s.Runtime.Import(s.context(t), "haggle.test/probe:1", bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if img.Digest != id || img.Name != "haggle.test/probe:1" {
			t.Errorf("imported as %+v, want digest %s", img, id)
		}
		s.image = img
	}
	all, err := s.Runtime.Images(s.context(t))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(all, func(i runtime.Image) bool { return i.Name == s.image.Name && i.Digest == id }) {
		t.Errorf("not listed in %+v", all)
	}
	if slices.ContainsFunc(all, func(i runtime.Image) bool { return strings.HasPrefix(i.Name, "ignored") }) {
		t.Error("the archive chose a name by itself")
	}
}

func (s *suite) badArchive(t *testing.T) {
	for _, bad := range []string{"", "no tar at all", strings.Repeat("\x00", 2048)} {
		if _, err := s.Runtime.Import(s.context(t), "haggle.test/bad:1", strings.NewReader(bad)); !errors.Is(err, runtime.ErrBadArchive) {
			t.Errorf("%.10q: %v", bad, err)
		}
	}
}

func (s *suite) refusals(t *testing.T) {
	spec := s.spec(t, "exit", "0")
	for name, c := range map[string]struct {
		want  error
		spoil func(*runtime.Spec)
	}{
		"a bad id":            {runtime.ErrInvalidSpec, func(s *runtime.Spec) { s.ID = "A B" }},
		"an unknown image":    {runtime.ErrImageNotFound, func(s *runtime.Spec) { s.Image = digestOf("unknown") }},
		"an unknown device":   {runtime.ErrUnsupported, func(s *runtime.Spec) { s.Devices = []runtime.DeviceID{{Class: "example.com/card", UUID: "1"}} }},
		"a negative resource": {runtime.ErrInvalidSpec, func(s *runtime.Spec) { s.Pids = -1 }},
	} {
		bad := spec
		c.spoil(&bad)
		err := s.Runtime.Create(s.context(t), bad)
		if errors.Is(c.want, runtime.ErrUnsupported) && errors.Is(err, runtime.ErrNoDevice) {
			continue // an engine that passes devices knows which ones there are
		}
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for range 2 {
		s.create(t, spec)
	}
	other := spec
	other.Args = []string{"exit", "1"}
	if err := s.Runtime.Create(s.context(t), other); !errors.Is(err, runtime.ErrConflict) {
		t.Errorf("another spec under the same id: %v", err)
	}
}

func (s *suite) unknown(t *testing.T) {
	ctx, r := s.context(t), s.Runtime
	_, statusErr := r.Status(ctx, "nobody")
	_, usageErr := r.Usage(ctx, "nobody")
	_, logErr := r.Log(ctx, "nobody", 0, true)
	_, enterErr := r.Enter(ctx, "nobody")
	for name, err := range map[string]error{
		"status": statusErr, "usage": usageErr, "log": logErr, "enter": enterErr, "start": r.Start(ctx, "nobody"),
		"stop": r.Stop(ctx, "nobody", 0), "kill": r.Kill(ctx, "nobody"),
	} {
		if !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.Remove(ctx, "nobody"); err != nil {
		t.Errorf("remove: %v", err)
	}
}

func (s *suite) probe(t *testing.T) {
	caps, err := s.Runtime.Probe(s.context(t))
	if err != nil || caps.Engine == "" || caps.Isolation == "" {
		t.Errorf("%+v: %v", caps, err)
	}
}
