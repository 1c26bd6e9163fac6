//go:build linux

package containerd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process names one process for ever: a number alone is given to others later.
type process struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // clock ticks since the boot
	Boot  string `json:"boot"`  // id of the boot
}

// lookProcess names the process that has a number now. A zombie is none.
func lookProcess(pid int) (process, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	// The second field is a name in brackets that may hold anything; the third is the state, the 22nd the start.
	i := bytes.LastIndexByte(b, ')')
	fields := strings.Fields(string(b[i+1:]))
	if i < 0 || len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return process{}, false
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}, false
	}
	return process{PID: pid, Start: fields[19], Boot: strings.TrimSpace(string(boot))}, true
}

func (p process) alive() bool {
	now, ok := lookProcess(p.PID)
	return ok && p.PID > 0 && now == p
}

// signal sends nothing when the number belongs to another process by now.
func (p process) signal(sig syscall.Signal) error {
	if !p.alive() {
		return nil
	}
	if err := syscall.Kill(p.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	return nil
}

// watch returns a channel that is closed when the process has ended or ctx has.
func (p process) watch(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(aliveInterval)
		defer tick.Stop()
		for p.alive() {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return done
}

// socketOwner is the process that listens on a unix socket, 0 when nobody does.
func socketOwner(path string) int {
	conn, err := net.DialTimeout("unix", path, time.Second) //nolint:noctx // bounded, and local
	if err != nil {
		return 0
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	err = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	if err != nil {
		return 0
	}
	return pid
}

// findProcesses lists the processes whose command line match accepts.
func findProcesses(match func(args []string) bool) []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil || len(b) == 0 {
			continue
		}
		if !match(strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")) {
			continue
		}
		if p, ok := lookProcess(pid); ok {
			all = append(all, p)
		}
	}
	return all
}
