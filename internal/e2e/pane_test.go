//go:build linux

package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// pane is a terminal of a test's own, kept by a tmux that nothing else uses. It ends with the test.
type pane struct {
	t       *testing.T
	socket  string
	pressed int // keys
}

// requireTmux skips a test where there is no tmux, and fails it there under CI, where there must be one.
func requireTmux(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("the screens need tmux")
	}
	t.Skip("the screens need tmux")
}

// newPane starts a shell's command line in a terminal of a size, at the repository's root.
func newPane(t *testing.T, width, height int, env []string, script string) *pane {
	t.Helper()
	requireTmux(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	p := &pane{t: t, socket: filepath.Join(shortDir(t), "tmux")}
	var clean []string
	for _, v := range cleanEnv() {
		if name, _, _ := strings.Cut(v, "="); name != "NO_COLOR" && name != "TMUX" && name != "COLORTERM" && name != "LC_ALL" {
			clean = append(clean, v)
		}
	}
	start := p.command("-f", "/dev/null", "new-session", "-d", "-s", "0", "-c", root, "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), script)
	start.Env = append(append(clean, "TERM=xterm-256color", "LC_ALL=C.UTF-8"), env...)
	if out, err := start.CombinedOutput(); err != nil {
		t.Fatalf("start tmux: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the terminal at the end:\n%s", p.screen())
		}
		_ = p.command("kill-server").Run() // it may have ended with its command
	})
	p.tmux("set-option", "-g", "status", "off")
	return p
}

// open shows the screens of a lab's renter.
func (l *lab) open(width, height int, env ...string) *pane {
	l.t.Helper()
	return newPane(l.t, width, height, append(env, "HAGGLE_HOME="+l.home), programPath("haggle"))
}

func (p *pane) command(args ...string) *exec.Cmd {
	// The end of a test is no reason to leave a terminal open.
	return exec.CommandContext(context.WithoutCancel(p.t.Context()), "tmux", append([]string{"-u", "-S", p.socket}, args...)...)
}

// tmux carries out an order and returns what it prints.
func (p *pane) tmux(args ...string) string {
	p.t.Helper()
	out, err := p.command(args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// screen returns what the user sees.
func (p *pane) screen() string {
	out, _ := p.command("capture-pane", "-p", "-t", "0").Output() // an empty screen where the program has ended
	return string(out)
}

// lines returns the screen's lines, empty ones included.
func (p *pane) lines() []string { return strings.Split(strings.TrimSuffix(p.screen(), "\n"), "\n") }

// press presses keys as tmux names them.
func (p *pane) press(keys ...string) {
	p.t.Helper()
	p.pressed += len(keys)
	p.tmux(append([]string{"send-keys", "-t", "0"}, keys...)...)
}

// write types a text.
func (p *pane) write(text string) {
	p.t.Helper()
	p.tmux("send-keys", "-t", "0", "-l", "--", text)
}

func (p *pane) resize(width, height int) {
	p.t.Helper()
	p.tmux("resize-window", "-t", "0", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// sees waits until the screen shows every text at once.
func (p *pane) sees(texts ...string) {
	p.t.Helper()
	await(p.t, strings.Join(texts, " and ")+" on the screen", func() bool {
		screen := p.screen()
		for _, want := range texts {
			if !strings.Contains(screen, want) {
				return false
			}
		}
		return true
	})
}

// lacks waits until the screen does not show a text any more.
func (p *pane) lacks(text string) {
	p.t.Helper()
	await(p.t, "no "+text+" on the screen", func() bool { return !strings.Contains(p.screen(), text) })
}
