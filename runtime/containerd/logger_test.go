//go:build linux

package containerd_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	ctr "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"golang.org/x/sys/unix"

	"haggle/runtime"
	"haggle/runtime/archive"
	"haggle/runtime/volume"
)

// files are the names in the folder of logs.
func (w *world) files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(w.cfg.LogDir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// loggers are the processes of the engine that write logs now.
func (w *world) loggers() []string {
	return slices.DeleteFunc(traces(), func(s string) bool {
		return !strings.HasPrefix(s, "process ") || !strings.Contains(s, w.cfg.LogDir)
	})
}

// snapshots is a second client's way to the file systems of the engine's containerd.
func (w *world) snapshots(t *testing.T) (context.Context, snapshots.Snapshotter) {
	t.Helper()
	client, err := ctr.New(filepath.Join(w.cfg.State, "containerd.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return namespaces.WithNamespace(w.context(t), "haggle"), client.SnapshotService("overlayfs")
}

// wantNoFiles checks that nothing is left of a job outside containerd.
func (w *world) wantNoFiles(t *testing.T, id string) {
	t.Helper()
	for _, pattern := range []string{w.cfg.JobsDir + "/" + id + "*", w.cfg.Root + "/disks/" + id + "*"} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			t.Errorf("left %q: %v", left, err)
		}
	}
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyTheLogOutlastsTheMakingOfAJob(t *testing.T) {
	w := newWorld(t)
	w.start(t, "job", "polite")
	if names := w.files(t); !slices.Equal(names, []string{"job.log"}) {
		t.Errorf("there are %q", names)
	}
	if running := w.loggers(); len(running) != 1 {
		t.Errorf("the loggers are %q", running)
	}
}

func TestACreationThatFailsLeavesNeitherLoggerNorFiles(t *testing.T) {
	w := newWorld(t)
	hasty := filepath.Join(t.TempDir(), "hasty")
	if err := os.WriteFile(hasty, []byte("#!/bin/sh\nprintf '\\000' >&5\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	good := w.cfg
	image := w.image(t)
	for name, c := range map[string]struct {
		logger, workdir string
	}{
		"runc refuses the working directory": {good.LoggerPath, "/probe/below/a/file"},
		"there is no logger":                 {"/nowhere/at/all", ""},
		"the logger ends at once":            {"/bin/false", ""},
		"the logger says ready and ends":     {hasty, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w.end()
			w.cfg.LoggerPath = c.logger
			w.open(t)
			spec := runtime.Spec{ID: "job", Image: image, Args: []string{"polite"}, Workdir: c.workdir}
			began := time.Now()
			if err := w.engine.Create(w.context(t), spec); err == nil {
				t.Error("it succeeded")
			}
			if took := time.Since(began); took > 25*time.Second { // the shim alone would wait for 30
				t.Errorf("it took %s", took)
			}
			w.wantNoFiles(t, "job")
			ctx := w.context(t)
			if names, running := w.files(t), w.loggers(); len(names)+len(running) > 0 {
				t.Errorf("left %q and %q", names, running)
			}
			if list, err := w.engine.List(ctx); err != nil || len(list) > 0 {
				t.Errorf("left %+v: %v", list, err)
			}
		})
	}
	w.end()
	w.cfg = good
	w.open(t)
	w.start(t, "job", "polite")
	w.read(t, "job", 0, "ready")
}

func TestWhatIsLeftOfAnOlderJobDoesNotDisturb(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"job.log.out", "job.log.err"} {
		mkfifo(t, filepath.Join(w.cfg.LogDir, name))
	}
	if err := os.WriteFile(filepath.Join(w.cfg.LogDir, "job.log"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := w.context(t)
	folder := filepath.Join(w.cfg.JobsDir, "job")
	if err := os.MkdirAll(filepath.Join(folder, "root"), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("old", filepath.Join(folder, "root"), "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	disks, err := volume.New(volume.Config{Dir: w.cfg.Root + "/disks"})
	if err == nil {
		_, err = disks.Make(ctx, "job", 16<<20, 7)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.start(t, "job", "polite")
	w.read(t, "job", 0, "ready")
	if names := w.files(t); !slices.Equal(names, []string{"job.log"}) {
		t.Errorf("there are %q", names)
	}
}

func TestTheSweepFindsLogsOfNobody(t *testing.T) {
	w := newWorld(t)
	w.start(t, "kept", "polite")
	for _, name := range []string{"orphan.log", "other.txt"} {
		if err := os.WriteFile(filepath.Join(w.cfg.LogDir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"orphan.log.out", "unborn.log.err"} {
		mkfifo(t, filepath.Join(w.cfg.LogDir, name))
	}
	report, err := w.engine.Sweep(w.context(t), func(id string) bool { return id == "kept" })
	if err != nil || len(report.Jobs) > 0 || !slices.Equal(report.Logs, []string{"orphan", "unborn"}) {
		t.Errorf("swept %+v: %v", report, err)
	}
	if names := w.files(t); !slices.Equal(names, []string{"kept.log", "other.txt"}) {
		t.Errorf("there are %q", names)
	}
	if err := os.Remove(filepath.Join(w.cfg.LogDir, "other.txt")); err != nil {
		t.Error(err)
	}
}

func TestAnImageWhoseFileSystemWasLostIsUnpackedAgain(t *testing.T) {
	w := newWorld(t)
	w.start(t, "first", "polite")
	if err := w.engine.Remove(w.context(t), "first"); err != nil {
		t.Fatal(err)
	}
	image := w.image(t)
	ctx, service := w.snapshots(t)
	var names []string
	err := service.Walk(ctx, func(_ context.Context, info snapshots.Info) error {
		names = append(names, info.Name)
		return nil
	})
	for _, name := range names {
		err = errors.Join(err, service.Remove(ctx, name))
	}
	if err != nil || len(names) != 1 {
		t.Fatalf("removed %q: %v", names, err)
	}
	spec := runtime.Spec{ID: "second", Image: image, Args: []string{"polite"}}
	if err := errors.Join(w.engine.Create(ctx, spec), w.engine.Start(ctx, "second")); err != nil {
		t.Fatal(err)
	}
	w.read(t, "second", 0, "ready")
}

func TestTheLogOfAKilledShimHasAnEnd(t *testing.T) {
	w := newWorld(t)
	w.start(t, "victim", "stubborn")
	w.read(t, "victim", 0, "ready")
	shim := parentOf(t, jobProcesses(t, w.cfg.CgroupParent+"/victim")[0])
	if err := syscall.Kill(shim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.awaitExit(t, "victim")
	r, err := w.engine.Log(w.context(t), "victim", 0, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, ended, err := runtime.Demux(r, io.Discard, io.Discard); err != nil || !ended {
		t.Errorf("ended: %v, %v", ended, err)
	}
	if running := w.loggers(); len(running) > 0 {
		t.Errorf("still there: %q", running)
	}
}

func TestTheLogOfAJobThatFloodsAndEndsIsWhole(t *testing.T) {
	w := newWorld(t)
	const size = 8 << 20
	w.start(t, "flood", "flood", strconv.Itoa(size))
	w.awaitExit(t, "flood")
	if out, _ := w.read(t, "flood", 0, ""); len(out) != size {
		t.Errorf("%d of %d bytes", len(out), size)
	}
}

// foreign is a program for 32-bit kernels: it exits with code 7.
var foreign = []byte("\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
	"\x02\x00\x03\x00\x01\x00\x00\x00\x54\x80\x04\x08\x34\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x34\x00\x20\x00\x01\x00\x00\x00\x00\x00\x00\x00" +
	"\x01\x00\x00\x00\x00\x00\x00\x00\x00\x80\x04\x08\x00\x80\x04\x08\x60\x00\x00\x00\x60\x00\x00\x00\x05\x00\x00\x00\x00\x10\x00\x00" +
	"\xb8\x01\x00\x00\x00\xbb\x07\x00\x00\x00\xcd\x80")

func TestTheSystemCallsOfOtherArchitecturesAreShut(t *testing.T) {
	if goruntime.GOARCH != "amd64" {
		t.Skip("the program is for x86")
	}
	w := newWorld(t)
	var b strings.Builder
	file := archive.File{Path: "/foreign", Mode: 0o755, Size: int64(len(foreign)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(string(foreign))), nil
	}}
	if _, err := archive.Write(&b, archive.Image{Files: []archive.File{file}, Entrypoint: []string{"/foreign"}}); err != nil {
		t.Fatal(err)
	}
	img, err := w.engine.Import(w.context(t), "haggle.test/foreign:1", strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	ctx := w.context(t)
	if err := errors.Join(w.engine.Create(ctx, runtime.Spec{ID: "foreign", Image: img.Digest}), w.engine.Start(ctx, "foreign")); err != nil {
		t.Fatal(err)
	}
	if st := w.awaitExit(t, "foreign"); st.Exit == nil || st.Exit.Code != 128+int(syscall.SIGSYS) {
		t.Errorf("it ended as %+v", st.Exit)
	}
}
