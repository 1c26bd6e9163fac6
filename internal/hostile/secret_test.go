//go:build linux

package hostile_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"haggle/market"
)

func TestASecretIsItsJobsAlone(t *testing.T) {
	h := only.get(t)
	h.unharmed(t) // the neighbour has one
	t.Run("its own job finds it", func(t *testing.T) {
		spec := h.spec(h.engine, "/attacker", "attack", "look=/run/secrets/own")
		spec.Secrets = map[string][]byte{"own": []byte("mine")}
		o := h.run(t, h.engine, spec)
		if r, tried := o.result("look"); !tried || r.Holds {
			t.Errorf("the job does not find its secret: %+v %q", r, o.out)
		}
	})
	t.Run("another job does not", func(t *testing.T) {
		h.attack(t, "look=/run/secrets/key,/run/secrets/own", "proc-roots=/run/secrets/key").each(t, []attempt{
			{"by its name", "look"}, {"through other processes", "proc-roots"},
		})
	})
	t.Run("it is in no file of the engine on a disk", func(t *testing.T) {
		_ = filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(neighboursSecret)) {
				t.Errorf("%s holds it", path)
			}
			return nil
		})
	})
	t.Run("the engine's own words do not tell it", func(t *testing.T) {
		all, err := h.engine.List(deadline(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range all {
			for k, v := range st.Labels {
				if strings.Contains(k+v, neighboursSecret) {
					t.Errorf("label %s tells it", k)
				}
			}
		}
		if strings.Contains(h.log.tail(), neighboursSecret) {
			t.Error("the log tells it")
		}
	})
}

func TestMemoryOfOthersIsOutOfReach(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	h.shareMemory(t)
	writer := h.spec(h.engine, "/attacker", "attack", "leave=/dev/shm/left,/tmp/left,/work/left")
	h.start(t, h.engine, writer)
	h.await(t, h.engine, writer.ID, `"left"`)
	h.all(t, []attempt{
		{"files in another job's shared memory are not there", "look=/dev/shm/left,/tmp/left,/work/left"},
		{"the host's shared memory cannot be found by its key", "sysv=1751216999"},
	})
}

func TestControlSequencesReachNoTerminal(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	o := h.attack(t, "control-text")
	const raw = "\x1b]0;owned\x07\x1b[2J\x1b[31m"
	if !strings.Contains(o.out, raw) {
		t.Errorf("a pipe gets other bytes than the job wrote: %q", o.out)
	}
	for _, c := range market.Printable(o.out) {
		if c == 0x1b || c == 0x07 || c == 0x9b || c == 0 || c == '\u202e' || c == '\r' {
			t.Errorf("%q is shown", c)
		}
	}
}

func TestADiskOfAnEndedJobHoldsNothingForTheNext(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	spec := h.spec(h.engine, "/attacker", "attack", "leave=/work/left,/left")
	h.start(t, h.engine, spec)
	h.await(t, h.engine, spec.ID, `"left"`)
	if err := h.engine.Remove(deadline(t), spec.ID); err != nil {
		t.Fatal(err)
	}
	next := h.spec(h.engine, "/attacker", "attack", "look=/work/left,/left")
	next.ID = spec.ID // even by the same name
	h.run(t, h.engine, next).held(t, "look")
	if st, err := h.engine.Status(deadline(t), spec.ID); err == nil {
		t.Errorf("the job is still there: %+v", st)
	}
}

func TestADiskFullOfTrapsIsDestroyedAndNothingElse(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	h.attack(t, "traps="+h.canary).held(t, "traps") // which also removes the job
}

func TestAJobThatWillNotDieIsGoneWithAllItsChildren(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	spec := h.spec(h.engine, "/attacker", "attack", "orphans=100,15")
	h.start(t, h.engine, spec)
	h.await(t, h.engine, spec.ID, `"orphans-there"`)
	if err := h.engine.Stop(deadline(t), spec.ID, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if pid, err := h.pid(h.engine, spec.ID); err == nil {
		t.Errorf("process %d is left of it", pid)
	}
}
