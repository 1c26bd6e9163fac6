package runtimetest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"haggle/runtime"
	"haggle/runtime/archive"
)

// enter opens a path that is closed with the test, or when that takes too long.
func (s *suite) enter(t *testing.T, id string) runtime.Conn {
	t.Helper()
	c, err := s.Runtime.Enter(s.context(t), id)
	if err != nil {
		t.Fatalf("enter %s: %v", id, err)
	}
	late := time.AfterFunc(s.Patience, func() { _ = c.Close() })
	t.Cleanup(func() {
		late.Stop()
		_ = c.Close()
	})
	return c
}

// ask sends text over a new path, says that nothing more comes, and returns all that comes back.
func (s *suite) ask(t *testing.T, id, text string) string {
	t.Helper()
	c := s.enter(t, id)
	answer, err := exchange(c, text)
	if err != nil {
		t.Errorf("ask job %s %q: %v", id, text, err)
	}
	return answer
}

func exchange(c runtime.Conn, text string) (string, error) {
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	if err := c.CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	return string(answer), errors.Join(err, c.Close())
}

func (s *suite) enterStates(t *testing.T) {
	id := s.create(t, s.spec(t, "polite"))
	if got := s.ask(t, id, "before the start"); got != "before the start" {
		t.Errorf("created: %q", got)
	}
	held := s.enter(t, id)
	if err := s.Runtime.Start(s.context(t), id); err != nil {
		t.Fatal(err)
	}
	s.awaitText(t, id, "ready")
	if got := s.ask(t, id, "count\n"); got != "3\n" {
		t.Errorf("the door that the start found is another one: it counts %q paths", got)
	}
	if got, err := exchange(held, "through the start"); got != "through the start" || err != nil {
		t.Errorf("the path from before the start: %q: %v", got, err)
	}
	if err := s.Runtime.Stop(s.context(t), id, s.Patience); err != nil {
		t.Fatal(err)
	}
	wantExit(t, s.await(t, id), runtime.Exit{Code: 143, Signal: "TERM"})
	if got := s.ask(t, id, "after the end"); got != "after the end" {
		t.Errorf("stopped: %q", got)
	}
	if got := s.await(t, id); got.State != runtime.Stopped {
		t.Errorf("a visit brings a job back: %+v", got)
	}
}

func (s *suite) enterMany(t *testing.T) {
	id := s.start(t, "polite")
	var paths []runtime.Conn
	for range 16 {
		paths = append(paths, s.enter(t, id))
	}
	for i := len(paths) - 1; i >= 0; i-- { // none waits for one that was there before
		text := fmt.Sprintf("path %d", i)
		if got, err := exchange(paths[i], text); got != text || err != nil {
			t.Errorf("%q instead of %q: %v", got, text, err)
		}
	}
}

func (s *suite) enterMuch(t *testing.T) {
	id := s.start(t, "polite")
	c := s.enter(t, id)
	const size = 16 << 20
	var sent [32]byte
	var failed error
	var wait sync.WaitGroup
	wait.Go(func() {
		hash := sha256.New()
		source := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{}), size), hash)
		_, failed = io.Copy(c, source)
		failed = errors.Join(failed, c.CloseWrite())
		hash.Sum(sent[:0])
	})
	hash := sha256.New()
	n, err := io.Copy(hash, c)
	wait.Wait()
	if err = errors.Join(err, failed); err != nil || n != size || !bytes.Equal(hash.Sum(nil), sent[:]) {
		t.Errorf("of %d bytes %d come back, or others: %v", size, n, err)
	}
}

func (s *suite) enterEnds(t *testing.T) {
	kill := func(id string) error { return s.Runtime.Kill(s.context(t), id) }
	remove := func(id string) error { return s.Runtime.Remove(s.context(t), id) }
	for name, c := range map[string]struct {
		run, stop bool
		end       func(id string) error
	}{
		"a created job that is killed":  {false, false, kill},
		"a running job that is killed":  {true, false, kill},
		"a running job that is removed": {true, false, remove},
		"a stopped job that is removed": {true, true, remove},
	} {
		id := s.create(t, s.spec(t, "stubborn"))
		if c.run {
			if err := s.Runtime.Start(s.context(t), id); err != nil {
				t.Fatal(err)
			}
			s.awaitText(t, id, "ready")
		}
		if c.stop {
			if err := kill(id); err != nil {
				t.Fatal(err)
			}
		}
		path := s.enter(t, id)
		if _, err := io.WriteString(path, "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(path, make([]byte, 1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		began := time.Now()
		if err := c.end(id); err != nil {
			t.Fatal(err)
		}
		if n, err := path.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: the path gives %d bytes after its end", name, n)
		}
		if took := time.Since(began); took >= s.Patience {
			t.Errorf("%s: the path ended only when we closed it", name)
		}
	}
}

// fileKeeper makes a job whose disk holds the file /work/a, and which has stopped.
func (s *suite) fileKeeper(t *testing.T) string {
	t.Helper()
	spec := s.spec(t, "write", "a", "kept")
	spec.Workdir = runtime.WorkDir
	id := s.create(t, spec)
	if err := s.Runtime.Start(s.context(t), id); err != nil {
		t.Fatal(err)
	}
	wantExit(t, s.await(t, id), runtime.Exit{})
	return id
}

func (s *suite) from(t *testing.T) {
	old := s.fileKeeper(t)
	if got := s.ask(t, old, "read /work/a\n"); got != "kept" {
		t.Errorf("the disk of the stopped job has %q", got)
	}
	visit := s.enter(t, old)
	spec := s.spec(t, "cat", "a")
	spec.Workdir, spec.From = runtime.WorkDir, old
	for range 2 {
		s.create(t, spec)
	}
	if n, err := visit.Read(make([]byte, 1)); err == nil {
		t.Errorf("a path to the disk stays open beside its new job, and gives %d bytes", n)
	}
	st, err := s.Runtime.Status(s.context(t), old)
	if err != nil || st.State != runtime.Stopped || st.Exit == nil || st.Exit.Code != 0 {
		t.Errorf("the old job is %+v: %v", st, err)
	}
	if _, err := s.Runtime.Enter(s.context(t), old); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("entering a job without a disk: %v", err)
	}
	if got := s.ask(t, spec.ID, "read /work/a\n"); got != "kept" {
		t.Errorf("the disk of the new job has %q", got)
	}
	log, err := s.Runtime.Log(s.context(t), old, 0, false)
	if err != nil {
		t.Fatalf("the log of the old job: %v", err)
	}
	_ = log.Close()
	if err := s.Runtime.Remove(s.context(t), old); err != nil {
		t.Fatal(err)
	}
	s.create(t, spec) // as the first time, though the old job is gone
	if err := s.Runtime.Start(s.context(t), spec.ID); err != nil {
		t.Fatal(err)
	}
	if out, errs := s.output(t, spec.ID); out != "kept" {
		t.Errorf("the new job found %q, %q", out, errs)
	}
}

func (s *suite) fromRefusals(t *testing.T) {
	running, kept := s.start(t, "polite"), s.fileKeeper(t)
	var b bytes.Buffer
	if _, err := archive.Write(&b, archive.Image{Files: []archive.File{s.Program}, Entrypoint: []string{"/probe"}, Cmd: []string{"exit", "0"}}); err != nil {
		t.Fatal(err)
	}
	other, err := s.Runtime.Import(s.context(t), "haggle.test/other:1", &b)
	if err != nil {
		t.Fatal(err)
	}
	create := func(from, image string) error {
		spec := s.spec(t, "polite")
		spec.From, spec.Image = from, image
		return s.Runtime.Create(s.context(t), spec)
	}
	for name, c := range map[string]struct {
		from, image string
		want        error
	}{
		"of nobody":                       {"nobody", s.image.Digest, runtime.ErrNotFound},
		"of a running job":                {running, s.image.Digest, runtime.ErrConflict},
		"under another image":             {kept, other.Digest, runtime.ErrInvalidSpec},
		"under an image that is not here": {kept, digestOf("unknown"), runtime.ErrImageNotFound},
	} {
		if err := create(c.from, c.image); !errors.Is(err, c.want) {
			t.Errorf("a disk %s: %v", name, err)
		}
	}
	if got := s.ask(t, kept, "read /work/a\n"); got != "kept" {
		t.Errorf("after refusals the disk has %q", got)
	}
	if err := create(kept, s.image.Digest); err != nil {
		t.Fatal(err)
	}
	if err := create(kept, s.image.Digest); !errors.Is(err, runtime.ErrConflict) {
		t.Errorf("a disk that another job has: %v", err)
	}
}
