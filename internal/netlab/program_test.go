//go:build linux

package netlab_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"haggle/internal/netlab"
)

// programsVar names the folder of the programs under test. Where it is not set they are built, when a test needs them.
const programsVar = "E2E_PROGRAMS"

// programDir is the folder of the programs under test.
var programDir = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(programsVar); dir != "" {
		return dir, nil
	}
	for _, p := range []struct{ name, cgo string }{{"haggle", "0"}, {"haggle-pay-hand", "0"}, {"haggled", "1"}} {
		build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(buildDir, p.name), "haggle/cmd/"+p.name)
		build.Env = append(os.Environ(), "CGO_ENABLED="+p.cgo)
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", p.name, err, out)
		}
	}
	return buildDir, nil
})

// program returns the path of one of the programs under test.
func program(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(must[string](t)(programDir()), name)
}

// require skips a test where a program is missing, and fails it there under CI.
func require(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		if _, err := os.Stat("/usr/sbin/" + name); err == nil {
			continue
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("this test needs %s", name)
		}
		t.Skipf("this test needs %s", name)
	}
}

// seat is a host at which somebody sits: a command runs there, with an environment and in a folder.
type seat struct {
	t    *testing.T
	host *netlab.Host
	env  []string
	dir  string // for files
}

// work is a command that has been started.
type work struct {
	t        *testing.T
	line     string
	cmd      *exec.Cmd
	out, err output
	ended    chan struct{}
}

// command makes a command at the seat.
func (s *seat) command(name string, args ...string) *exec.Cmd {
	s.t.Helper()
	if strings.HasPrefix(name, "haggle") {
		name = program(s.t, name)
	}
	cmd := s.host.Command(context.WithoutCancel(s.t.Context()), name, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HAGGLE") && !strings.HasPrefix(v, "XDG_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env, cmd.Dir, cmd.WaitDelay = append(cmd.Env, s.env...), s.dir, time.Second
	return cmd
}

// start starts a command; input may be nil.
func (s *seat) start(cmd *exec.Cmd) *work {
	s.t.Helper()
	w := &work{t: s.t, cmd: cmd, line: strings.Join(cmd.Args[3:], " "), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &w.out, &w.err
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(w.ended)
		_ = cmd.Wait() // the exit code is looked at by wants
	}()
	return w
}

// run runs a command to its end, wants it to go well and returns what it wrote to stdout.
func (s *seat) run(name string, args ...string) string {
	s.t.Helper()
	return s.start(s.command(name, args...)).wants(0)
}

// wants waits for the command's end, wants an exit code and returns what it wrote to stdout.
func (w *work) wants(code int) string {
	w.t.Helper()
	limit := time.NewTimer(2 * patience)
	defer limit.Stop()
	select {
	case <-w.ended:
	case <-limit.C:
		_ = w.cmd.Process.Kill()
		w.t.Fatalf("%s does not end:\n%s%s", w.line, w.out.String(), w.err.String())
	}
	if got := w.cmd.ProcessState.ExitCode(); got != code {
		w.t.Fatalf("%s: exit code %d, want %d:\n%s%s", w.line, got, code, w.out.String(), w.err.String())
	}
	return w.out.String()
}

// awaitOut waits until the command has written a text to stdout.
func (w *work) awaitOut(text string) {
	w.t.Helper()
	await(w.t, fmt.Sprintf("%q from %s", text, w.line), func() bool {
		select {
		case <-w.ended:
			if !strings.Contains(w.out.String(), text) {
				w.t.Fatalf("%s ended with %d before it wrote %q:\n%s%s", w.line, w.cmd.ProcessState.ExitCode(), text, w.out.String(), w.err.String())
			}
		default:
		}
		return strings.Contains(w.out.String(), text)
	})
}

// stop ends a command that would go on for ever.
func (w *work) stop() {
	w.t.Helper()
	if err := w.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		w.t.Error(err)
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-w.ended:
	case <-limit.C:
		_ = w.cmd.Process.Kill()
		w.t.Errorf("%s does not end:\n%s", w.line, w.err.String())
	}
}

// shortDir makes a folder whose name leaves room for the sockets below it.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hgn") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
