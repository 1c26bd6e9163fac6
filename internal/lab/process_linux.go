package lab

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// signals are what ends a process, the polite one first.
func signals() []os.Signal { return []os.Signal{syscall.SIGTERM, os.Kill} }

// alive reports whether a process runs. One that has ended and waits for its parent to notice does not count: in a
// container nobody may ever notice.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// processes returns the running processes whose arguments are exactly these.
func processes(words ...string) []int {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	var found []int
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil {
			continue // it has gone
		}
		args := bytes.Split(bytes.TrimSuffix(line, []byte{0}), []byte{0})
		same := slices.EqualFunc(args[1:], words, func(a []byte, b string) bool { return string(a) == b })
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && same && alive(pid) {
			found = append(found, pid)
		}
	}
	return found
}
