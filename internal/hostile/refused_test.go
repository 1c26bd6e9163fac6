//go:build linux

package hostile_test

import (
	"fmt"
	"strconv"
	"testing"
)

// attempt is an attack and the sentence about it.
type attempt struct{ sentence, item string }

func (h *house) all(t *testing.T, attempts []attempt) {
	t.Helper()
	o := h.attack(t, items(attempts)...)
	o.each(t, attempts)
}

func items(attempts []attempt) []string {
	all := make([]string, len(attempts))
	for i, a := range attempts {
		all[i] = a.item
	}
	return all
}

// each makes a test of every attempt.
func (o outcome) each(t *testing.T, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
		t.Run(a.sentence, func(t *testing.T) { o.held(t, a.item) })
	}
}

func TestAJobReachesNoFileOfTheHost(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	canary := h.canary + "/open"
	h.all(t, []attempt{
		{"the host's files are not there by their names", fmt.Sprintf("look=%s,%s,%s,/run/containerd,/var/run/docker.sock,/etc/shadow", h.canary, h.dir, h.engine.cfg.State)},
		{"no way of dots leads out of the root folder", "climb=" + canary},
		{"the roots and folders of other processes lead nowhere", "proc-roots=" + canary},
		{"files cannot be opened by their numbers", "handles"},
		{"nothing in /proc that changes the machine can be written", "write-proc"},
		{"nothing in /sys can be written", "write-sys"},
		{"what tells of the host is masked", "masked-paths"},
		{"the kernel's log cannot be read or written", "kernel-log"},
		{"the program for core dumps cannot be chosen", "core-pattern"},
		{"interpreters for programs cannot be registered", "binfmt"},
		{"no cgroup file can be written and no release agent set", "cgroup-write"},
		{"no file of the host was left open", "leaked-files"},
		{"the kernel cannot be told to kill others first", "oom-score"},
		{"the program that started the job cannot be overwritten", "own-program"},
	})
}

func TestAJobMountsNothing(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	h.all(t, []attempt{
		{"no file system can be mounted", "mount"},
		{"the new calls for mounting are refused as well", "new-mount-calls"},
		{"masks cannot be taken off", "unmask"},
		{"the root folder cannot be changed", "pivot"},
	})
}

func TestAJobGetsNothingFromTheKernelThatItHasNoUseFor(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	h.all(t, []attempt{
		{"programs for the kernel are refused", "bpf"},
		{"measuring the machine is refused", "perf"},
		{"the kernel's keys are out of reach", "keyctl"},
		{"page faults cannot be held up", "userfaultfd"},
		{"io_uring is refused", "io-uring"},
		{"modules and kernels cannot be loaded", "modules"},
		{"the machine cannot be rebooted", "reboot"},
		{"the clock cannot be set", "clock"},
		{"the host's name cannot be set", "hostname"},
		{"swap, accounting, quotas and watching whole mounts are refused", "accounting"},
		{"nobody's processor time can be taken by priority", "priority"},
		{"user namespaces do not nest", "user-namespace"},
		{"other namespaces can be neither made nor entered", "namespaces"},
		{"calls by another numbering do not pass the filter", "foreign-calls"},
	})
}

func TestAJobIsNobodyOnTheHost(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	h.all(t, []attempt{
		{"its root is an ordinary user of the host", "mapped-root"},
		{"it has five capabilities at most", "capabilities"},
		{"a filter of system calls is on", "seccomp"},
		{"a setuid file of the image gives nothing", "setuid-file=/suid"},
		{"new privileges are switched off", "no-new-privileges"},
		{"only its own processes are in sight", "own-processes-only"},
		{"the host's processes cannot be traced or read", "ptrace=" + strconv.Itoa(h.guard.Process.Pid)},
		{"the host's processes cannot be signalled", "signal=" + strconv.Itoa(h.guard.Process.Pid)},
	})
}

func TestAJobGetsNoDevice(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	h.all(t, []attempt{
		{"device nodes cannot be made", "mknod=10:229"},
		{"no node opens but the harmless ones", "devices"},
		{"raw and packet sockets are refused, and ARP with them", "raw-socket"},
		{"no odd family of sockets is there", "odd-sockets"},
		{"the interface cannot be changed", "net-admin"},
		{"no neighbour is met over IPv6", "ipv6"},
	})
}
