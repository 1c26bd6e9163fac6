//go:build linux

package hostile_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"haggle/runtime"
	"haggle/runtime/containerd"
	"haggle/runtime/device"
	"haggle/runtime/jobnet"
	"haggle/runtime/volume"
)

// leaning is an attack that must succeed when a protection is off. Where others stand behind it, they are off as well, and
// the attack must fail again with the protection alone on.
type leaning struct {
	protection string
	also       []string
	// attack returns whether the wall held, and what was found.
	attack func(t *testing.T, h *house, e *engine) (bool, string)
}

// tries is an attack from inside a job without a network.
func tries(item string) func(*testing.T, *house, *engine) (bool, string) {
	return func(t *testing.T, h *house, e *engine) (bool, string) {
		o, err := h.tryRun(t, e, h.spec(e, "/attacker", "attack", item))
		return o.verdict(err, item)
	}
}

// calls is an attack from inside a job with the internet.
func calls(item string) func(*testing.T, *house, *engine) (bool, string) {
	return func(t *testing.T, h *house, e *engine) (bool, string) {
		o, err := h.tryRun(t, e, h.online(e, "/attacker", "attack", item, "internet=tcp/"+internet+":80"))
		if r, _ := o.result("internet"); err == nil && !r.Holds {
			t.Errorf("the internet is out of reach, so nothing was tried: %s", r.Found)
		}
		return o.verdict(err, item)
	}
}

// verdict is that of one attack. A job that did not even start held.
func (o outcome) verdict(err error, item string) (bool, string) {
	if err != nil {
		return true, err.Error()
	}
	r, tried := o.result(item)
	if !tried {
		return true, fmt.Sprintf("the job ended before it: %+v %.300q", o.exit, o.out)
	}
	return r.Holds, r.Found
}

// leanings is one attack for each protection of the engine, its disks and its networks.
func leanings() []leaning {
	return []leaning{
		{containerd.UserNamespace, nil, tries("mapped-root")},
		{containerd.Seccomp, nil, tries("io-uring")},
		{containerd.Capabilities, nil, tries("capabilities")},
		{containerd.NoNewPrivileges, nil, tries("no-new-privileges")},
		{containerd.MaskedPaths, nil, tries("masked-paths")},
		{containerd.Pids, nil, tries("fork-bomb=400")},
		{containerd.Memory, nil, tries("memory-bomb=512")},
		{containerd.CPU, nil, func(t *testing.T, h *house, e *engine) (bool, string) {
			found := h.hog(t, e)
			return found == "", found
		}},
		{containerd.OpenFiles, nil, tries("open-files=6000")},
		{containerd.Shm, nil, tries("tmpfs-bomb=100")},
		// Who can make no node and maps no root finds none to open; the cgroup stands behind both.
		{containerd.DeviceCgroup, []string{containerd.UserNamespace, containerd.Capabilities}, tries("mknod-open=10:229")},
		{containerd.LogLimit, nil, overflowingLog},
		{containerd.ImageBounds, nil, bigImage},
		{volume.DiskQuota, nil, tries("disk-fill=96")},
		{volume.InodeQuota, nil, tries("inode-fill=20000")},
		{containerd.OneCardOneLease, nil, func(t *testing.T, h *house, e *engine) (bool, string) { return h.shared(t, e) }},
		{device.ProtectNodes, nil, demanding("the host's terminals")},
		{device.ProtectMounts, nil, demanding("the host's passwords")},
		{device.ProtectHooks, nil, demanding("a shell as a hook")},
		{device.ProtectEnv, nil, demanding("a preloaded library")},
		{jobnet.ReservedRanges, nil, calls("tcp=" + metadata + ":80")},
		{jobnet.ConnectedSubnets, nil, calls("tcp=" + publicHost + ":80")},
		{jobnet.OwnerRejects, nil, calls("tcp=" + ownersReject + ":80")},
		{jobnet.RigItself, nil, calls("tcp=" + rigPublic + ":22")},
		{jobnet.BlockedPorts, nil, calls("tcp=" + internet + ":25")},
		{jobnet.ConnectionRate, nil, calls("scan=" + internet2 + ",600,320")},
		{jobnet.OwnAddress, nil, func(t *testing.T, h *house, e *engine) (bool, string) {
			from := h.forge(t, e)
			return from == "", "arrived from " + from
		}},
		// A job's addresses are reserved ones too.
		{jobnet.NothingInbound, []string{jobnet.ReservedRanges}, neighbourCalls},
		{containerd.HookEnvironment, []string{device.ProtectHookEnv}, func(t *testing.T, h *house, e *engine) (bool, string) { return h.hooked(t, e) }},
	}
}

// provenElsewhere are protections whose absence the tests of their own packages show: it is seen on the wire, in rules or
// over a month, and not from inside a job. What devices do for the environment of hooks the engine does once more, for all.
func provenElsewhere() []string {
	return []string{
		jobnet.SilentARP, jobnet.NoIPv6, jobnet.NothingInherited, jobnet.ConnectionCount, jobnet.Bandwidth, jobnet.LowPriority,
		jobnet.MonthlyCap, jobnet.RouteGuard, jobnet.Repair, device.ProtectSlices, device.ProtectHookEnv,
	}
}

func TestEveryProtectionIsLeanedOn(t *testing.T) {
	known := slices.Concat(containerd.Protections(), volume.Protections(), jobnet.Protections(), device.Protections())
	named := provenElsewhere()
	for _, l := range leanings() {
		named = append(named, l.protection)
	}
	for _, p := range known {
		if !slices.Contains(named, p) {
			t.Errorf("no attack leans on %s", p)
		}
	}
	for _, p := range named {
		if !slices.Contains(known, p) {
			t.Errorf("there is no protection %s", p)
		}
	}
}

func TestEveryProtectionMatters(t *testing.T) {
	h := only.get(t)
	for _, l := range leanings() {
		t.Run("without "+l.protection+" an attack succeeds", func(t *testing.T) {
			h.unharmed(t)
			if len(l.also) > 0 {
				if held, found := h.weakened(t, l, l.also...); !held {
					t.Errorf("with %s alone it succeeds: %s", l.protection, found)
				}
			}
			held, found := h.weakened(t, l, append(slices.Clone(l.also), l.protection)...)
			if held && l.protection == containerd.HookEnvironment && !h.oldRunner(t) {
				t.Skipf("this runc keeps the job's environment from hooks by itself: %s", found)
			}
			if held {
				t.Errorf("it fails all the same: %s", found)
			}
			t.Log(found)
		})
	}
}

// oldRunner reports whether runc hands a hook without an environment the job's.
func (h *house) oldRunner(t *testing.T) bool {
	t.Helper()
	c, err := h.engine.Probe(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	return strings.HasPrefix(c.Runner, "runc 1.0") || strings.HasPrefix(c.Runner, "runc 1.1")
}

// weakened runs an attack in an engine of its own, without some protections.
func (h *house) weakened(t *testing.T, l leaning, without ...string) (bool, string) {
	t.Helper()
	e, err := h.open(weak, without...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.close(); err != nil {
			t.Errorf("engine without %s: %v", strings.Join(without, ", "), err)
		}
	}()
	if _, err := h.bring(e, "attacker", h.attackerImage()); err != nil {
		t.Fatal(err)
	}
	held, found := true, ""
	t.Run("attack", func(t *testing.T) { held, found = l.attack(t, h, e) }) // its jobs are gone before the engine is
	return held, found
}

// overflowingLog writes more than a log may hold.
func overflowingLog(t *testing.T, h *house, e *engine) (bool, string) {
	spec := h.spec(e, "/attacker", "attack", "log-flood=12")
	o, err := h.tryRun(t, e, spec)
	if err != nil {
		return true, err.Error()
	}
	return int64(len(o.out)) <= spec.LogLimitBytes+4096, fmt.Sprintf("%d bytes of log", len(o.out))
}

func bigImage(_ *testing.T, h *house, e *engine) (bool, string) {
	_, err := h.bring(e, "bomb", image{gzip: true, layers: [][]entry{{{name: "bomb", zeros: 128 << 20}}}})
	return errors.Is(err, runtime.ErrImageTooBig), fmt.Sprintf("import: %v", err)
}

// demanding is a description of a card that asks for too much.
func demanding(what string) func(*testing.T, *house, *engine) (bool, string) {
	return func(t *testing.T, h *house, e *engine) (bool, string) {
		err := h.demand(t, e, h.demands()[what])
		return errors.Is(err, runtime.ErrPolicy) || errors.Is(err, runtime.ErrNoDevice), fmt.Sprintf("job with %s: %v", what, err)
	}
}

// neighbourCalls calls a job from another one.
func neighbourCalls(t *testing.T, h *house, e *engine) (bool, string) {
	spec := h.online(e, "/attacker", "attack", "listen=4444,50")
	h.start(t, e, spec)
	h.await(t, e, spec.ID, `"listening"`)
	return calls("tcp="+h.address(t, e, spec.ID)+":4444")(t, h, e)
}
