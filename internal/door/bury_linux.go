package door

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// bury waits for the processes that became the door's because their parents are dead, and for no others.
func (all *children) bury(ctx context.Context) {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	defer signal.Stop(died)
	for {
		select {
		case <-ctx.Done():
			return
		case <-died:
			all.buryNow()
		}
	}
}

func (all *children) buryNow() {
	dirs, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, stat := range dirs {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if _, mine := all.pids[pid]; err != nil || mine {
			continue
		}
		// The name before it may hold anything, brackets too.
		b, _ := os.ReadFile(stat)
		if i := bytes.LastIndexByte(b, ')'); i >= 0 && bytes.HasPrefix(b[i:], []byte(") Z 1 ")) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}
