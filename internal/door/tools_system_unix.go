//go:build unix

package door

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func crossDevice() error { return syscall.EXDEV }

func owner(fi fs.FileInfo) string {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%5d %5d", st.Uid, st.Gid)
	}
	return "? ?"
}

func id(t *tool) {
	me := user(os.Getuid())
	fmt.Fprintf(t.out, "uid=%d(%s) gid=%d\n", os.Getuid(), me.name, os.Getgid())
}

func uname(t *tool) {
	var u unix.Utsname
	if !t.check(unix.Uname(&u)) {
		return
	}
	s := unix.ByteSliceToString
	switch {
	case t.has("a"):
		fmt.Fprintln(t.out, s(u.Sysname[:]), s(u.Nodename[:]), s(u.Release[:]), s(u.Version[:]), s(u.Machine[:]))
	case t.has("r"):
		fmt.Fprintln(t.out, s(u.Release[:]))
	case t.has("m"):
		fmt.Fprintln(t.out, s(u.Machine[:]))
	case t.has("n"):
		fmt.Fprintln(t.out, s(u.Nodename[:]))
	default:
		fmt.Fprintln(t.out, s(u.Sysname[:]))
	}
}

// kill takes -9, -KILL or -SIGKILL, and numbers of processes.
func kill(t *tool) {
	sig := unix.SIGTERM
	args := t.args
	if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name := strings.ToUpper(args[0][1:])
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < 65 {
			sig = syscall.Signal(n)
		} else if sig = unix.SignalNum("SIG" + strings.TrimPrefix(name, "SIG")); sig == 0 {
			t.check(errors.New("no such signal"))
			return
		}
		args = args[1:]
	}
	if len(args) == 0 {
		t.check(errors.New("too few arguments"))
	}
	for _, a := range args {
		pid, err := strconv.Atoi(a)
		if err == nil {
			err = unix.Kill(pid, sig)
		}
		if err != nil {
			t.check(fmt.Errorf("%s: %w", a, err))
		}
	}
}

// ps lists all processes that /proc shows.
func ps(t *tool) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if !t.check(err) {
		return
	}
	if len(stats) == 0 {
		t.check(errors.New("/proc is empty"))
	}
	fmt.Fprintf(t.out, "%7s %7s S %9s COMMAND\n", "PID", "PPID", "MEMORY")
	for _, stat := range stats {
		b := readBounded(stat, 4096)
		open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
		if open < 0 || end < open {
			continue
		}
		f := strings.Fields(string(b[end+1:]))
		if len(f) < 22 {
			continue
		}
		pages, _ := strconv.ParseInt(f[21], 10, 64)
		words := readBounded(filepath.Join(filepath.Dir(stat), "cmdline"), 4096)
		command := strings.TrimSpace(string(bytes.ReplaceAll(words, []byte{0}, []byte{' '})))
		if command == "" {
			command = "[" + string(b[open+1:end]) + "]"
		}
		pid, memory := filepath.Base(filepath.Dir(stat)), human(pages*int64(os.Getpagesize()))
		fmt.Fprintf(t.out, "%7s %7s %s %9s %s\n", pid, f[1], f[0], memory, command)
	}
}
