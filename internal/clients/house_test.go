//go:build linux && clients

package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// programsVar names the folder of the programs under test.
	programsVar = "E2E_PROGRAMS"
	// patience bounds every wait. A run that is right never comes near it.
	patience = 3 * time.Minute
)

// require skips a test where a program is missing, and fails it there under CI.
func require(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		if _, err := os.Stat("/usr/sbin/" + name); err != nil {
			lacks(t, name)
		}
	}
}

func lacks(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("this test needs %s", what)
	}
	t.Skipf("this test needs %s", what)
}

// lab is a market of a test's own, with the configuration of a renter's OpenSSH.
type lab struct {
	t      *testing.T
	home   string
	work   string // folder for files of the test
	config string // of OpenSSH
	env    []string
}

// newLab starts a lab; env changes the configuration of its rigs. It is taken down with its test.
func newLab(t *testing.T, rigs int, env ...string) *lab {
	t.Helper()
	if os.Geteuid() != 0 {
		lacks(t, "root")
	}
	require(t, "containerd", "containerd-shim-runc-v2", "runc")
	if os.Getenv(programsVar) == "" {
		t.Fatalf("%s names no folder of programs", programsVar)
	}
	dir, err := os.MkdirTemp("/tmp", "hgc") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	l := &lab{t: t, home: filepath.Join(dir, "lab"), work: filepath.Join(dir, "w"), config: filepath.Join(dir, "ssh"), env: env}
	if err := os.Mkdir(l.work, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.down)
	l.runWith(append([]string{"HAGGLE_HOME=" + l.home}, env...), "haggle", "lab", "up", "--rigs", strconv.Itoa(rigs))
	return l
}

// in returns the same lab for a subtest.
func (l *lab) in(t *testing.T) *lab {
	t.Helper()
	twin := *l
	twin.t = t
	return &twin
}

func (l *lab) down() {
	if l.t.Failed() {
		logs, _ := filepath.Glob(filepath.Join(l.home, "*/haggled.log")) // the pattern is well formed
		for _, file := range append(logs, filepath.Join(l.home, "agent.log")) {
			if text, err := os.ReadFile(file); err == nil {
				l.t.Logf("the end of %s:\n%s", file, text[max(0, len(text)-4000):])
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.t.Context()), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program("haggle"), "lab", "down")
	cmd.Env = l.environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Errorf("lab down: %v\n%s", err, out)
	}
	await(l.t, "the end of every process of the lab", func() bool { return len(l.processes()) == 0 })
}

// processes lists the processes that name the lab.
func (l *lab) processes() []string {
	var left []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well formed
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(l.home)) {
			left = append(left, filepath.Dir(file)+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return left
}

func program(name string) string { return filepath.Join(os.Getenv(programsVar), name) }

// environ is this process's environment, pointed to the lab and to nothing else of haggle's.
func (l *lab) environ() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "HAGGLE") && !strings.HasPrefix(v, "XDG_") {
			env = append(env, v)
		}
	}
	return append(env, "HAGGLE_HOME="+l.home)
}

// command makes a command of the renter's; one of ours is that under test.
func (l *lab) command(name string, args ...string) *exec.Cmd {
	path := name
	if name == "haggle" || name == "haggled" {
		path = program(name)
	}
	cmd := exec.CommandContext(l.t.Context(), path, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = l.environ(), l.work, time.Second
	return cmd
}

// run runs a command to its end and wants it to go well. It returns what it wrote to stdout.
func (l *lab) run(name string, args ...string) string {
	l.t.Helper()
	return l.wants(l.command(name, args...), 0)
}

func (l *lab) runWith(env []string, name string, args ...string) string {
	l.t.Helper()
	cmd := l.command(name, args...)
	cmd.Env = append(cmd.Env, env...)
	return l.wants(cmd, 0)
}

// wants runs a command and wants an exit code.
func (l *lab) wants(cmd *exec.Cmd, code int) string {
	l.t.Helper()
	j := l.start(cmd)
	return j.wants(code)
}

// lease is one lease as `haggle leases --json` shows it.
type lease struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Rig     string `json:"rig"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
	Exit    *int64 `json:"exit"`
	Debt    string `json:"debt"`
	Created int64  `json:"created_ms"`
}

// rent bids for a job and returns the lease's id once the job runs.
func (l *lab) rent(name string, args ...string) string {
	l.t.Helper()
	id := strings.TrimSpace(l.run("haggle", append([]string{"bid", "--name", name}, args...)...))
	l.awaitState(id, "running")
	return id
}

func (l *lab) leases() []lease {
	l.t.Helper()
	var list []lease
	if err := json.Unmarshal([]byte(l.run("haggle", "leases", "--all", "--json")), &list); err != nil {
		l.t.Fatal(err)
	}
	return list
}

// lease returns a lease by its id.
func (l *lab) lease(id string) lease {
	l.t.Helper()
	list := l.leases()
	i := slices.IndexFunc(list, func(v lease) bool { return v.ID == id })
	if i < 0 {
		l.t.Fatalf("lease %s is not listed", id)
	}
	return list[i]
}

func (l *lab) awaitState(id, state string) {
	l.t.Helper()
	await(l.t, "lease "+id+" "+state, func() bool {
		v := l.lease(id)
		if v.State == "ended" && state != "ended" {
			l.t.Fatalf("lease %s ended: %+v\n%s", id, v, l.logs(id))
		}
		return v.State == state
	})
}

// logs returns what a job has written so far.
func (l *lab) logs(id string) string {
	cmd := l.command("haggle", "logs", id)
	out, _ := cmd.CombinedOutput() // for a failure's text
	return string(out)
}

// sshConfig writes what `haggle ssh-config` prints to a file of the test's own.
func (l *lab) sshConfig() {
	l.t.Helper()
	if err := os.WriteFile(l.config, []byte(l.run("haggle", "ssh-config", "--print")), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// ssh makes a command of OpenSSH's that knows the lab's leases.
func (l *lab) ssh(name string, args ...string) *exec.Cmd {
	return l.command(name, append([]string{"-F", l.config}, args...)...)
}

// write makes a file of the test's.
func (l *lab) write(name, text string) string {
	l.t.Helper()
	path := filepath.Join(l.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
	return path
}

func (l *lab) read(name string) string {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(l.work, name))
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

// agentPID returns the process of the renter's agent.
func (l *lab) agentPID() int {
	l.t.Helper()
	var s struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(l.run("haggle", "status", "--json")), &s); err != nil || s.PID == 0 {
		l.t.Fatalf("no agent: %v", err)
	}
	return s.PID
}

// killAgent ends the renter's agent as a crash would.
func (l *lab) killAgent() {
	l.t.Helper()
	kill(l.t, l.agentPID())
}

// awaitAgent starts the agent again, by a command as any other. The first may still meet the one that was killed.
func (l *lab) awaitAgent() {
	l.t.Helper()
	await(l.t, "an answer of the agent", func() bool { return l.command("haggle", "status").Run() == nil })
}

func (l *lab) rigHome(n int) string { return filepath.Join(l.home, "rig-"+strconv.Itoa(n)) }

// rigPID returns the process of a rig's daemon, or 0.
func (l *lab) rigPID(n int) int {
	var s struct {
		PID int `json:"pid"`
	}
	cmd := l.command("haggled", "status", "--json")
	cmd.Env = append(cmd.Env, "HAGGLED_HOME="+l.rigHome(n))
	out, err := cmd.Output()
	if err != nil || json.Unmarshal(out, &s) != nil {
		return 0
	}
	return s.PID
}

// killRig ends a rig's daemon as a crash would.
func (l *lab) killRig(n int) {
	l.t.Helper()
	kill(l.t, l.rigPID(n))
}

// restartRig starts a rig's daemon as `lab up` does and returns when it answers.
func (l *lab) restartRig(n int) {
	l.t.Helper()
	home := l.rigHome(n)
	log, err := os.OpenFile(filepath.Join(home, "haggled.log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.CommandContext(context.WithoutCancel(l.t.Context()), program("haggled"), "serve", "--home", home)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(l.environ(), l.env...), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }() // lab down ends it
	await(l.t, "an answer of the rig that was started again", func() bool { return l.rigPID(n) != 0 })
}
