// Looker prints what a job sees of itself, for tests to compare: a JSON object of names and texts.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	// First, before files of this program's own take numbers.
	entries, _ := os.ReadDir("/proc/self/fd")
	seen := map[string]string{}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			seen["fd "+e.Name()] = numbers.ReplaceAllString(to, "N")
		}
	}
	var kept []string
	status := read("/proc/self/status")
	for _, line := range strings.Split(status, "\n") {
		name, _, _ := strings.Cut(line, ":")
		if slices.Contains(kinds, name) {
			kept = append(kept, line)
		}
	}
	seen["status"] = strings.Join(kept, "\n")
	for _, path := range []string{
		"/proc/self/cgroup", "/proc/self/limits", "/proc/self/uid_map", "/proc/self/oom_score_adj", "/proc/self/cmdline", "/proc/self/environ",
		"/proc/self/coredump_filter", "/proc/self/personality", "/proc/self/attr/current",
		"/proc/1/comm", "/proc/sys/kernel/hostname", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/run/secrets/key",
	} {
		seen[path] = read(path)
	}
	seen["mounts"] = mounts()
	for _, dir := range []string{"/", "/dev", "/run", "/run/secrets", "/work", "/proc/self/task"} {
		names, _ := filepath.Glob(dir + "/.[!.]*")
		more, _ := filepath.Glob(dir + "/*")
		if dir == "/proc/self/task" {
			more = nil // threads of this program
		}
		seen["folder "+dir] = strings.Join(append(names, more...), " ")
	}
	exe, _ := os.Readlink("/proc/1/exe")
	cwd, err := os.Getwd()
	info, _ := os.Stat(".")
	old := syscall.Umask(0)
	sid, _ := unix.Getsid(0)
	seen["self"] = fmt.Sprintf("pid %d parent %d session %d group %d umask %o exe %s cwd %s %v %v", os.Getpid(), os.Getppid(), sid, unix.Getpgrp(), old, exe, cwd, info, err)
	seen["self"] = times.ReplaceAllString(seen["self"], "T")
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		seen["cwd"] = fmt.Sprintf("%o %d:%d", st.Mode, st.Uid, st.Gid)
	}
	var ignored []string
	for s := syscall.Signal(1); s < 65; s++ {
		if signal.Ignored(s) {
			ignored = append(ignored, s.String())
		}
	}
	seen["ignored"] = strings.Join(ignored, " ")
	if err := json.NewEncoder(os.Stdout).Encode(seen); err != nil {
		os.Exit(1)
	}
}

var (
	numbers = regexp.MustCompile(`[0-9]{3,}`)
	times   = regexp.MustCompile(`&\{.*\}`)
	kinds   = []string{
		"Umask", "Tgid", "Pid", "PPid", "TracerPid", "Uid", "Gid", "Groups", "NStgid", "NSpid", "NSpgid", "NSsid", "SigPnd", "ShdPnd", "SigBlk", "SigIgn",
		"SigCgt", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters", "Speculation_Store_Bypass",
		"SpeculationIndirectBranch", "Cpus_allowed", "Mems_allowed", "CoreDumping", "THP_enabled",
	}
)

func read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(b), "\x00", "|")
}

// mounts is the table without the numbers that every mount has of its own, and without what tells one job's disk from another's.
func mounts() string {
	var all []string
	for line := range strings.Lines(read("/proc/self/mountinfo")) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		for i := range f {
			f[i] = devices.ReplaceAllString(f[i], "loop")
			f[i] = names.ReplaceAllString(f[i], "NAME")
			f[i] = fds.ReplaceAllString(f[i], "fd/N")
		}
		all = append(all, strings.Join(f[3:], " "))
	}
	return strings.Join(all, "\n")
}

var (
	devices = regexp.MustCompile(`loop[0-9]+`)
	names   = regexp.MustCompile(`haggle-spare-[a-z0-9]+|cold-[0-9]+`)
	fds     = regexp.MustCompile(`fd/[0-9]+`)
)
