//go:build linux

package hostile_test

import (
	"strings"
	"testing"

	"haggle/runtime"
	"haggle/runtime/containerd"
)

func TestTheRigsOwnCheckSeesThatEveryWallHolds(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	found := h.engine.Check(deadline(t))
	names := map[string]bool{}
	for _, p := range found {
		names[p.Name] = true
		if !p.Holds {
			t.Errorf("%s: %s", p.Name, p.Found)
		}
		t.Logf("%s: %s", p.Name, p.Found)
	}
	for _, name := range []string{
		"user-namespace", "seccomp", "capabilities", "no-new-privileges", "mknod", "mount", "masked-paths", "write-proc", "device-open",
		"raw-socket", "lan", "rig", "metadata", "ipv6", "ptrace-outside", "keyctl", "bpf", "pids-bounded",
	} {
		if !names[name] {
			t.Errorf("%s was not tried", name)
		}
	}
	c, err := h.engine.Probe(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	if c.Isolation != runtime.IsolationUserns {
		t.Errorf("isolation %q is promised", c.Isolation)
	}
}

func TestTheRigsOwnCheckSeesWhatIsMissing(t *testing.T) {
	h := only.get(t)
	e, err := h.open("checked", containerd.Seccomp)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}()
	var missing []string
	for _, p := range e.Check(deadline(t)) {
		if !p.Holds {
			missing = append(missing, p.Name)
			if p.Fix == "" {
				t.Errorf("nobody says what to do about %s", p.Name)
			}
		}
	}
	if !strings.Contains(strings.Join(missing, " "), "seccomp") {
		t.Errorf("without the filter of calls only this is missing: %q", missing)
	}
	if c, err := e.Probe(deadline(t)); err != nil || c.Isolation != runtime.IsolationRunc {
		t.Errorf("isolation %q is promised (%v)", c.Isolation, err)
	}
}
