package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// alive reports whether a process runs. One that has ended and waits for its parent to notice does not count: in a
// container nobody may ever notice. Labs need Linux, so /proc is there.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// awaitExit waits until a process is gone.
func awaitExit(ctx context.Context, name string, pid int, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(pollEvery / 2)
	defer tick.Stop()
	for alive(pid) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s, process %d, does not end: %w", name, pid, ctx.Err())
		}
	}
	return nil
}

// endAll ends the processes of the lab that were started with these words and did not end when they were asked: those that
// hang, or whose API never came up. Their own home is among the words, so nobody else's process can fit.
func endAll(ctx context.Context, name string, words ...string) error {
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Kill} {
		for _, pid := range processes(words...) {
			p, err := os.FindProcess(pid)
			if err != nil || p.Signal(sig) != nil {
				continue // it has gone by itself
			}
			if err := awaitExit(ctx, name, pid, 10*time.Second); err != nil && sig == os.Kill {
				return err
			}
		}
	}
	return nil
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
