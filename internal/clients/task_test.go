//go:build linux && clients

package clients_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// task is a command at work.
type task struct {
	l        *lab
	cmd      *exec.Cmd
	out, err output
	ended    chan struct{}
}

// start starts a command, which ends with its test at the latest.
func (l *lab) start(cmd *exec.Cmd) *task {
	l.t.Helper()
	j := &task{l: l, cmd: cmd, ended: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &j.out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &j.err
	}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() {
		defer close(j.ended)
		_ = cmd.Wait() // wants looks at the exit code
	}()
	return j
}

// wants waits for the end and wants an exit code. It returns what was written to stdout.
func (j *task) wants(code int) string {
	j.l.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-j.ended:
	case <-limit.C:
		j.l.t.Fatalf("%s does not end:\n%s%s", j.line(), j.out.String(), j.err.String())
	}
	if got := j.cmd.ProcessState.ExitCode(); got != code {
		j.l.t.Fatalf("%s: exit code %d, want %d:\n%s%s", j.line(), got, code, j.out.String(), j.err.String())
	}
	return j.out.String()
}

func (j *task) line() string { return strings.Join(j.cmd.Args, " ") }

// awaitOut waits until a text is written to stdout.
func (j *task) awaitOut(text string) {
	j.l.t.Helper()
	await(j.l.t, fmt.Sprintf("%q from %s", text, j.line()), func() bool {
		if strings.Contains(j.out.String(), text) {
			return true
		}
		select {
		case <-j.ended:
			if !strings.Contains(j.out.String(), text) {
				j.l.t.Fatalf("%s ended with %d before it wrote %q:\n%s%s", j.line(), j.cmd.ProcessState.ExitCode(), text, j.out.String(), j.err.String())
			}
		default:
		}
		return false
	})
}

// interrupt sends SIGINT and waits for the end.
func (j *task) interrupt() {
	j.l.t.Helper()
	_ = j.cmd.Process.Signal(syscall.SIGINT) // it may have ended
	select {
	case <-j.ended:
	case <-j.l.t.Context().Done():
	}
}

// output collects what a program writes, for a test that reads along.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await asks again and again until the answer is yes.
func await(t *testing.T, what string, ask func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ask() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited in vain for this: %s", what)
		}
	}
}

// kill ends a process of this test's lab at once, and returns when it is gone.
func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 0 {
		t.Fatal("there is no process to kill")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
	await(t, fmt.Sprintf("the end of process %d", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			return true
		}
		behind := bytes.LastIndexByte(stat, ')') + 2
		return err == nil && behind < len(stat) && (stat[behind] == 'Z' || stat[behind] == 'X')
	})
}
