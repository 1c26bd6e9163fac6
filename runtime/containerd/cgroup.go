//go:build linux

package containerd

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupVersion is the version that runc will use: 2 only when all of /sys/fs/cgroup is v2.
func cgroupVersion() int {
	var st unix.Statfs_t
	switch err := unix.Statfs("/sys/fs/cgroup", &st); {
	case err != nil:
		return 0
	case st.Type == unix.CGROUP2_SUPER_MAGIC:
		return 2
	}
	return 1
}

// mountInfo is one line of /proc/self/mountinfo.
type mountInfo struct{ path, kind string }

func mounts() []mountInfo {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	return parseMounts(bufio.NewScanner(f))
}

func parseMounts(lines *bufio.Scanner) []mountInfo {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var all []mountInfo
	for lines.Scan() {
		place, kind, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(place)
		if !ok || len(fields) < 5 {
			continue
		}
		kind, _, _ = strings.Cut(kind, " ")
		all = append(all, mountInfo{path: unescape.Replace(fields[4]), kind: kind})
	}
	return all
}

// cgroupMounts are the roots of all hierarchies, of both versions.
func cgroupMounts() []string {
	var all []string
	for _, m := range mounts() {
		if m.kind == "cgroup" || m.kind == "cgroup2" {
			all = append(all, m.path)
		}
	}
	return all
}

// oomKills is how many processes of a job the kernel has killed for memory; 0 also when nobody can tell.
func oomKills(parent, id string) uint64 {
	for _, m := range cgroupMounts() {
		for _, name := range []string{"memory.oom_control", "memory.events"} {
			b, err := os.ReadFile(filepath.Join(m, parent, id, name))
			if err != nil {
				continue
			}
			if n := countOf(string(b), "oom_kill"); n > 0 {
				return n
			}
		}
	}
	return 0
}

func countOf(text, key string) uint64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == key {
			n, err := strconv.ParseUint(f[1], 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}

// cgroupProcesses lists the processes in a cgroup and below, in all hierarchies.
func cgroupProcesses(parent string) []int {
	var all []int
	eachCgroup(parent, func(dir string) {
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			return
		}
		for s := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(s); err == nil && pid > 0 && !slices.Contains(all, pid) {
				all = append(all, pid)
			}
		}
	})
	return all
}

// cgroupPatience is how long a cgroup may stay busy after its last process was killed: the kernel empties it only when all
// of the process's threads are gone.
const cgroupPatience = 15 * time.Second

// removeCgroups removes a cgroup whose processes have been killed and all below it, in all hierarchies.
func removeCgroups(ctx context.Context, parent string) error {
	ctx, cancel := context.WithTimeout(ctx, cgroupPatience)
	defer cancel()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		err := tryRemoveCgroups(parent)
		if !errors.Is(err, unix.EBUSY) || sleep(ctx, wait) != nil {
			return err
		}
	}
}

func tryRemoveCgroups(parent string) error {
	var errs []error
	eachCgroup(parent, func(dir string) {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, &fs.PathError{Op: "rmdir", Path: dir, Err: err})
		}
	})
	return errors.Join(errs...)
}

// eachCgroup visits children before parents.
func eachCgroup(parent string, visit func(dir string)) {
	for _, m := range cgroupMounts() {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(m, parent), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // it went away, which is what is wanted
			}
			if d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for _, dir := range slices.Backward(dirs) {
			visit(dir)
		}
	}
}
