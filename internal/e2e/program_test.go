//go:build linux

package e2e_test

import (
	"bytes"
	"context"
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

// patience bounds every wait of these tests. A run that is right never comes near it.
const patience = 60 * time.Second

// await asks again and again until the answer is yes. what says in the failure what did not come.
func await(t *testing.T, what string, ask func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ask() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited in vain for this: %s", what)
		}
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

// program is one of our programs at work.
type program struct {
	t        *testing.T
	line     string
	env      []string
	cmd      *exec.Cmd
	out, err output
	ended    chan struct{}
}

// start starts a program with an environment that names no home but the given ones. It is killed with its test if it is
// not waited for.
func start(t *testing.T, env []string, name string, args ...string) *program {
	t.Helper()
	return startCommand(t, env, name, exec.CommandContext(t.Context(), programPath(name), args...))
}

// startCommand is start for a command that comes to the program in its own way.
func startCommand(t *testing.T, env []string, name string, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{t: t, cmd: cmd, line: strings.Join(append([]string{name}, cmd.Args[1:]...), " "), env: env, ended: make(chan struct{})}
	p.cmd.Env = append(cleanEnv(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	p.cmd.WaitDelay = time.Second // an agent that it started may hold on to nothing of ours
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the exit code is looked at by wait
	}()
	return p
}

// cleanEnv is this process's environment without what points our programs to a home.
func cleanEnv() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HAGGLE") && !strings.HasPrefix(v, "XDG_") {
			env = append(env, v)
		}
	}
	return env
}

// awaitOut waits until the program has written a text to stdout.
func (p *program) awaitOut(text string) {
	p.t.Helper()
	await(p.t, fmt.Sprintf("%q from %s", text, p.line), func() bool {
		if strings.Contains(p.out.String(), text) {
			return true
		}
		select {
		case <-p.ended:
			if !strings.Contains(p.out.String(), text) {
				p.t.Fatalf("%s ended with %d before it wrote %q:\n%s%s", p.line, p.cmd.ProcessState.ExitCode(), text, p.out.String(), p.err.String())
			}
		default:
		}
		return false
	})
}

// wants waits for the program's end and wants an exit code.
func (p *program) wants(code int) *program {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*patience)
	defer cancel()
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.t.Fatalf("%s does not end:\n%s%s", p.line, p.out.String(), p.err.String())
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("%s: exit code %d, want %d:\n%s%s", p.line, got, code, p.out.String(), p.err.String())
	}
	return p
}

// kill ends a process that this test's lab started, at once, and returns when it is gone.
func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
	await(t, fmt.Sprintf("the end of process %d", pid), func() bool { return !alive(pid) })
}

// alive tells whether a process runs; one that has ended and was not waited for does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return false
	}
	behind := bytes.LastIndexByte(stat, ')') + 2
	return err != nil || behind >= len(stat) || stat[behind] != 'Z' && stat[behind] != 'X'
}
