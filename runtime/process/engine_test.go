package process_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"haggle/runtime"
	"haggle/runtime/archive"
	"haggle/runtime/process"
	"haggle/runtime/runtimetest"
)

func TestTheEngineConforms(t *testing.T) {
	w := newWorld(t)
	runtimetest.Conformance(t, runtimetest.Subject{
		Runtime: w.engine, Program: file(t, "/probe", self(t)), Patience: patience, NoMemoryLimit: true,
	})
}

func TestAnEngineThatComesBackAdoptsItsJobs(t *testing.T) {
	w := newWorld(t)
	w.start(t, "runs", "count", "1")
	w.create(t, "waits", "print", "later")
	w.start(t, "over", "exit", "7")
	w.await(t, "over")
	before, offset := w.read(t, "runs", 0, "3\n")
	w.reopen(t)
	for id, want := range map[string]runtime.State{"runs": runtime.Running, "waits": runtime.Created, "over": runtime.Stopped} {
		if s := w.status(t, id); s.State != want {
			t.Errorf("%s is %s, want %s", id, s.State, want)
		}
	}
	if s := w.status(t, "over"); s.Exit == nil || s.Exit.Code != 7 {
		t.Errorf("over: %+v", s)
	}
	after, _ := w.read(t, "runs", offset, "\n")
	if err := w.engine.Stop(w.context(t), "runs", patience); err != nil {
		t.Fatal(err)
	}
	rest, _ := w.read(t, "runs", offset, "")
	var whole strings.Builder
	for i := range strings.Count(before+rest, "\n") {
		fmt.Fprintln(&whole, i+1)
	}
	// The record that ended the first reading is read again by the second: its offset is that of the last whole one.
	if all, _ := w.read(t, "runs", 0, ""); !strings.HasSuffix(all, rest) || !strings.HasPrefix(rest, after) || !strings.HasPrefix(whole.String(), all) {
		t.Errorf("the log has a gap: %q, then %q", before, rest)
	}
	if err := w.engine.Start(w.context(t), "waits"); err != nil {
		t.Fatal(err)
	}
	if s := w.await(t, "waits"); s.Exit == nil || s.Exit.Code != 0 {
		t.Errorf("waits: %+v", s)
	}
}

func TestAJobThatEndsWithoutAnEngineIsNoted(t *testing.T) {
	w := newWorld(t)
	w.start(t, "a", "polite")
	w.read(t, "a", 0, "ready")
	if err := w.engine.Close(); err != nil {
		t.Fatal(err)
	}
	// The order stands in a file: a supervisor needs no engine to carry it out.
	order := fmt.Sprintf(`{"Ask": true, "Kill": %q}`, time.Now().Add(patience).Format(time.RFC3339Nano))
	dir := filepath.Join(w.root, "jobs", "a")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "new"), []byte(order), 0o600), os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "stop.json"))); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { _, err := os.Stat(filepath.Join(dir, "ended.json")); return err == nil })
	w.open(t)
	if s := w.status(t, "a"); s.State != runtime.Stopped || s.Exit == nil || s.Exit.Code != 143 {
		t.Errorf("%+v, exit %+v", s, s.Exit)
	}
	if out, _ := w.read(t, "a", 0, ""); out != "ready\nsaved\n" {
		t.Errorf("log %q", out)
	}
}

// await waits for what no event tells: that another process has written a file.
func await(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !done(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it never came")
		}
	}
}

func TestAProgramThatCannotStartIsNoRunningJob(t *testing.T) {
	w := newWorld(t)
	broken := archive.File{Path: "/broken", Mode: 0o755, Size: 9, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("no binary")), nil }}
	img, err := w.load(t, archive.Image{Files: []archive.File{broken}, Entrypoint: []string{"/broken"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.engine.Create(w.context(t), runtime.Spec{ID: "a", Image: img.Digest}); err != nil {
		t.Fatal(err)
	}
	if err := w.engine.Start(w.context(t), "a"); err == nil || !strings.Contains(err.Error(), "exec") {
		t.Errorf("got %v", err)
	}
	if s := w.status(t, "a"); s.State != runtime.Created {
		t.Errorf("%+v", s)
	}
}

func TestTheFilesOfAnImageGoWithItsNamesAndItsLastJob(t *testing.T) {
	w := newWorld(t)
	w.create(t, "a", "print", "x")
	probe, err := w.engine.Images(w.context(t))
	if err != nil || len(probe) != 1 {
		t.Fatalf("%+v: %v", probe, err)
	}
	files := func() int {
		dirs, err := os.ReadDir(filepath.Join(w.root, "images"))
		if err != nil {
			t.Fatal(err)
		}
		return len(dirs)
	}
	if err := w.engine.RemoveImage(w.context(t), probe[0].Digest); err != nil {
		t.Fatal(err)
	}
	w.reopen(t)
	if n := files(); n != 1 {
		t.Fatalf("%d images while a job needs one", n)
	}
	if err := w.engine.Start(w.context(t), "a"); err != nil {
		t.Fatal(err)
	}
	w.await(t, "a")
	if err := w.engine.Remove(w.context(t), "a"); err != nil {
		t.Fatal(err)
	}
	if n := files(); n != 0 {
		t.Errorf("%d images are left", n)
	}
	// Another image takes the name over.
	for _, pad := range []string{"1", "2"} {
		img := archive.Image{Files: []archive.File{file(t, "/probe", self(t))}, Entrypoint: []string{"/probe"}, Cmd: []string{pad}}
		if _, err := w.load(t, img); err != nil {
			t.Fatal(err)
		}
	}
	if n := files(); n != 1 {
		t.Errorf("%d images under one name", n)
	}
}

func TestRefusesAnImageWhoseProgramIsNotAmongItsFiles(t *testing.T) {
	w := newWorld(t)
	for _, entrypoint := range [][]string{nil, {"/bin/sh"}, {"../../../bin/sh"}, {"/"}, {"/folder"}} {
		img := archive.Image{Files: []archive.File{file(t, "/folder/probe", self(t))}, Entrypoint: entrypoint}
		if _, err := w.load(t, img); !errors.Is(err, runtime.ErrUnsupported) {
			t.Errorf("%q: %v", entrypoint, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(w.root, "images", "*"))
	hidden, _ := filepath.Glob(filepath.Join(w.root, "images", ".*"))
	if err != nil || len(left)+len(hidden) > 0 {
		t.Errorf("left %q %q: %v", left, hidden, err)
	}
}

func TestTheJobHasTheRigsEnvironmentNotTheDaemons(t *testing.T) {
	t.Setenv("SECRET_OF_THE_RIG", "x")
	w := newWorld(t)
	w.start(t, "a", "env")
	if out, _ := w.read(t, "a", 0, ""); strings.Contains(out, "SECRET") || !strings.Contains(out, "PATH=") {
		t.Errorf("environment %q", out)
	}
}

func TestASweepRemovesWhatACrashLeft(t *testing.T) {
	w := newWorld(t)
	w.create(t, "a", "exit", "0")
	half := filepath.Join(w.root, "jobs", ".new-b")
	closed := filepath.Join(half, "work", "closed")
	if err := errors.Join(os.MkdirAll(filepath.Join(closed, "in"), 0o700), os.Chmod(closed, 0)); err != nil {
		t.Fatal(err)
	}
	report, err := w.engine.Sweep(w.context(t), func(id string) bool { return id == "a" })
	if err != nil || len(report.Jobs) > 0 || len(report.Snapshots) != 1 {
		t.Errorf("%+v: %v", report, err)
	}
	if _, err := os.Lstat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a job is left: %v", err)
	}
}

func TestNewWantsAFolderAndASupervisor(t *testing.T) {
	for _, cfg := range []process.Config{{Root: t.TempDir()}, {Command: []string{"x"}}} {
		if _, err := process.New(cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}
