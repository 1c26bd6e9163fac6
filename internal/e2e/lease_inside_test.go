//go:build linux

package e2e_test

import (
	"crypto/rand"
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"haggle/internal/view"
)

// visited is a lease whose job is entered, and the files of the one who enters it.
type visited struct {
	*lab
	dir   string
	lease string
}

func TestALeaseIsEnteredFromOutside(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	v := &visited{lab: l, dir: shortDir(t)}
	v.write("src/main.txt", "the program\n")
	v.write("src/data.tmp", "not to be sent\n")
	v.write("src/.gitignore", "*.tmp\n")
	if err := os.Mkdir(v.path("home"), 0o755); err != nil {
		t.Fatal(err)
	}
	v.lease = strings.TrimSpace(l.haggle("bid", "--offer", "rig-1", "--image", "lab", "--name", "train", "--src", v.path("src"),
		"--collect", "ckpt.json:"+v.path("home"), "--collect", "out:"+v.path("out"), "--port", "web=18080",
		"--", "train", "--steps", "100000").wants(0).out.String())
	await(t, "the job at work", func() bool { return l.rigLease(1, v.lease).State == "running" })
	if err := os.WriteFile(v.path("ssh"), []byte(l.haggle("ssh-config", "--print").wants(0).out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("the source folder is where the job begins", func(t *testing.T) { v.at(t).source() })
	t.Run("commands run beside the job, with their input and exit codes", func(t *testing.T) { v.at(t).commands() })
	t.Run("OpenSSH runs commands and copies", func(t *testing.T) { v.at(t).openssh() })
	t.Run("cp copies folders both ways", func(t *testing.T) { v.at(t).copies() })
	t.Run("ports lead in and out", func(t *testing.T) { v.at(t).ports() })
	t.Run("a kept disk is entered, and its job goes on", func(t *testing.T) { v.at(t).keeps() })
	t.Run("what the job left comes home", func(t *testing.T) { v.at(t).collects() })
}

// at returns the same lease for a subtest.
func (v *visited) at(t *testing.T) *visited {
	t.Helper()
	twin, house := *v, *v.lab
	house.t = t
	twin.lab = &house
	return &twin
}

func (v *visited) path(name string) string { return filepath.Join(v.dir, name) }

func (v *visited) write(name, text string) {
	v.t.Helper()
	if err := os.MkdirAll(filepath.Dir(v.path(name)), 0o755); err != nil {
		v.t.Fatal(err)
	}
	if err := os.WriteFile(v.path(name), []byte(text), 0o644); err != nil {
		v.t.Fatal(err)
	}
}

func (v *visited) read(name string) string {
	v.t.Helper()
	text, err := os.ReadFile(v.path(name))
	if err != nil {
		v.t.Fatal(err)
	}
	return string(text)
}

// random makes a file that no compression helps with, and returns its hash.
func (v *visited) random(name string, size int64) [32]byte {
	v.t.Helper()
	data := make([]byte, size)
	_, _ = rand.Read(data) // it never fails
	v.write(name, string(data))
	return sha256.Sum256(data)
}

// client starts a program of OpenSSH's that knows the lease.
func (v *visited) client(name string, args ...string) *program {
	v.t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		v.t.Fatalf("this test needs %s", name)
	default:
		v.t.Skipf("this test needs %s", name)
	}
	cmd := exec.CommandContext(v.t.Context(), path, append([]string{"-F", v.path("ssh")}, args...)...)
	return startCommand(v.t, []string{"HAGGLE_HOME=" + v.home}, name, cmd)
}

// wantOut wants a program to end well and to have written a text.
func wantOut(t *testing.T, p *program, want string) {
	t.Helper()
	if got := p.wants(0).out.String(); got != want {
		t.Errorf("%s wrote %q, want %q", p.line, got, want)
	}
}

func (v *visited) source() {
	wantOut(v.t, v.haggle("exec", "train", "--", "cat", "main.txt"), "the program\n")
	v.haggle("exec", "train", "--", "cat", "data.tmp").wants(1)
}

func (v *visited) commands() {
	t := v.t
	v.haggle("exec", "train", "--", "/bin/haggle", "version").wants(0)
	v.haggle("shell", "train", "--", "exit 7").wants(7)
	wantOut(t, v.haggle("exec", "train", "--", "pwd"), "/work\n")
	if env := v.haggle("exec", "-e", "WORD=a b", "train", "--", "env").wants(0).out.String(); !strings.Contains(env, "\nWORD=a b\n") {
		t.Errorf("the command's environment has no WORD:\n%s", env)
	}
	cmd := exec.CommandContext(t.Context(), programPath("haggle"), "exec", "-i", v.lease[:8], "--", "cat")
	cmd.Stdin = strings.NewReader("through and back")
	wantOut(t, startCommand(t, []string{"HAGGLE_HOME=" + v.home}, "haggle", cmd), "through and back")
}

func (v *visited) openssh() {
	t := v.t
	v.client("ssh", "train", "exit 7").wants(7)
	wantOut(t, v.client("ssh", "lease-"+v.lease[:4], "cat main.txt"), "the program\n")
	hash := v.random("big", 4<<20)
	v.client("scp", v.path("big"), "train:big").wants(0)
	v.client("scp", "train:/work/big", v.path("back")).wants(0)
	if sha256.Sum256([]byte(v.read("back"))) != hash {
		t.Error("the file has changed on its way")
	}
}

func (v *visited) copies() {
	t := v.t
	hash := v.random("tree/a/big", 4<<20)
	v.write("tree/b.txt", "b\n")
	v.haggle("cp", v.path("tree"), "train:").wants(0)
	wantOut(t, v.haggle("exec", "train", "--", "cat", "tree/b.txt"), "b\n")
	v.haggle("cp", "train:tree/", v.path("tree2")).wants(0)
	if sha256.Sum256([]byte(v.read("tree2/a/big"))) != hash || v.read("tree2/b.txt") != "b\n" {
		t.Error("the folder has changed on its way")
	}
	v.haggle("cp", "train:nothing", v.path("nothing")).wants(3)
}

// ports has OpenSSH open a port in the job that leads to a server of this test, and comes back to it through the job.
func (v *visited) ports() {
	t := v.t
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	t.Cleanup(site.Close)
	local := freePort(t)
	ssh := v.client("ssh", "-N", "-o", "ExitOnForwardFailure=yes", "-R", "18080:"+site.Listener.Addr().String(), "-L", local+":127.0.0.1:18080", "train")
	await(t, "an answer by way of ssh -L and -R", func() bool { return fetch(t, "http://127.0.0.1:"+local) == "hello" })
	forward := v.haggle("forward", "train", "web:"+freePort(t))
	forward.awaitOut(" -> ")
	address, _, _ := strings.Cut(forward.out.String(), " ")
	await(t, "an answer by way of haggle forward", func() bool { return fetch(t, "http://"+address) == "hello" })
	for _, p := range []*program{forward, ssh} {
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		<-p.ended
	}
}

// fetch returns what a server answers, or why there is no answer.
func fetch(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// freePort returns a port of loopback that is free at this moment.
func freePort(t *testing.T) string {
	t.Helper()
	var listens net.ListenConfig
	l, err := listens.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String()) // an address of Go's own
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

// keeps frees the card and comes back to the files.
func (v *visited) keeps() {
	t := v.t
	v.haggle("stop", "--keep", "train").wants(0)
	v.awaitFree(1, 2)
	await(t, "a paused lease", func() bool { return v.rigLease(1, v.lease).State == "paused" })
	v.haggle("cp", "train:tree/b.txt", v.path("kept.txt")).wants(0)
	if v.read("kept.txt") != "b\n" {
		t.Error("the kept file is another")
	}
	v.haggle("resume", "train").wants(0)
	await(t, "the job at work again", func() bool { return v.rigLease(1, v.lease).State == "running" })
	wantOut(t, v.haggle("exec", "train", "--", "cat", "tree/b.txt"), "b\n")
	v.client("ssh", "train", "exit 8").wants(8)
}

func (v *visited) collects() {
	t := v.t
	v.haggle("exec", "train", "--", "mkdir", "out").wants(0)
	v.haggle("exec", "train", "--", "cp", "main.txt", "out/result.txt").wants(0)
	v.haggle("stop", "train").wants(0)
	var last view.Lease
	await(t, "all that is collected", func() bool {
		var err error
		last, err = v.agent.Lease(t.Context(), v.lease)
		return err == nil && len(last.Collects) == 2 && last.Collects[0].Done && last.Collects[1].Done
	})
	if text := v.read("out/result.txt"); text != "the program\n" {
		t.Errorf("the job's out/result.txt came home as %q", text)
	}
	v.haggle("cp", v.lease[:8]+":ckpt.json", v.path("again")).wants(0)
	if came := v.read("home/ckpt.json"); came != v.read("again") || came == "" {
		t.Error("the checkpoint that came home is not the one on the job's disk")
	}
	v.settled(1, v.lease)
}
