package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// paints is how often the program is started.
const paints = 5

// firstPaint measures the CPU time of the whole program from its start to the frame that shows the offers, in a terminal,
// with an agent that is up. Milliseconds, the median.
func firstPaint(ctx context.Context) (ours, bound float64, err error) {
	l, err := startLab(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer l.stop()
	var all []float64
	for range paints {
		took, err := l.paint(ctx)
		if err != nil {
			return 0, 0, err
		}
		all = append(all, took)
	}
	return median(all), 100, nil
}

// paint starts the screens, waits for the offers on them and ends them.
func (l *runningLab) paint(ctx context.Context) (ms float64, err error) {
	master, slave, err := terminal(80, 24)
	if err != nil {
		return 0, fmt.Errorf("make a terminal: %w", err)
	}
	defer func() { err = errors.Join(err, master.Close()) }()
	c := l.command(ctx, haggle)
	c.Env = append(c.Env, "TERM=xterm-256color")
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = errors.Join(c.Start(), slave.Close())
	if err != nil {
		return 0, err
	}
	var shown []byte
	chunk := make([]byte, 4096)
	for !bytes.Contains(shown, []byte("RTX")) {
		n, err := master.Read(chunk)
		if err != nil {
			return 0, errors.Join(err, c.Wait())
		}
		shown = append(shown, chunk[:n]...)
	}
	ms, cpuErr := cpuOf(c.Process.Pid)
	if err := c.Process.Kill(); err != nil {
		return 0, err
	}
	_ = c.Wait() // it was killed
	return ms, cpuErr
}

// cpuOf sums the CPU time of a process's threads, in milliseconds.
func cpuOf(pid int) (float64, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has gone
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", file, err)
		}
		sum += ns
	}
	if sum == 0 {
		return 0, errors.New("the kernel does not tell the CPU time of threads")
	}
	return float64(sum) / 1e6, nil
}

// terminal makes a pseudo-terminal of a size.
func terminal(width, height uint16) (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, master.Close())
		}
	}()
	fd := int(master.Fd()) //nolint:gosec // a file descriptor is small
	if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	if err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width}); err != nil {
		return nil, nil, err
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	return master, slave, err
}
