package process_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haggle/runtime"
	"haggle/runtime/process"
)

// ask sends a question over a new path and returns the answer.
func (w *world) ask(t *testing.T, id, question string) string {
	t.Helper()
	answer, err := w.tryAsk(t, id, question)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func (w *world) tryAsk(t *testing.T, id, question string) (string, error) {
	t.Helper()
	c, err := w.engine.Enter(w.context(t), id)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, question); err != nil {
		return "", err
	}
	if err := c.CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	return string(answer), err
}

// doorPid returns the process of a job's door.
func (w *world) doorPid(t *testing.T, id string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.root, "jobs", id, "door", "started.json"))
	var started struct{ Pid int }
	if err == nil {
		err = json.Unmarshal(data, &started)
	}
	if err != nil || started.Pid < 2 {
		t.Fatalf("door %+v: %v", started, err)
	}
	return started.Pid
}

func TestADoorOutlivesItsEngine(t *testing.T) {
	w := newWorld(t)
	w.start(t, "a", "polite")
	w.read(t, "a", 0, "ready")
	held, err := w.engine.Enter(w.context(t), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	w.reopen(t)
	if got := w.ask(t, "a", "count\n"); got != "2\n" {
		t.Errorf("the next engine found another door: it counts %q paths", got)
	}
	if _, err := io.WriteString(held, "x"); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(held, make([]byte, 1)); err != nil {
		t.Errorf("the path that was open: %v", err)
	}
}

func TestAJobUnderADeepFolderIsEnteredToo(t *testing.T) {
	temp := filepath.Dir(mustTemp(t)) // what follows counts the folders in it
	t.Setenv("TMPDIR", temp)
	w := newWorld(t)
	if err := w.engine.Close(); err != nil {
		t.Fatal(err)
	}
	w.root = filepath.Join(w.root, strings.Repeat("deep", 25))
	w.open(t)
	short := func() int {
		t.Helper()
		list, err := filepath.Glob(filepath.Join(temp, "haggle-door-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	w.create(t, "a", "polite")
	for range 2 {
		if got := w.ask(t, "a", "hello"); got != "hello" {
			t.Errorf("got %q", got)
		}
	}
	if n := short(); n != 1 {
		t.Errorf("%d folders of sockets", n)
	}
	if err := w.engine.Remove(w.context(t), "a"); err != nil {
		t.Fatal(err)
	}
	if n := short(); n != 0 {
		t.Errorf("%d folders of sockets are left", n)
	}
}

// mustTemp makes a short folder in one that is this test's alone.
func mustTemp(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hgdoor") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "x")
}

func TestADoorThatDiedIsFollowedByAnother(t *testing.T) {
	w := newWorld(t)
	w.start(t, "a", "polite")
	for _, want := range []string{"1\n", "2\n"} {
		if got := w.ask(t, "a", "count\n"); got != want {
			t.Errorf("count %q, want %q", got, want)
		}
	}
	p, err := os.FindProcess(w.doorPid(t, "a"))
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	await(t, func() bool {
		got, err := w.tryAsk(t, "a", "count\n") // the dying one may take a path yet
		return err == nil && got == "1\n"
	})
	if s := w.status(t, "a"); s.State != runtime.Running {
		t.Errorf("the end of the door is taken for the job's: %+v", s)
	}
}

func TestWithoutAProgramForDoorsNothingIsEntered(t *testing.T) {
	w := newWorld(t)
	w.create(t, "a", "exit", "0")
	for name, c := range map[string]struct {
		door []string
		want error
	}{
		"none":                       {nil, runtime.ErrUnsupported},
		"one that is not there":      {[]string{"/nowhere/door"}, nil},
		"one that refuses":           {[]string{self(t), "door", "--unknown"}, nil},
		"one that says other things": {[]string{self(t), "babble"}, nil},
	} {
		w.door = c.door
		w.reopen(t)
		path, err := w.engine.Enter(w.context(t), "a")
		if err == nil {
			_ = path.Close()
		}
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAJobIsToldWhereItsWorkFolderIs(t *testing.T) {
	w := newWorld(t)
	w.start(t, "a", "env")
	want := process.WorkEnv + "=" + filepath.Join(w.root, "jobs", "a", "work")
	if out, _ := w.read(t, "a", 0, ""); !strings.Contains("\n"+out, "\n"+want+"\n") {
		t.Errorf("%q lacks %s", out, want)
	}
}

func TestACrashDoesNotLoseAWorkFolderOnItsWay(t *testing.T) {
	w := newWorld(t)
	work := func(id string) string { return filepath.Join(w.root, "jobs", id, "work") }
	spec := func(id, from string) runtime.Spec {
		images, err := w.engine.Images(w.context(t))
		if err != nil || len(images) != 1 {
			t.Fatalf("%+v: %v", images, err)
		}
		return runtime.Spec{ID: id, Image: images[0].Digest, Args: []string{"exit", "0"}, From: from}
	}
	w.start(t, "a", "write", "file", "kept")
	w.await(t, "a")
	if err := w.engine.Create(w.context(t), spec("b", "a")); err != nil {
		t.Fatal(err)
	}
	// As a crash between the two steps leaves it.
	if err := errors.Join(w.engine.Close(), os.Rename(work("b"), work("a"))); err != nil {
		t.Fatal(err)
	}
	w.open(t)
	if data, err := os.ReadFile(filepath.Join(work("b"), "file")); string(data) != "kept" {
		t.Fatalf("%q: %v", data, err)
	}
	// A third job has it, and nobody takes it back.
	if err := errors.Join(w.engine.Kill(w.context(t), "b"), w.engine.Create(w.context(t), spec("c", "b"))); err != nil {
		t.Fatal(err)
	}
	w.reopen(t)
	for _, s := range []runtime.Spec{spec("b", "a"), spec("c", "b")} {
		if err := w.engine.Create(w.context(t), s); err != nil {
			t.Errorf("create %s again: %v", s.ID, err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(work("c"), "file")); string(data) != "kept" {
		t.Errorf("%q: %v", data, err)
	}
}
