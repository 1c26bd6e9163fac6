//go:build linux

package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// awaitNothingLeft wants that nothing of a lab is left: other labs may run beside it, so only what bears its name counts.
// The kernel takes a moment to free cgroups and mounts.
func awaitNothingLeft(t *testing.T, home string, rigs int, jobs []string) {
	t.Helper()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		left := leftovers(t, home, rigs, jobs)
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-limit.C:
			t.Errorf("the lab left something behind:\n%s", strings.Join(left, "\n"))
			return
		}
	}
}

// leftovers lists what is left of a lab.
func leftovers(t *testing.T, home string, rigs int, jobs []string) []string {
	t.Helper()
	var left []string
	if _, err := os.Stat(home); err == nil {
		left = append(left, "folder "+home)
	}
	parents := map[string]bool{}
	for n := 1; n <= rigs; n++ {
		rig := fmt.Sprintf("%s/rig-%d", home, n)
		parents[cgroupName(rig)] = true
		for _, job := range jobs {
			// A shim names its socket after the containerd, the namespace and the job.
			name := sha256.Sum256([]byte(filepath.Join(rig, "run/containerd/containerd.sock/haggle", job)))
			if socket := fmt.Sprintf("/run/containerd/s/%x", name); exists(socket) {
				left = append(left, "shim socket "+socket)
			}
		}
	}
	left = append(left, cgroups(parents)...)
	left = append(left, processes(home, parents)...)
	for _, table := range []string{"/proc/self/mountinfo", "/proc/net/unix"} {
		left = append(left, linesWith(t, table, home)...)
	}
	loops, err := exec.CommandContext(context.WithoutCancel(t.Context()), "losetup", "--noheadings", "--list", "--output", "NAME,BACK-FILE").Output()
	if err == nil && bytes.Contains(loops, []byte(home+"/")) {
		left = append(left, "loop devices:\n"+string(loops))
	}
	return left
}

// cgroupName is the cgroup of a rig's jobs.
func cgroupName(rigHome string) string {
	sum := sha256.Sum256([]byte(rigHome))
	return fmt.Sprintf("haggle-%x", sum[:4])
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// cgroups lists the cgroups of some names, in every hierarchy.
func cgroups(names map[string]bool) []string {
	var left []string
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error { // it never returns an error
		if err == nil && d.IsDir() && names[d.Name()] {
			left = append(left, "cgroup "+path)
		}
		return nil
	})
	return left
}

// processes lists the processes that name a lab in their arguments or run in one of its cgroups.
func processes(home string, cgroups map[string]bool) []string {
	var left []string
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well formed
	for _, file := range lines {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has gone
		}
		group, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cgroup"))
		if err != nil {
			continue
		}
		ours := bytes.Contains(line, []byte(home+"/")) || bytes.HasSuffix(bytes.TrimRight(line, "\x00"), []byte(home))
		for name := range cgroups {
			ours = ours || bytes.Contains(group, []byte("/"+name+"/"))
		}
		if ours {
			left = append(left, "process "+filepath.Base(filepath.Dir(file))+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return left
}

// linesWith lists the lines of a table that name something below a folder.
func linesWith(t *testing.T, table, home string) []string {
	t.Helper()
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, home+"/") {
			left = append(left, table+": "+strings.TrimSpace(line))
		}
	}
	return left
}
