//go:build linux

package hostile_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"haggle/runtime"
)

// awaitSpare waits until the engine keeps a spare container, and returns the folder of what leads to its first process.
func (h *house) awaitSpare(t *testing.T) string {
	t.Helper()
	for ctx := deadline(t); ctx.Err() == nil; {
		found, err := filepath.Glob("/run/haggle-jobs/*/haggle-spare-*/wait")
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range found {
			name := filepath.Base(filepath.Dir(dir))
			ours, _ := filepath.Glob("/sys/fs/cgroup/*" + h.engine.cfg.CgroupParent + "/" + name)
			unified, _ := filepath.Glob("/sys/fs/cgroup" + h.engine.cfg.CgroupParent + "/" + name)
			if len(ours)+len(unified) > 0 {
				return dir
			}
		}
		select {
		case <-time.After(10 * time.Millisecond): // the folder is in memory, and nobody tells of changes to it
		case <-ctx.Done():
		}
	}
	t.Fatal("there is no spare")
	return ""
}

// wasSpare starts a job that was a spare before. A spare is seen a moment before the engine gives it to jobs, so that on a busy
// machine the first jobs may be made without it.
func (h *house) wasSpare(t *testing.T, args ...string) runtime.Spec {
	t.Helper()
	for ctx := deadline(t); ctx.Err() == nil; {
		h.awaitSpare(t)
		spec := h.spec(h.engine, args...)
		h.start(t, h.engine, spec)
		cgroup, err := h.engine.Cgroup(deadline(t), spec.ID)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(filepath.Base(cgroup), "haggle-spare-") {
			return spec
		}
		if err := h.engine.Remove(ctx, spec.ID); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("no job takes a spare over")
	return runtime.Spec{}
}

func TestAJobAndASpareAreStrangers(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	h.attack(t, "look=/none") // after which a spare is made
	way := h.awaitSpare(t)

	t.Run("a job finds no way to it", func(t *testing.T) {
		places := "/dev/.haggle,/dev/.haggle/told,/dev/.haggle/says," + way + "," + way + "/told," + filepath.Dir(way)
		for _, spec := range []runtime.Spec{
			h.wasSpare(t, "/attacker", "attack", "look="+places, "proc-roots=/dev/.haggle/told"),
			h.spec(h.engine, "/attacker", "attack", "look="+places, "proc-roots=/dev/.haggle/told"),
		} {
			if _, err := h.engine.Status(deadline(t), spec.ID); err != nil {
				h.start(t, h.engine, spec)
			}
			o, err := h.finish(t, h.engine, spec.ID)
			if err != nil {
				t.Fatal(err)
			}
			o.held(t, "look")
			o.held(t, "proc-roots")
		}
	})

	t.Run("a neighbour's user cannot tell it anything, nor hear it", func(t *testing.T) {
		way := h.awaitSpare(t)
		spec := h.spec(h.engine, "/probe", "stubborn")
		h.start(t, h.engine, spec)
		pid, err := h.pid(h.engine, spec.ID)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		if err != nil {
			t.Fatal(err)
		}
		user := info.Sys().(*syscall.Stat_t).Uid
		if other, err := os.Stat(way + "/told"); err == nil && other.Sys().(*syscall.Stat_t).Uid == user {
			way = h.awaitSpare(t) // that one has become the neighbour's
		}
		// As it were if it had broken out of its file system.
		for _, try := range []string{"echo forged >" + way + "/told", "read x <" + way + "/says", "cat " + filepath.Dir(way) + "/secrets/*", "ls " + filepath.Dir(filepath.Dir(way))} {
			cmd := exec.CommandContext(t.Context(), "timeout", "5", "sh", "-c", try)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
			var exit *exec.ExitError
			if out, err := cmd.CombinedOutput(); !errors.As(err, &exit) || exit.ExitCode() == 124 {
				t.Errorf("%s: %v %s", try, err, out)
			} else {
				t.Logf("%s", out)
			}
		}
	})

	t.Run("a job cannot forge what its own first process was told", func(t *testing.T) {
		spec := h.wasSpare(t, "/probe", "stubborn")
		h.await(t, h.engine, spec.ID, "ready")
		cgroup, err := h.engine.Cgroup(deadline(t), spec.ID)
		if err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob("/run/haggle-jobs/*/" + filepath.Base(cgroup) + "/wait*"); len(left) > 0 {
			t.Errorf("the way to it is still there: %q", left)
		}
	})
}
