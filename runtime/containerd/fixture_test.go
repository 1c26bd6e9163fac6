//go:build linux

package containerd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"haggle/runtime"
	"haggle/runtime/archive"
	"haggle/runtime/containerd"
	"haggle/runtime/runtimetest"
)

const patience = 90 * time.Second

// requireContainerd skips a test where containerd cannot run, and fails it there under CI, where it must.
func requireContainerd(t *testing.T) {
	t.Helper()
	var missing []string
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "runc"} {
		if _, err := exec.LookPath(name); err != nil {
			if _, err := os.Stat("/usr/sbin/" + name); err != nil {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("needs %s", strings.Join(missing, ", "))
	}
	t.Skipf("needs %s", strings.Join(missing, ", "))
}

// probeBinary is the test program as a file, built once.
func probeBinary(t *testing.T) string {
	t.Helper()
	path, err := buildProbe()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// buildDir is made by TestMain, which removes it.
var buildDir string

func TestMain(m *testing.M) {
	if order := os.Getenv(victimEnv); order != "" {
		fmt.Fprintln(os.Stderr, beVictim(order))
		os.Exit(1)
	}
	var err error
	if buildDir, err = os.MkdirTemp("/tmp", "hgprobe"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := os.Chmod(buildDir, 0o711); err != nil { // jobs' users pass through it
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(buildDir)
	os.Exit(code)
}

var buildProbe = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "probe")
	cmd := exec.Command("go", "build", "-o", path, "haggle/runtime/runtimetest/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build probe: %w: %s", err, out)
	}
	return path, nil
})

func probeFile(t *testing.T) archive.File {
	t.Helper()
	path := probeBinary(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return archive.File{Path: "/probe", Mode: 0o755, Size: info.Size(), Open: func() (io.ReadCloser, error) { return os.Open(path) }}
}

// world is one containerd of its own, and the engine that works with it.
type world struct {
	cfg    containerd.Config
	engine *containerd.Engine
	end    func() // ends Run and closes the engine; jobs go on
}

func newWorld(t *testing.T) *world {
	t.Helper()
	requireContainerd(t)
	before := traces()
	dir, err := os.MkdirTemp("/tmp", "hgct") //nolint:usetesting // sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // jobs pass through it
		t.Fatal(err)
	}
	w := &world{cfg: containerd.Config{
		JobsDir: dir + "/jobs",
		Root:    dir + "/root", State: dir + "/state", LogDir: dir + "/logs",
		LoggerPath: probeBinary(t), LoggerArgs: []string{"logger"},
		DoorProgram:  []string{probeBinary(t), "door"},
		CgroupParent: "/haggle-test-" + filepath.Base(dir),
		Log:          slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	}}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := w.engine.Purge(ctx); err != nil {
			t.Errorf("purge: %v", err)
		}
		w.end()
		if err := os.Remove(dir); err != nil {
			left, _ := filepath.Glob(dir + "/*/*")
			t.Errorf("purge left files: %v: %q", err, left)
		}
		for _, trace := range traces() {
			if !slices.Contains(before, trace) {
				t.Errorf("purge left %s", trace)
			}
		}
	})
	w.open(t)
	return w
}

// open makes an engine, as a new program would, and waits until it is ready.
func (w *world) open(t *testing.T) {
	t.Helper()
	e, err := containerd.New(w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	w.engine = e
	w.end = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, e.Close()); err != nil {
			t.Errorf("end engine: %v", err)
		}
	})
	if err := e.Ready(w.context(t)); err != nil {
		w.end()
		t.Fatal(err)
	}
}

func (w *world) context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// start runs the probe with args.
func (w *world) start(t *testing.T, id string, args ...string) {
	t.Helper()
	ctx := w.context(t)
	err := errors.Join(
		w.engine.Create(ctx, runtime.Spec{ID: id, Image: w.image(t), Args: args}),
		w.engine.Start(ctx, id),
	)
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) image(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := archive.Write(&b, archive.Image{Files: []archive.File{probeFile(t)}, Entrypoint: []string{"/probe"}}); err != nil {
		t.Fatal(err)
	}
	img, err := w.engine.Import(w.context(t), "haggle.test/probe:1", &b)
	if err != nil {
		t.Fatal(err)
	}
	return img.Digest
}

// read follows the log from an offset until it holds text, and returns what came before the record that completed
// it, and that record's offset.
func (w *world) read(t *testing.T, id string, offset int64, text string) (string, int64) {
	t.Helper()
	r, err := w.engine.Log(w.context(t), id, offset, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	enough := errors.New("enough")
	var out bytes.Buffer
	n, _, err := runtime.Demux(r, writerFunc(func(p []byte) error {
		before := out.Len()
		out.Write(p)
		if text != "" && strings.Contains(out.String(), text) {
			out.Truncate(before)
			return enough
		}
		return nil
	}), io.Discard)
	if err != nil && !errors.Is(err, enough) {
		t.Fatalf("log of %s: %v after %q", id, err, out.String())
	}
	return out.String(), offset + n
}

// awaitExit waits until the job has stopped.
func (w *world) awaitExit(t *testing.T, id string) runtime.Status {
	t.Helper()
	_, _ = w.read(t, id, 0, "")
	for ctx := w.context(t); ; {
		st, err := w.engine.Status(ctx, id)
		if err == nil && st.State == runtime.Stopped {
			return st
		}
		if ctx.Err() != nil {
			t.Fatalf("job %s is %+v: %v", id, st, err)
		}
	}
}

type writerFunc func([]byte) error

func (f writerFunc) Write(p []byte) (int, error) { return len(p), f(p) }

// traces lists what an engine could leave outside its folders.
func traces() []string {
	var all []string
	sockets, _ := os.ReadFile("/proc/net/unix")
	for _, pattern := range []string{
		"/run/containerd/s/*", "/sys/fs/cgroup/*/haggle-test-hgct*", "/sys/fs/cgroup/haggle-test-hgct*", "/run/haggle-runc/*",
	} {
		found, _ := filepath.Glob(pattern)
		for _, f := range found {
			if strings.HasPrefix(f, "/run/containerd/s/") && bytes.Contains(sockets, []byte(f+"\n")) {
				continue // of a process, which is found below when it is ours
			}
			if info, err := os.Stat(f); err == nil && (info.IsDir() || strings.HasPrefix(f, "/run")) {
				all = append(all, f)
			}
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, " /tmp/hgct") {
			all = append(all, "mount "+line)
		}
	}
	cmdlines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range cmdlines {
		b, _ := os.ReadFile(f)
		if line := string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})); strings.Contains(line, "/tmp/hgct") && !strings.Contains(line, "go build") {
			all = append(all, "process "+line)
		}
	}
	return all
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", bytes.TrimSpace(p))
	return len(p), nil
}

func TestTheEngineConforms(t *testing.T) {
	w := newWorld(t)
	runtimetest.Conformance(t, runtimetest.Subject{Runtime: w.engine, Program: probeFile(t), Patience: patience})
}
