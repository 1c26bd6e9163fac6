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
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(started.Pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	supervisor, err = strconv.Atoi(string(fields[1]))
	if err != nil || supervisor < 2 {
		t.Fatalf("the job's parent is %s: %v", fields[1], err)
	}
	return started.Pid, supervisor
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
