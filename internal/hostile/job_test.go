//go:build linux

package hostile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"haggle/runtime"
	"haggle/runtime/inside"
)

// outcome is what became of a job.
type outcome struct {
	results map[string]inside.Result
	exit    *runtime.Exit
	out     string // what it wrote, stdout and stderr
	usage   runtime.Usage
}

// deadline bounds one step of a test.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// attack runs attacks in one job and returns what they found.
func (h *house) attack(t *testing.T, items ...string) outcome {
	t.Helper()
	return h.run(t, h.engine, h.spec(h.engine, append([]string{"/attacker", "attack"}, items...)...))
}

// run runs a job to its end and removes it.
func (h *house) run(t *testing.T, e *engine, spec runtime.Spec) outcome {
	t.Helper()
	o, err := h.tryRun(t, e, spec)
	if err != nil {
		t.Fatalf("%v\n%s", err, h.log.tail())
	}
	return o
}

func (h *house) tryRun(t *testing.T, e *engine, spec runtime.Spec) (o outcome, err error) {
	t.Helper()
	ctx := deadline(t)
	defer func() { err = errors.Join(err, e.Remove(ctx, spec.ID)) }()
	if err := errors.Join(e.Create(ctx, spec), e.Start(ctx, spec.ID)); err != nil {
		return o, err
	}
	return h.finish(t, e, spec.ID)
}

// start starts a job that the test ends.
func (h *house) start(t *testing.T, e *engine, spec runtime.Spec) {
	t.Helper()
	ctx := deadline(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := e.Remove(ctx, spec.ID); err != nil {
			t.Errorf("remove job %s: %v", spec.ID, err)
		}
	})
	if err := errors.Join(e.Create(ctx, spec), e.Start(ctx, spec.ID)); err != nil {
		t.Fatalf("%v\n%s", err, h.log.tail())
	}
}

// finish reads a job's log to its end.
func (h *house) finish(t *testing.T, e *engine, id string) (outcome, error) {
	t.Helper()
	ctx := deadline(t)
	o := outcome{results: map[string]inside.Result{}}
	r, err := e.Log(ctx, id, 0, true)
	if err != nil {
		return o, err
	}
	defer r.Close()
	var out bytes.Buffer
	if _, _, err := runtime.Demux(r, &out, &out); err != nil {
		return o, fmt.Errorf("log of %s: %w after %d bytes", id, err, out.Len())
	}
	o.out = out.String()
	for line := range strings.Lines(o.out) {
		var r inside.Result
		if json.Unmarshal([]byte(line), &r) == nil && r.Name != "" {
			o.results[r.Name] = r
		}
	}
	for {
		st, err := e.Status(ctx, id)
		if err != nil {
			return o, err
		}
		if st.State == runtime.Stopped {
			o.exit = st.Exit
			o.usage, _ = e.Usage(ctx, id)
			return o, nil
		}
	}
}

// await follows a job's log until it holds text.
func (h *house) await(t *testing.T, e *engine, id, text string) {
	t.Helper()
	r, err := e.Log(deadline(t), id, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	enough := errors.New("enough")
	var out bytes.Buffer
	_, _, err = runtime.Demux(r, writerFunc(func(p []byte) error {
		if out.Write(p); strings.Contains(out.String(), text) {
			return enough
		}
		return nil
	}), io.Discard)
	if !errors.Is(err, enough) {
		t.Fatalf("job %s never said %q: %v: %q", id, text, err, out.String())
	}
}

type writerFunc func([]byte) error

func (f writerFunc) Write(p []byte) (int, error) { return len(p), f(p) }

// result is what an attack found, by its name or by how it was ordered.
func (o outcome) result(item string) (inside.Result, bool) {
	if r, ok := o.results[item]; ok {
		return r, true
	}
	for ordered, r := range o.results {
		if strings.HasPrefix(ordered, item+"=") {
			return r, true
		}
	}
	return inside.Result{}, false
}

// held fails the test unless the wall held. What was found is in the test's log either way.
func (o outcome) held(t *testing.T, item string) inside.Result {
	t.Helper()
	r, tried := o.result(item)
	switch {
	case !tried:
		t.Errorf("%s was not tried: exit %+v, the job said %.2000q", item, o.exit, o.out)
	case !r.Holds:
		t.Errorf("%s: %s", item, r.Found)
	default:
		t.Logf("%s", r.Found)
	}
	return r
}

// pid is a process of the job, as the host numbers it.
func (h *house) pid(e *engine, id string) (int, error) {
	cgroup, err := e.Cgroup(context.Background(), id)
	if err != nil {
		return 0, err
	}
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids"} {
		b, err := os.ReadFile(filepath.Join(root, cgroup, "cgroup.procs"))
		if err != nil {
			continue
		}
		if pid, err := strconv.Atoi(strings.SplitN(string(b), "\n", 2)[0]); err == nil {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("job %s has no process", id)
}

// neighbour starts an honest job that counts, and returns a check that it still does.
func (h *house) neighbour(t *testing.T) {
	t.Helper()
	spec := h.spec(h.engine, "/probe", "count", "50")
	spec.CPUMillis = 500
	spec.Secrets = map[string][]byte{"key": []byte(neighboursSecret)}
	h.start(t, h.engine, spec)
	h.await(t, h.engine, spec.ID, "1\n")
	t.Cleanup(func() {
		if !t.Failed() {
			h.goesOn(t, spec.ID)
		}
	})
}

const neighboursSecret = "only the neighbour knows: 8d1f1c"

// goesOn fails the test unless the neighbour writes more than it had written.
func (h *house) goesOn(t *testing.T, id string) {
	t.Helper()
	ctx := deadline(t)
	r, err := h.engine.Log(ctx, id, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	_, _, err = runtime.Demux(r, &out, io.Discard)
	_ = r.Close()
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("log of the neighbour: %v", err)
	}
	h.await(t, h.engine, id, fmt.Sprintf("\n%d\n", strings.Count(out.String(), "\n")+3))
}

// unharmed checks at the end of a test that nothing was done to the machine.
func (h *house) unharmed(t *testing.T) {
	t.Helper()
	h.neighbour(t)
	t.Cleanup(func() {
		if now := h.sum(); now != h.canarySum {
			t.Errorf("files of the host changed from\n%s\nto\n%s", h.canarySum, now)
			h.canarySum = now
		}
		if err := h.guard.Process.Signal(unix.Signal(0)); err != nil {
			t.Errorf("the host's process is gone: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := h.engine.Probe(ctx); err != nil {
			t.Errorf("the engine does not answer: %v", err)
		}
	})
}

// figure reads a number from a file of a job's cgroup: the one behind key, or the only one. controller counts on cgroup v1.
func (h *house) figure(e *engine, id, controller, file, key string) int64 {
	cgroup, err := e.Cgroup(context.Background(), id)
	if err != nil {
		return -1
	}
	for _, root := range []string{"/sys/fs/cgroup", filepath.Join("/sys/fs/cgroup", controller)} {
		b, err := os.ReadFile(filepath.Join(root, cgroup, file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			fields := strings.Fields(line)
			if len(fields) == 0 || (key != "" && fields[0] != key) {
				continue
			}
			if n, err := strconv.ParseInt(fields[len(fields)-1], 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

// shareMemory makes old-style shared memory of the host's, under a key that attackers know.
func (h *house) shareMemory(t *testing.T) {
	t.Helper()
	const key = 1751216999
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil {
			t.Error(err)
		}
	})
}

// taken is what the house has on the machine's disk: bytes and files. Others use that disk too, so its free room tells little.
func (h *house) taken() (bytes, files int64) {
	_ = filepath.WalkDir(h.dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes, files = bytes+st.Blocks*512, files+1
			}
		}
		return nil
	})
	return bytes, files
}
