//go:build linux

package containerd_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"haggle/runtime"
	"haggle/runtime/containerd"
	"haggle/runtime/runtimetest"
)

// newWarmWorld is a world whose engine takes spares over. It makes none by itself, unless spares says how many.
func newWarmWorld(t *testing.T, spares int) *world {
	t.Helper()
	w := newWorld(t)
	w.end()
	w.cfg.Spares, w.cfg.WaitProgram = spares, []string{insider(t), "wait"}
	w.open(t)
	return w
}

// warm makes a spare for a job and then the job, and fails unless the job got the spare.
func (w *world) warm(t *testing.T, spec runtime.Spec) {
	t.Helper()
	ctx := w.context(t)
	name, err := w.engine.Warm(ctx, spec)
	if err == nil {
		err = w.engine.Create(ctx, spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.wantContainer(t, spec.ID, name)
}

func (w *world) wantContainer(t *testing.T, id, name string) {
	t.Helper()
	cgroup, err := w.engine.Cgroup(w.context(t), id)
	if err != nil || name == "" || filepath.Base(cgroup) != name {
		t.Fatalf("job %s is in %s and not in %s: %v", id, cgroup, name, err)
	}
}

// alwaysWarm makes a spare for every job before the job.
type alwaysWarm struct {
	*containerd.Engine
	made, taken *atomic.Int64
}

func (e alwaysWarm) Create(ctx context.Context, spec runtime.Spec) error {
	name, _ := e.Warm(ctx, spec) // what is wrong with the job, Create says
	if name != "" {
		e.made.Add(1)
	}
	err := e.Engine.Create(ctx, spec)
	if cgroup, _ := e.Cgroup(ctx, spec.ID); err == nil && name != "" && strings.HasSuffix(cgroup, "/"+name) {
		e.taken.Add(1)
	}
	return err
}

func TestTheEngineConformsWithSpares(t *testing.T) {
	w := newWarmWorld(t, 0)
	e := alwaysWarm{w.engine, new(atomic.Int64), new(atomic.Int64)}
	runtimetest.Conformance(t, runtimetest.Subject{Runtime: e, Program: probeFile(t), Patience: patience})
	t.Logf("%d spares were made, and %d taken over", e.made.Load(), e.taken.Load())
	if e.taken.Load() < 5 {
		t.Error("hardly any job was a spare")
	}
}

// spares names the containers that wait, by their folders.
func (w *world) spares(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(w.cfg.JobsDir + "/haggle-spare-*/wait")
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range found {
		found[i] = filepath.Base(filepath.Dir(f))
	}
	return found
}

func TestTheEngineMakesTheNextSpareByItself(t *testing.T) {
	w := newWarmWorld(t, 1)
	spec := runtime.Spec{ID: "warm", Image: w.image(t), Args: []string{"print", "hello"}, DiskBytes: 32 << 20}
	events, err := w.engine.Watch(w.context(t))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		ctx := w.context(t)
		before := w.spares(t)
		began := time.Now()
		if err := w.engine.Create(ctx, spec); err != nil {
			t.Fatal(err)
		}
		created := time.Now()
		if err := w.engine.Start(ctx, "warm"); err != nil {
			t.Fatal(err)
		}
		t.Logf("create took %s, start %s", created.Sub(began), time.Since(created))
		if out, _ := w.read(t, "warm", 0, ""); out != "hello\n" {
			t.Errorf("it said %q", out)
		}
		if n > 0 {
			w.wantContainer(t, "warm", before[0])
		}
		if err := w.engine.AwaitSpare(ctx); err != nil {
			t.Fatal(err)
		}
		if list, err := w.engine.List(ctx); err != nil || len(list) != 1 || list[0].ID != "warm" {
			t.Errorf("the list is %+v: %v", list, err)
		}
		if err := w.engine.Remove(ctx, "warm"); err != nil {
			t.Fatal(err)
		}
		// What nobody asked for is kept, because it is ours.
		if r, err := w.engine.Sweep(ctx, func(string) bool { return false }); err != nil || len(r.Jobs)+len(r.Disks)+len(r.Logs)+len(r.Snapshots) > 0 {
			t.Errorf("the sweep removed %+v: %v", r, err)
		}
		if found := w.spares(t); len(found) != 1 {
			t.Errorf("spares %q", found)
		}
		for _, want := range []runtime.EventKind{runtime.EventStarted, runtime.EventExited} {
			if ev := <-events; ev.ID != "warm" || ev.Kind != want {
				t.Errorf("event %+v, not %s", ev, want)
			}
		}
	}
	// A job of another shape is made as ever, and its next takes the place.
	other := spec
	other.MemoryBytes = 128 << 20
	if err := w.engine.Create(w.context(t), other); err != nil {
		t.Fatal(err)
	}
	if err := w.engine.AwaitSpare(w.context(t)); err != nil {
		t.Fatal(err)
	}
	if found := w.spares(t); len(found) != 1 {
		t.Errorf("spares %q", found)
	}
	w.end()
	if found := w.spares(t); len(found) != 0 {
		t.Errorf("spares %q outlive their engine", found)
	}
	w.open(t)
}

func TestATakenSpareOutlivesItsEngine(t *testing.T) {
	w := newWarmWorld(t, 0)
	image := w.image(t)
	spec := runtime.Spec{ID: "made", Image: image, Args: []string{"polite"}, Labels: map[string]string{"of": "job"}, DiskBytes: 32 << 20}
	w.warm(t, spec)
	ordered, running := spec, spec
	ordered.ID, running.ID = "ordered", "running"
	w.warm(t, ordered)
	w.warm(t, running)
	if err := errors.Join(w.engine.OrderStart(w.context(t), "ordered"), w.engine.Start(w.context(t), "running")); err != nil {
		t.Fatal(err)
	}
	w.read(t, "running", 0, "ready")
	w.end()
	w.open(t)
	ctx := w.context(t)
	for id, want := range map[string]runtime.State{"made": runtime.Created, "ordered": runtime.Running, "running": runtime.Running} {
		st, err := w.engine.Status(ctx, id)
		if err != nil || st.State != want || st.Labels["of"] != "job" || st.ID != id {
			t.Errorf("%s is %+v: %v", id, st, err)
		}
	}
	w.read(t, "ordered", 0, "ready") // its order was on record
	if err := errors.Join(w.engine.Create(ctx, spec), w.engine.Start(ctx, "made")); err != nil {
		t.Fatal(err)
	}
	w.read(t, "made", 0, "ready")
	if _, err := w.engine.Sweep(ctx, func(id string) bool { return id == "made" || id == "ordered" || id == "running" }); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"made", "ordered", "running"} {
		if err := w.engine.Stop(ctx, id, patience); err != nil {
			t.Fatal(err)
		}
		if st := w.awaitExit(t, id); st.Exit == nil || st.Exit.Code != 143 {
			t.Errorf("%s ended as %+v", id, st.Exit)
		}
		if out, _ := w.read(t, id, 0, ""); out != "ready\nsaved\n" {
			t.Errorf("%s said %q", id, out)
		}
	}
	other := spec
	other.Args = []string{"stubborn"}
	if err := w.engine.Create(ctx, other); !errors.Is(err, runtime.ErrConflict) {
		t.Errorf("another job under the same id: %v", err)
	}
}

func TestASpareThatHasDiedIsNoHindrance(t *testing.T) {
	w := newWarmWorld(t, 0)
	spec := runtime.Spec{ID: "job", Image: w.image(t), Args: []string{"polite"}, DiskBytes: 32 << 20}
	name, err := w.engine.Warm(w.context(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range jobProcesses(t, w.cfg.CgroupParent+"/"+name) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		awaitGone(t, pid)
	}
	if err := errors.Join(w.engine.Create(w.context(t), spec), w.engine.Start(w.context(t), "job")); err != nil {
		t.Fatal(err)
	}
	w.read(t, "job", 0, "ready")
	w.wantContainer(t, "job", "job")
	if _, err := os.Stat(filepath.Join(w.cfg.JobsDir, name)); err == nil {
		t.Error("the dead one is left")
	}
}

func TestNoJobMayBearTheNameOfASpare(t *testing.T) {
	w := newWarmWorld(t, 0)
	spec := runtime.Spec{ID: "job", Image: w.image(t), Args: []string{"polite"}, DiskBytes: 32 << 20}
	name, err := w.engine.Warm(w.context(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx := w.context(t)
	spec.ID = name
	if err := w.engine.Create(ctx, spec); !errors.Is(err, runtime.ErrInvalidSpec) {
		t.Errorf("create: %v", err)
	}
	if _, err := w.engine.Status(ctx, name); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("status: %v", err)
	}
	if err := w.engine.Start(ctx, name); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("start: %v", err)
	}
	if err := errors.Join(w.engine.Remove(ctx, name)); err != nil || len(w.spares(t)) != 1 {
		t.Errorf("it was removed: %v", err)
	}
}

func TestASpareGivesItsRoomToAJob(t *testing.T) {
	w := newWarmWorld(t, 0)
	w.end()
	w.cfg.IDBase = 0x7ffd_0000 // the last range of ids, so that there is one
	w.open(t)
	spec := runtime.Spec{ID: "job", Image: w.image(t), Args: []string{"polite"}, DiskBytes: 32 << 20}
	if _, err := w.engine.Warm(w.context(t), spec); err != nil {
		t.Fatal(err)
	}
	spec.MemoryBytes = 256 << 20
	if err := errors.Join(w.engine.Create(w.context(t), spec), w.engine.Start(w.context(t), "job")); err != nil {
		t.Fatal(err)
	}
	w.read(t, "job", 0, "ready")
	w.wantContainer(t, "job", "job")
	if found := w.spares(t); len(found) > 0 {
		t.Errorf("spares %q are left", found)
	}
	spec.ID = "one-too-many"
	if err := w.engine.Create(w.context(t), spec); !errors.Is(err, runtime.ErrNoRoom) {
		t.Errorf("a job without ids: %v", err)
	}
}
