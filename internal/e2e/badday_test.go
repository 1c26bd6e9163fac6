//go:build linux

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/view"
)

// newProcessLab starts a lab whose jobs are plain processes: where a test is about our own programs it is quicker.
func newProcessLab(t *testing.T, rigs int) *lab {
	t.Helper()
	requireLab(t)
	home := shortDir(t)
	paths, err := config.AgentPaths(home)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, home: home, agent: api.DialAgent(paths.Socket)}
	t.Cleanup(func() { l.down(rigs) })
	start(t, []string{"HAGGLE_HOME=" + home}, "haggle", "lab", "up", "--engine", "process", "--rigs", strconv.Itoa(rigs)).wants(0)
	return l
}

// smallDisk mounts a file system of some bytes on a new folder.
func smallDisk(t *testing.T, bytes int) string {
	t.Helper()
	dir := shortDir(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+strconv.Itoa(bytes)); err != nil {
		t.Fatalf("a small disk needs mounts: %v", err)
	}
	t.Cleanup(func() {
		// A program that was told to end closes its files in a moment.
		limit := time.Now().Add(10 * time.Second)
		err := syscall.Unmount(dir, 0)
		for ; errors.Is(err, syscall.EBUSY) && time.Now().Before(limit); err = syscall.Unmount(dir, 0) {
			runtime.Gosched()
		}
		if err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// fillDisk leaves no room on a folder's file system and returns what makes room again.
func fillDisk(t *testing.T, dir string) (makeRoom func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 20, 4096} {
		for {
			if _, err := f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// ownRig is a rig without containers beside a lab, with a configuration of the test's own.
type ownRig struct {
	t    *testing.T
	home string
	log  string
	api  *api.RigClient
}

// ownRig starts a rig in a home, in the lab's network and with its image. knobs are lines of TOML before the tables.
func (l *lab) ownRig(t *testing.T, home, knobs string) *ownRig {
	t.Helper()
	network := l.rigStatus(1).Network
	text := fmt.Sprintf("network = %q\nname = \"own\"\nbootstrap = [%q]\n%s\nimages = [{name = \"lab\", archive = %q}]\n"+
		"[cards]\nsimulated = [{profile = \"RTX_3090\", count = 2}]\n[prices]\nslot = \"0.18\"\n"+
		"[rules]\nmin = \"1s\"\nnotice = \"10s\"\nfirst = \"1s\"\ninterval = \"1s\"\n",
		network.Name, network.Addrs[0], knobs, filepath.Join(l.home, "lab.tar"))
	if err := os.WriteFile(filepath.Join(home, "haggled.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	paths, err := config.RigPaths(home)
	if err != nil {
		t.Fatal(err)
	}
	r := &ownRig{t: t, home: home, log: filepath.Join(t.TempDir(), "own.log"), api: api.DialRig(paths.Socket)}
	t.Cleanup(r.down)
	r.up()
	return r
}

// up starts the rig and returns when it answers and has done with its images.
func (r *ownRig) up() {
	r.t.Helper()
	log, err := os.OpenFile(r.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.CommandContext(context.WithoutCancel(r.t.Context()), programPath("haggle"), "lab-rig", "serve", "--home", r.home)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = cleanEnv(), log, log, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() { _ = cmd.Wait() }() // down ends it
	await(r.t, "an answer of the test's own rig", func() bool {
		s, err := r.api.Status(r.t.Context())
		return err == nil && len(s.Images)+len(s.Warnings) > 0
	})
}

// end asks the rig to end and waits for it; jobs go on.
func (r *ownRig) end(ctx context.Context) error {
	s, err := r.api.Status(ctx)
	if err != nil {
		return err
	}
	if err := r.api.Shutdown(ctx); err != nil {
		return err
	}
	for alive(s.PID) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("rig %d does not end: %w", s.PID, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// down ends the rig and what it runs.
func (r *ownRig) down() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), patience)
	defer cancel()
	if r.t.Failed() {
		text, _ := os.ReadFile(r.log) // it is for people
		r.t.Logf("the end of %s:\n%s", r.log, text[max(0, len(text)-3000):])
	}
	if err := r.end(ctx); err != nil {
		r.t.Error(err)
	}
	purge := exec.CommandContext(ctx, programPath("haggle"), "lab-rig", "purge", "--yes", "--home", r.home)
	purge.Env = cleanEnv()
	if out, err := purge.CombinedOutput(); err != nil {
		r.t.Errorf("purge: %v\n%s", err, out)
	}
	if left := processes(r.home, nil); len(left) > 0 {
		r.t.Errorf("the rig left something behind:\n%s", strings.Join(left, "\n"))
	}
}

// status asks the rig how it is.
func (r *ownRig) status() view.RigStatus {
	r.t.Helper()
	s, err := r.api.Status(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// lease returns a lease as the rig sees it.
func (r *ownRig) lease(id string) view.Lease {
	r.t.Helper()
	list, err := r.api.Leases(r.t.Context(), true)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, v := range list {
		if v.ID == id {
			return v
		}
	}
	r.t.Fatalf("the rig does not know lease %s", id)
	return view.Lease{}
}

// wantSaid wants that a program's last line on stderr is an error with a hint, and what they contain.
func wantSaid(t *testing.T, p *program, sentence, hint string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(p.err.String(), "\n"), "\n")
	form := regexp.MustCompile(`^haggled?: (.+) \(hint: (.+)\)$`).FindStringSubmatch(lines[len(lines)-1])
	if form == nil || !strings.Contains(form[1], sentence) || !strings.Contains(form[2], hint) {
		t.Errorf("%s says\n%s\nwant a line with %q and, as its hint, %q", p.line, p.err.String(), sentence, hint)
	}
	if p.out.String() != "" {
		t.Errorf("%s writes %q to stdout", p.line, p.out.String())
	}
}

// countLines counts the lines of a file that contain a text.
func countLines(t *testing.T, path, text string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// startAs is start as another user, or as this one where there is none.
func startAs(t *testing.T, user *syscall.Credential, env []string, name string, args ...string) *program {
	t.Helper()
	if user == nil {
		return start(t, env, name, args...)
	}
	if err := os.Chmod(filepath.Dir(programPath(name)), 0o755); err != nil { // others are to run what is in it
		t.Fatal(err)
	}
	setpriv := []string{"--reuid", strconv.Itoa(int(user.Uid)), "--regid", strconv.Itoa(int(user.Gid)), "--clear-groups", programPath(name)}
	p := &program{t: t, line: name + " " + strings.Join(args, " "), env: env, ended: make(chan struct{})}
	p.cmd = exec.CommandContext(t.Context(), "setpriv", append(setpriv, args...)...)
	p.cmd.Env = append(cleanEnv(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the exit code is looked at by wait
	}()
	return p
}
