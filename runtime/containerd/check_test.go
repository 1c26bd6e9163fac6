//go:build linux

package containerd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"haggle/runtime"
	"haggle/runtime/containerd"
)

// insider is a program that tries the protections out from inside a job, built once.
func insider(t *testing.T) string {
	t.Helper()
	path, err := buildInsider()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var buildInsider = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "insider")
	cmd := exec.Command("go", "build", "-o", path, "./testdata/insider")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build insider: %w: %s", err, out)
	}
	return path, nil
})

func find(all []runtime.Protection, name string) runtime.Protection {
	i := slices.IndexFunc(all, func(p runtime.Protection) bool { return p.Name == name })
	if i < 0 {
		return runtime.Protection{Found: "not checked"}
	}
	return all[i]
}

func TestTheEngineSeesForItselfWhatHolds(t *testing.T) {
	networks := newNetworks(t)
	w := newWorld(t)
	w.end()
	w.cfg.CheckProgram, w.cfg.Networks = []string{insider(t), "check"}, networks
	w.open(t)
	found := w.engine.Check(w.context(t))
	caps, err := w.engine.Probe(w.context(t))
	if len(found) == 0 || len(caps.Protections) < len(found) {
		t.Errorf("checked %+v, told %+v", found, caps.Protections)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range caps.Protections {
		if !p.Holds && !slices.Contains(networkState, p.Name) {
			t.Errorf("%s: %s (%s)", p.Name, p.Found, p.Fix)
		}
	}
	for _, name := range []string{
		"user-namespace", "namespaces", "disk-quota", "secrets-in-memory", "memory", "pids", "hook-environment",
		"seccomp", "capabilities", "no-new-privileges", "mknod", "masked-paths", "metadata",
	} {
		if p := find(caps.Protections, name); p.Found == "" || p.Found == "not checked" {
			t.Errorf("%s is not in the report", name)
		}
	}
	if caps.Isolation != runtime.IsolationUserns {
		t.Errorf("isolation %s", caps.Isolation)
	}
	if all, err := w.engine.List(w.context(t)); err != nil || len(all) > 0 {
		t.Errorf("the check left, or shows, %+v: %v", all, err)
	}
	w.wantNoFiles(t, "haggle-check")
}

// networkState is what tells how the machine's network is, and not what a job may do to it.
var networkState = []string{"network-tools", "network-rules", "network-route", "network-forward", "network-firewall", "network-pool", "network-month"}

func TestTheEngineSeesWhatDoesNotHold(t *testing.T) {
	w := newWorld(t)
	program := []string{insider(t), "check"}
	for _, name := range []string{
		containerd.UserNamespace, containerd.Seccomp, containerd.Capabilities, containerd.NoNewPrivileges, containerd.MaskedPaths,
		containerd.Pids, containerd.Memory, containerd.HookEnvironment, "disk-quota",
	} {
		t.Run(name, func(t *testing.T) {
			w.end()
			w.cfg.CheckProgram, w.cfg.Without = program, []string{name}
			w.open(t)
			found := w.engine.Check(w.context(t))
			if p := find(found, name); p.Holds || p.Fix == "" || p.Found == "not checked" {
				t.Errorf("it is off, and the report says %+v", p)
			}
			if caps, err := w.engine.Probe(w.context(t)); err != nil || caps.Isolation != runtime.IsolationRunc {
				t.Errorf("isolation %s: %v", caps.Isolation, err)
			}
		})
	}
	w.end()
	w.cfg.Without, w.cfg.CheckProgram = nil, []string{"/bin/true"} // not even a program for an empty image
	w.open(t)
	if p := find(w.engine.Check(w.context(t)), "self-check"); p.Holds || p.Fix == "" {
		t.Errorf("a program that says nothing: %+v", p)
	}
}
