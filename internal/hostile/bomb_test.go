//go:build linux

package hostile_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// size is small in a quick run and large where HAGGLE_FULL asks for all.
func size(quick, full int) int {
	if os.Getenv("HAGGLE_FULL") == "1" {
		return full
	}
	return quick
}

func TestBombsOfCountsAreBounded(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	h.all(t, []attempt{
		{"a fork bomb ends at the job's bound on processes", fmt.Sprintf("fork-bomb=%d", size(400, 6000))},
		{"a thread bomb ends at the same bound", fmt.Sprintf("thread-bomb=%d", size(400, 6000))},
		{"open files are bounded", "open-files=1048576"},
		{"files in memory are bounded by the size of /dev/shm", "tmpfs-bomb=128"},
		{"watchers of files are bounded", "inotify=20000"},
		{"queues, semaphores and shared memory are bounded", fmt.Sprintf("queues=%d", size(40000, 100000))},
		{"locked memory is bounded", "locked-memory=512"},
	})
}

func TestWhatTheMachineHasOneNumberOfIsNotTakenFromOthers(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	t.Run("asynchronous requests", func(t *testing.T) {
		spec := h.spec(h.engine, "/attacker", "attack", "aio=1048576,10")
		h.start(t, h.engine, spec)
		h.await(t, h.engine, spec.ID, `"aio-taken"`)
		var context uintptr
		if _, _, no := unix.Syscall(unix.SYS_IO_SETUP, 128, uintptr(unsafe.Pointer(&context)), 0); no != 0 {
			t.Errorf("none are left for the host: %v", no)
		} else {
			_, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, context, 0, 0)
		}
	})
	t.Run("terminals", func(t *testing.T) {
		spec := h.spec(h.engine, "/attacker", "attack", "terminals=6000,10")
		h.start(t, h.engine, spec)
		h.await(t, h.engine, spec.ID, `"terminals-taken"`)
		if f, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
			t.Errorf("none are left for the host: %v", err)
		} else {
			_ = f.Close()
		}
		// Where a neighbour gets one, the attack says that it does not hold.
		o := h.attack(t, "terminals=1")
		if r, _ := o.result("terminals"); r.Count != 1 {
			t.Errorf("none are left for a neighbour: %s", r.Found)
		}
	})
}

func TestAMemoryBombIsKilledAndToldApartFromAKill(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	o := h.attack(t, "memory-bomb=512")
	if o.exit == nil || o.exit.Code != 137 || !o.exit.OOM {
		t.Errorf("exit %+v, said %q", o.exit, o.out)
	}
	killed := h.spec(h.engine, "/probe", "stubborn")
	h.start(t, h.engine, killed)
	h.await(t, h.engine, killed.ID, "ready")
	if err := h.engine.Kill(deadline(t), killed.ID); err != nil {
		t.Fatal(err)
	}
	if st, err := h.engine.Status(deadline(t), killed.ID); err != nil || st.Exit == nil || st.Exit.Code != 137 || st.Exit.OOM {
		t.Errorf("a killed job: %+v %v", st.Exit, err)
	}
}

func TestADiskThatIsFilledIsFullForItsJobAlone(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	events, err := h.engine.Watch(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	h.awaitSpare(t) // which has a disk too, before and after
	before, _ := h.taken()
	spec := h.spec(h.engine, "/attacker", "attack", fmt.Sprintf("disk-fill=%d,5,die", size(256, 3072)))
	o := h.run(t, h.engine, spec)
	if r := o.held(t, "disk-fill"); r.Count > spec.DiskBytes>>20 {
		t.Errorf("%d MiB fit on a disk of %d", r.Count, spec.DiskBytes>>20)
	}
	if o.exit == nil || o.exit.Code != 1 || !o.exit.DiskFull {
		t.Errorf("exit %+v does not tell that the disk was full", o.exit)
	}
	full := 0
	for done := false; !done; {
		select {
		case ev := <-events:
			if ev.ID == spec.ID && ev.Kind == runtime.EventDiskFull {
				full++
			}
			done = ev.ID == spec.ID && ev.Kind == runtime.EventExited
		case <-deadline(t).Done():
			t.Fatal("no news of the end of the job")
		}
	}
	if full != 1 {
		t.Errorf("%d events say that the disk is full", full)
	}
	h.awaitSpare(t)
	if after, _ := h.taken(); after > before+32<<20 {
		t.Errorf("%d bytes of the host's disk are gone after the job", after-before)
	}
}

func TestADiskHasRoomForSoManyFilesOnly(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	_, before := h.taken()
	h.attack(t, fmt.Sprintf("inode-fill=%d", size(100_000, 2_000_000))).held(t, "inode-fill")
	if _, after := h.taken(); after > before+1000 {
		t.Errorf("%d files are left after the job", after-before)
	}
}

func TestAFloodOfOutputIsCutAndTheJobGoesOn(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	spec := h.spec(h.engine, "/attacker", "attack", fmt.Sprintf("log-flood=%d", size(200, 1000)))
	h.start(t, h.engine, spec)
	o, err := h.finish(t, h.engine, spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(o.out)) > spec.LogLimitBytes+4096 {
		t.Errorf("the log holds %d bytes, its limit is %d", len(o.out), spec.LogLimitBytes)
	}
	if !strings.Contains(o.out[max(0, len(o.out)-4096):], "the log is full") {
		t.Errorf("the log does not say that it was cut: %q", o.out[max(0, len(o.out)-300):])
	}
	if o.exit == nil || o.exit.Code != 0 {
		t.Errorf("the job did not go on to its end: %+v", o.exit)
	}
	var used int64
	if info, err := os.Stat(h.engine.cfg.LogDir + "/" + spec.ID + ".log"); err == nil {
		used = info.Size()
	}
	if used > spec.LogLimitBytes+4096 {
		t.Errorf("the log's file has %d bytes", used)
	}
}

func TestAJobThatHogsTheProcessorGetsItsShareAndNoMore(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	if v := h.hog(t, h.engine); v != "" {
		t.Error(v)
	}
}

// hog runs a job with four busy threads and a small share of one processor, and returns what is wrong with its cgroup's
// figures. They count periods, so that a busy machine changes nothing but the time that it takes.
func (h *house) hog(t *testing.T, e *engine) string {
	t.Helper()
	spec := h.spec(e, "/attacker", "attack", "cpu-hog=5")
	spec.CPUMillis = 50
	h.start(t, e, spec)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for ctx := deadline(t); ; <-again.C {
		periods, held := h.figure(e, spec.ID, "cpu", "cpu.stat", "nr_periods"), h.figure(e, spec.ID, "cpu", "cpu.stat", "nr_throttled")
		switch {
		case held > 0:
			return ""
		case periods > 200:
			return fmt.Sprintf("held back in %d of %d periods", held, periods)
		}
		if st, err := e.Status(ctx, spec.ID); err != nil || st.State == runtime.Stopped {
			return fmt.Sprintf("the job is %v (%v), held back in %d of %d periods", st.State, err, held, periods)
		}
	}
}
