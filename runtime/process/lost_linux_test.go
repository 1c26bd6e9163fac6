package process_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"haggle/runtime"
)

// pids returns the job's first process and its supervisor.
func pids(t *testing.T, w *world, id string) (job, supervisor int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.root, "jobs", id, "started.json"))
	var started struct{ Pid int }
	if err == nil {
		err = json.Unmarshal(data, &started)
	}
	if err != nil {
		t.Fatal(err)
	}
	return started.Pid, parent(t, started.Pid)
}

func parent(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	is, err := strconv.Atoi(string(fields[1]))
	if err != nil || is < 2 {
		t.Fatalf("the parent of %d is %s: %v", pid, fields[1], err)
	}
	return is
}

func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.HasPrefix(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " Z")
}

func TestAKilledSupervisorLosesTheJobAndEndsIt(t *testing.T) {
	for _, open := range []bool{true, false} {
		w := newWorld(t)
		w.start(t, "a", "stubborn")
		w.read(t, "a", 0, "ready")
		job, supervisor := pids(t, w, "a")
		if !open {
			if err := w.engine.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		await(t, func() bool { return !runs(job) })
		if !open {
			await(t, func() bool { return !runs(supervisor) })
			w.open(t)
		}
		if s := w.await(t, "a"); s.Exit != nil || !s.ExitedAt.IsZero() || s.StartedAt.IsZero() {
			t.Errorf("with an engine (%v): %+v, exit %+v", open, s, s.Exit)
		}
		if _, err := w.engine.Usage(w.context(t), "a"); !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("usage: %v", err)
		}
	}
}

func TestASupervisorOutlivesTheSignalsThatEndDaemons(t *testing.T) {
	w := newWorld(t)
	w.start(t, "a", "polite")
	w.read(t, "a", 0, "ready")
	_, supervisor := pids(t, w, "a")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := syscall.Kill(supervisor, sig); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.engine.Stop(w.context(t), "a", patience); err != nil {
		t.Fatal(err)
	}
	if s := w.await(t, "a"); s.Exit == nil || s.Exit.Code != 143 {
		t.Errorf("%+v, exit %+v", s, s.Exit)
	}
}

func TestADoorEndsWithItsJobAndWithItsSupervisor(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, w *world, supervisor int){
		"the job is killed": func(t *testing.T, w *world, _ int) {
			t.Helper()
			if err := w.engine.Kill(w.context(t), "a"); err != nil {
				t.Fatal(err)
			}
		},
		"the job is lost": func(t *testing.T, w *world, supervisor int) {
			t.Helper()
			if err := errors.Join(w.engine.Close(), syscall.Kill(supervisor, syscall.SIGKILL)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { w.open(t) })
		},
		"its own supervisor is killed": func(t *testing.T, w *world, _ int) {
			t.Helper()
			if err := syscall.Kill(parent(t, w.doorPid(t, "a")), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start(t, "a", "stubborn")
			w.read(t, "a", 0, "ready")
			w.ask(t, "a", "hello")
			door := w.doorPid(t, "a")
			_, supervisor := pids(t, w, "a")
			end(t, w, supervisor)
			await(t, func() bool { return !runs(door) })
		})
	}
}

func TestSecretsAreInMemoryUntilTheJobIsRemoved(t *testing.T) {
	w := newWorld(t)
	w.create(t, "image", "exit", "0")
	images, err := w.engine.Images(w.context(t))
	if err != nil {
		t.Fatal(err)
	}
	spec := runtime.Spec{ID: "a", Image: images[0].Digest, Args: []string{"cat", "../secrets/token"}, Secrets: map[string][]byte{"token": []byte("s3cret\x00")}}
	for range 2 {
		if err := w.engine.Create(w.context(t), spec); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := os.Readlink(filepath.Join(w.root, "jobs", "a", "secrets"))
	if err != nil || !strings.HasPrefix(folder, "/dev/shm/") {
		t.Fatalf("secrets in %s: %v", folder, err)
	}
	info, err := os.Stat(folder)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v: %v", info, err)
	}
	if err := w.engine.Start(w.context(t), "a"); err != nil {
		t.Fatal(err)
	}
	if out, _ := w.read(t, "a", 0, ""); out != "s3cret\x00" {
		t.Errorf("the job reads %q", out)
	}
	if err := w.engine.Remove(w.context(t), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("they are left: %v", err)
	}
}
