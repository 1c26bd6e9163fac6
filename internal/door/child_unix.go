//go:build unix

package door

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// own gives a program a session, and the terminal that is its standard input.
func own(cmd *exec.Cmd, terminal bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: terminal}
}

// openTerminal makes a terminal. Closing the master ends a read of it, which the files that package pty makes do not.
func openTerminal() (master, slave *os.File, err error) {
	blocking, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	defer blocking.Close()
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, nil, errors.Join(err, slave.Close())
	}
	return os.NewFile(uintptr(fd), blocking.Name()), slave, nil
}

// setSize tells a terminal its size, and who runs in it.
func setSize(tty *os.File, size windowSize) {
	if sc, err := tty.SyscallConn(); err == nil {
		_ = sc.Control(func(fd uintptr) { _ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size.winsize()) })
	}
}

// winsize is a size as the kernel has it.
func (w windowSize) winsize() *unix.Winsize {
	clamp := func(n uint32) uint16 { return uint16(min(n, 0xffff)) }
	return &unix.Winsize{Col: clamp(w.Columns), Row: clamp(w.Rows), Xpixel: clamp(w.Width), Ypixel: clamp(w.Height)}
}

// signal sends a signal to the program's processes: those in front of its terminal, or its group. False: there is no such signal.
func (c *child) signal(name string) bool {
	if !slices.Contains(signalNames(), ssh.Signal(name)) {
		return false
	}
	sig := unix.SignalNum("SIG" + name)
	group := c.cmd.Process.Pid
	if c.tty != nil {
		if sc, err := c.tty.SyscallConn(); err == nil {
			_ = sc.Control(func(fd uintptr) {
				if front, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP); err == nil && front > 1 {
					group = front
				}
			})
		}
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if _, alive := c.all.pids[c.cmd.Process.Pid]; !alive && group == c.cmd.Process.Pid {
		// The number may be somebody else's by now, unless processes of the group are left: then it cannot be.
		if unix.Kill(-group, 0) != nil {
			return true
		}
	}
	_ = unix.Kill(-group, sig)
	return true
}

// killedBy names the signal that ended a program, without SIG; "" where none did.
func killedBy(state *os.ProcessState) (name string, dumped bool) {
	if state == nil {
		return "", false
	}
	ws, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !ws.Signaled() {
		return "", false
	}
	return strings.TrimPrefix(unix.SignalName(ws.Signal()), "SIG"), ws.CoreDump()
}
