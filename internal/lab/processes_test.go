package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"haggle/internal/lab"
	"haggle/internal/view"
)

const patience = 60 * time.Second

// buildDir is made by TestMain, which removes it.
var buildDir string

func TestMain(m *testing.M) {
	var err error
	if buildDir, err = os.MkdirTemp("/tmp", "hglab"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(buildDir)
	os.Exit(code)
}

// haggle is the real program, built once.
var haggle = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "haggle")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "haggle/cmd/haggle")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build haggle: %w: %s", err, out)
	}
	return path, nil
})

// world is a lab of processes with one rig, and what a shell in it would have.
type world struct {
	program, home string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	program, err := haggle()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "hglab") //nolint:usetesting // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	w := &world{program: program, home: filepath.Join(dir, "lab")}
	t.Cleanup(func() {
		if _, err := os.Stat(w.home); err == nil {
			w.haggle(t, 0, "lab", "down")
		}
		for _, p := range w.processes() {
			t.Errorf("left: %s", p)
		}
		if err := os.Remove(dir); err != nil {
			t.Errorf("left files: %v", err)
		}
	})
	w.haggle(t, 0, "lab", "up", "--engine", "process", "--rigs", "1")
	return w
}

// haggle runs a command in the lab, wants its exit code, and returns its output.
func (w *world) haggle(t *testing.T, code int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.program, args...)
	cmd.Env = append(os.Environ(), "HAGGLE_HOME="+w.home, "HAGGLED_NETWORK=main", "HAGGLED_LOG_LEVEL=none")
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("haggle %s: %v, want code %d\n%s%s", strings.Join(args, " "), err, code, out.String(), talk.String())
	}
	return out.String()
}

// inspect waits until the lab is as it should be.
func (w *world) inspect(t *testing.T, good func(lab.Status) bool) lab.Status {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		s, err := lab.Inspect(context.Background(), w.home)
		if err == nil && good(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("the lab is %+v: %v", s, err)
		}
	}
}

// final waits until both sides signed all of a lease's receipts. The job's end alone does not mean that: the renter signs after it.
func (w *world) final(t *testing.T, lease string) {
	t.Helper()
	w.inspect(t, func(lab.Status) bool {
		var list []view.Lease
		if err := json.Unmarshal([]byte(w.haggle(t, 0, "leases", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list, func(l view.Lease) bool { return l.ID == lease && l.Debt == "final" })
	})
}

// processes lists the lab's processes, the jobs too: by their words and by the folder that they run in.
func (w *world) processes() []string {
	var found []string
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		at, _ := os.Readlink(filepath.Join(dir, "cwd"))
		if bytes.Contains(line, []byte(w.home)) || strings.HasPrefix(at, w.home) {
			found = append(found, fmt.Sprintf("%s %q in %s", filepath.Base(dir), line, at))
		}
	}
	return found
}

func TestALabOfProcessesClosesTheCircle(t *testing.T) {
	w := newWorld(t)
	if out := w.haggle(t, 0, "offers"); !strings.Contains(out, "RTX_4090 SIM NO ISOLATION") {
		t.Errorf("no badge in %s", out)
	}
	out := w.haggle(t, 7, "run", "gpu_name=RTX_4090", "--image", "lab", "--for", "10m", "--", "train", "--steps", "2", "--exit", "7")
	if !strings.HasPrefix(out, "step 1/2 ") || !strings.Contains(out, "\nstep 2/2 ") {
		t.Errorf("log %q", out)
	}
	if out := w.haggle(t, 0, "leases"); !strings.Contains(out, "NO ISOLATION") {
		t.Errorf("no badge in %s", out)
	}
	lease := strings.Fields(w.haggle(t, 0, "bid", "gpu_name=RTX_4090", "--image", "lab", "--for", "10m", "--", "train", "--steps", "3"))[0]
	if out := w.haggle(t, 0, "logs", "-f", lease); strings.Count(out, "step ") < 3 {
		t.Errorf("log %q", out)
	}
	w.final(t, lease)
	bill := filepath.Join(filepath.Dir(w.home), "bill")
	w.haggle(t, 0, "export", lease, "-o", bill)
	w.haggle(t, 0, "verify", bill)
	if err := os.Remove(bill); err != nil {
		t.Error(err)
	}
	w.haggle(t, 0, "bid", "gpu_name=RTX_4090", "--image", "lab", "--for", "10m", "--", "train", "--steps", "9999", "--ignore-term")
	w.haggle(t, 0, "lab", "down")
	if left := w.processes(); len(left) > 0 {
		t.Errorf("down left %q", left)
	}
}

func TestAJobOutlivesTheKillOfItsRig(t *testing.T) {
	w := newWorld(t)
	rig := w.inspect(t, func(s lab.Status) bool { return s.Up }).Rigs[0]
	// The job ends by itself while nobody looks, or after the rig has come back: both must be billed as observed.
	lease := strings.Fields(w.haggle(t, 0, "bid", "gpu_name=RTX_4090", "--image", "lab", "--for", "10m", "--", "train", "--steps", "30", "--step-time", "50ms"))[0]
	w.inspect(t, func(lab.Status) bool { return strings.Contains(w.haggle(t, 0, "logs", lease), "step 3/") })
	p, err := os.FindProcess(rig.Status.PID)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.inspect(t, func(s lab.Status) bool { return s.Rigs[0].Status == nil })
	again := exec.CommandContext(t.Context(), w.program, lab.RigCommand, "serve", "--home", rig.Home)
	if err := again.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- again.Wait() }()
	w.inspect(t, func(s lab.Status) bool { return s.Up })
	out := w.haggle(t, 0, "logs", "-f", lease)
	var want, got []string
	for i := range 30 {
		want = append(want, fmt.Sprintf("step %d/30", i+1))
	}
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "step" {
			got = append(got, strings.Join(words[:2], " "))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log has %q", got)
	}
	w.final(t, lease)
	w.haggle(t, 0, "lab", "down")
	if err := <-ended; err != nil {
		t.Errorf("the rig ended with %v", err)
	}
}

func TestALabOfContainersSaysWhatItLacks(t *testing.T) {
	c := lab.Config{Home: filepath.Join(t.TempDir(), "lab"), Engine: lab.Containers, Haggled: "/nowhere/haggled"}
	if _, err := lab.Up(t.Context(), c); !errors.Is(err, lab.ErrNoContainers) {
		t.Errorf("got %v", err)
	}
	c.Engine = "magic"
	if _, err := lab.Up(t.Context(), c); err == nil || errors.Is(err, lab.ErrNoContainers) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(c.Home); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder was made: %v", err)
	}
}
