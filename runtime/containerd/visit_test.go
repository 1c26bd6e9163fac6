//go:build linux

package containerd_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// keep runs a job that writes a file and ends.
func (w *world) keep(t *testing.T, spec runtime.Spec) {
	t.Helper()
	ctx := w.context(t)
	spec.Args = []string{"write", "/work/kept", "kept"}
	if err := errors.Join(w.engine.Create(ctx, spec), w.engine.Start(ctx, spec.ID)); err != nil {
		t.Fatal(err)
	}
	if st := w.awaitExit(t, spec.ID); st.Exit == nil || st.Exit.Code != 0 {
		t.Fatalf("it ended as %+v", st)
	}
}

// room is what the disk of a job takes.
func (w *world) room(t *testing.T, id string) int64 {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(filepath.Join(w.cfg.VolumeDir, id+".img"), &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// settled reports whether the disk of a job has been closed for good: only then does its room count as given back, a moment after
// it was.
func (w *world) settled(t *testing.T, id string) bool {
	t.Helper()
	info, err := os.Stat(filepath.Join(w.cfg.VolumeDir, id+".img"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()&0o200 == 0
}

func newVisitWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.cfg.VolumeDir = w.cfg.Root + "/disks" // where it is by default
	return w
}

func TestAVisitIsNoJobAndGoesByItself(t *testing.T) {
	w := newVisitWorld(t)
	const size = 64 << 20
	w.keep(t, runtime.Spec{ID: "ended", Image: w.image(t), DiskBytes: size})
	ctx := w.context(t)
	events, err := w.engine.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now() // the job's own end may be told after it was seen
	path := w.enter(t, "ended")
	if got := w.ask(t, "ended", "read /work/kept\n"); got != "kept" {
		t.Errorf("the visitor finds %q", got)
	}
	if n := w.room(t, "ended"); n < size {
		t.Errorf("a disk that can be written to has %d of its %d bytes", n, size)
	}
	all, err := w.engine.List(ctx)
	if err != nil || len(all) != 1 || all[0].ID != "ended" || all[0].State != runtime.Stopped {
		t.Errorf("the engine lists %+v: %v", all, err)
	}
	visits, err := filepath.Glob(w.cfg.JobsDir + "/haggle-visit-*")
	if err != nil || len(visits) != 1 {
		t.Fatalf("there are visits %q: %v", visits, err)
	}
	visit := filepath.Base(visits[0])
	if _, err := w.engine.Status(ctx, visit); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("the visit is a job: %v", err)
	}
	if err := w.engine.Create(ctx, runtime.Spec{ID: visit, Image: w.image(t)}); !errors.Is(err, runtime.ErrInvalidSpec) {
		t.Errorf("a job by the name of a visit: %v", err)
	}
	report, err := w.engine.Sweep(ctx, func(id string) bool { return id == "ended" })
	if err != nil || len(report.Jobs)+len(report.Snapshots)+len(report.Disks)+len(report.Logs) > 0 {
		t.Errorf("a sweep beside it removes %+v: %v", report, err)
	}
	if got := w.ask(t, "ended", "count\n"); got != "3" {
		t.Errorf("after the sweep it is path %s", got)
	}
	// The test does not wait until it goes by itself.
	if err := syscall.Kill(w.doors(t)[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if n, err := path.Read(make([]byte, 1)); err == nil {
		t.Errorf("the path gives %d bytes after its end", n)
	}
	for deadline := time.Now().Add(patience); len(visits) > 0 || w.room(t, "ended") > size/2; {
		if visits, err = filepath.Glob(w.cfg.JobsDir + "/haggle-visit-*"); err != nil || time.Now().After(deadline) {
			t.Fatalf("after the visit there is %q, and the disk still takes %d bytes: %v", visits, w.room(t, "ended"), err)
		}
		if _, err := w.engine.List(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.engine.Remove(ctx, "ended"); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case ev := <-events:
			if !ev.At.Before(before) {
				t.Errorf("an event tells of it: %+v", ev)
			}
			continue
		default:
		}
		break
	}
}

func TestAVisitToAJobThatIsRemovedEnds(t *testing.T) {
	w := newVisitWorld(t)
	image := w.image(t)
	before := w.remains(t)
	for n := range 4 {
		id := fmt.Sprintf("ended-%d", n)
		w.keep(t, runtime.Spec{ID: id, Image: image, DiskBytes: 32 << 20})
		path := w.enter(t, id)
		if n%2 == 1 { // for the next engine it is what it was
			w.end()
			w.open(t)
			if got := w.ask(t, id, "count\n"); got != "2" {
				t.Errorf("for the next engine it is path %s", got)
			}
		}
		var err error
		if n < 2 {
			err = w.engine.Remove(w.context(t), id)
		} else {
			_, err = w.engine.Sweep(w.context(t), func(string) bool { return false })
		}
		if err != nil {
			t.Fatal(err)
		}
		if n, err := path.Read(make([]byte, 1)); err == nil {
			t.Errorf("the path gives %d bytes after its end", n)
		}
		w.wantRemains(t, before)
	}
}

func TestNothingIsLeftOfDoorsAndVisits(t *testing.T) {
	w := newVisitWorld(t)
	image := w.image(t)
	before := w.remains(t)
	cycles := 6
	if full() {
		cycles = 100
	}
	for n := range cycles {
		first := victimSpec(fmt.Sprintf("cycle-%d", n), image, "")
		if err := inherit(w.context(t), w.engine, first, io.Discard); err != nil {
			t.Fatal(err)
		}
		if got := w.ask(t, heirOf(first).ID, "read /work/kept\n"); got != "kept" {
			t.Errorf("the visit to the second job finds %q", got)
		}
		ids := []string{first.ID, heirOf(first).ID}
		for i := range ids {
			if err := w.engine.Remove(w.context(t), ids[(n+i)%2]); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.wantRemains(t, before)
}

// newSmallDisk is a small file system for disks, which outlives the world that is made after it.
func newSmallDisk(t *testing.T) string {
	t.Helper()
	requireContainerd(t)
	dir, err := os.MkdirTemp("/tmp", "hgsmall") //nolint:usetesting // jobs pass through it
	if err != nil {
		t.Fatal(err)
	}
	file, at := dir+"/file", dir+"/at"
	if err := errors.Join(os.Chmod(dir, 0o711), os.WriteFile(file, nil, 0o600), os.Truncate(file, 256<<20), os.Mkdir(at, 0o711)); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"/usr/sbin/mkfs.ext4", "-q", "-F", "-m", "0", file}, {"mount", "-o", "loop", file, at}, {"chmod", "0711", at}} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if err := errors.Join(unix.Unmount(at, 0), os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return at
}

func TestWhatWasKeptIsReadWhereThereIsNoRoomToWrite(t *testing.T) {
	small := newSmallDisk(t)
	w := newVisitWorld(t)
	w.end()
	if err := os.Remove(w.cfg.VolumeDir); err != nil {
		t.Fatal(err)
	}
	w.cfg.VolumeDir = small + "/disks"
	w.open(t)
	ctx := w.context(t)
	image := w.image(t)
	w.keep(t, runtime.Spec{ID: "ended", Image: image, DiskBytes: 96 << 20})
	for deadline := time.Now().Add(patience); !w.settled(t, "ended"); {
		if time.Now().After(deadline) {
			t.Fatalf("the disk of the ended job may still be written to, and takes %d bytes", w.room(t, "ended"))
		}
		if _, err := w.engine.Usage(ctx, "ended"); err != nil {
			t.Fatal(err)
		}
	}
	other := runtime.Spec{ID: "other", Image: image, Args: []string{"stubborn"}, DiskBytes: 128 << 20}
	if err := w.engine.Create(ctx, other); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := w.ask(t, "ended", "read /work/kept\n"); got != "kept" {
			t.Errorf("the visitor finds %q", got)
		}
		if got := w.ask(t, "ended", "read /proc/self/mountinfo\n"); !strings.Contains(got, " /work ro,") {
			t.Errorf("the visitor has %s", got)
		}
	}
	if n := w.room(t, "ended"); n > 48<<20 {
		t.Errorf("visited, it takes %d bytes", n)
	}
	again := runtime.Spec{ID: "again", From: "ended", Image: image, Args: []string{"stubborn"}, DiskBytes: 96 << 20}
	if err := w.engine.Create(ctx, again); !errors.Is(err, runtime.ErrNoRoom) {
		t.Errorf("a job that would write to it: %v", err)
	}
	if got := w.ask(t, "ended", "read /work/kept\n"); got != "kept" {
		t.Errorf("after that the visitor finds %q", got)
	}
	if err := w.engine.Remove(ctx, "other"); err != nil {
		t.Fatal(err)
	}
	if err := w.engine.Create(ctx, again); err != nil {
		t.Error(err)
	}
}
