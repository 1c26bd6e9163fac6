//go:build linux && clients

package clients_test

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// host is a lease that clients enter under the name "box".
type host struct{ *lab }

// TestClientsOfSSH has one lease, and every client that people bring.
func TestClientsOfSSH(t *testing.T) {
	l := newLab(t, 1)
	l.rent("box", "--offer", "rig-1", "--image", tools().archive(t), "--for", "1h", "--", "sleep", "infinity")
	l.sshConfig()
	for _, c := range []struct {
		name string
		run  func(*host)
	}{
		{"exit codes are the command's", (*host).exitCodes},
		{"input goes in to its end, and what comes out is whole", (*host).streams},
		{"signals reach the command", (*host).signals},
		{"a terminal has a size, and its keys are signals", (*host).terminal},
		{"scp copies both ways", (*host).scp},
		{"sftp runs a batch", (*host).sftp},
		{"-L, -R and -D forward", (*host).forwards},
		{"ControlMaster shares a connection", (*host).master},
		{"rsync sends a difference only", (*host).rsync},
		{"rclone copies and lists", (*host).rclone},
		{"sshfs mounts", (*host).sshfs},
		{"paramiko runs commands and copies", (*host).paramiko},
		{"haggle's own commands go in and out", (*host).own},
		{"work goes on over the death of the agent and the rig's program", (*host).cut},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(&host{l.in(t)}) })
	}
}

// says wants a command in the job to end well and to write a text.
func (h *host) says(want, command string) {
	h.t.Helper()
	if got := h.wants(h.ssh("ssh", "box", command), 0); got != want {
		h.t.Errorf("ssh box %q wrote %q, want %q", command, got, want)
	}
}

// random makes a file that no compression helps with, and returns its hash as sha256sum writes it.
func (l *lab) random(name string, size int) string {
	l.t.Helper()
	data := make([]byte, size)
	_, _ = rand.Read(data) // it never fails
	l.write(name, string(data))
	return sum(string(data))
}

func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

func (h *host) exitCodes() {
	for _, code := range []int{0, 7, 255} {
		h.wants(h.ssh("ssh", "box", "exit "+strconv.Itoa(code)), code)
	}
	h.wants(h.ssh("ssh", "box", "no-such-command"), 127)
	h.says("/work root\n", `echo "$PWD $(id -un)"`)
}

func (h *host) streams() {
	hash := h.random("big", 16<<20)
	in, err := os.Open(filepath.Join(h.work, "big"))
	if err != nil {
		h.t.Fatal(err)
	}
	defer in.Close()
	cmd := h.ssh("ssh", "box", "sha256sum")
	cmd.Stdin = in
	if got := h.wants(cmd, 0); got != hash+"  -\n" {
		h.t.Errorf("what went in has the hash %q, want %s", got, hash)
	}
	out := h.wants(h.ssh("ssh", "box", `python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256))*65536)'; echo talk >&2`), 0)
	if want := strings.Repeat(string(everyByte()), 65536); out != want {
		h.t.Errorf("%d bytes came out, which are not the %d that went", len(out), len(want))
	}
}

func everyByte() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

func (h *host) signals() {
	trap := `trap 'echo told; exit 3' TERM; echo ready; while :; do sleep 0.1; done`
	exec := h.start(h.command("haggle", "exec", "box", "--", "sh", "-c", trap))
	exec.awaitOut("ready")
	if err := exec.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		h.t.Fatal(err)
	}
	if got := exec.wants(3); got != "ready\ntold\n" {
		h.t.Errorf("the command wrote %q", got)
	}
	gone := h.start(h.ssh("ssh", "box", "echo ready; exec sleep 86399"))
	gone.awaitOut("ready")
	gone.interrupt()
	await(h.t, "the end of a command whose client has left", func() bool {
		return !strings.Contains(h.wants(h.ssh("ssh", "box", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"), 0), "sleep 86399")
	})
}

// terminal sits at a terminal of tmux.
func (h *host) terminal() {
	require(h.t, "tmux")
	for i, client := range []string{"ssh -F " + h.config + " -tt box", program("haggle") + " shell box"} {
		socket := filepath.Join(h.work, "tmux"+strconv.Itoa(i))
		tmux := func(args ...string) string {
			h.t.Helper()
			return h.run("tmux", append([]string{"-u", "-S", socket}, args...)...)
		}
		h.t.Cleanup(func() { _ = exec.Command("tmux", "-S", socket, "kill-server").Run() }) //nolint:noctx // after the test's context too
		tmux("-f", "/dev/null", "new-session", "-d", "-s", "0", "-x", "100", "-y", "30", client)
		sees := func(text string) {
			h.t.Helper()
			await(h.t, text+" on the screen", func() bool {
				for line := range strings.Lines(tmux("capture-pane", "-p", "-t", "0")) {
					if strings.TrimRight(line, " \n") == text {
						return true
					}
				}
				return false
			})
		}
		types := func(line string) {
			h.t.Helper()
			tmux("send-keys", "-t", "0", "-l", "--", line)
			tmux("send-keys", "-t", "0", "Enter")
		}
		types("PS1=; clear; stty size")
		sees("30 100")
		tmux("resize-window", "-t", "0", "-x", "70", "-y", "20")
		types("clear; until [ \"$(stty size)\" = '20 70' ]; do sleep 0.1; done; echo smaller")
		sees("smaller")
		types("clear; echo asleep; sleep 1000 || echo woken")
		sees("asleep")
		tmux("send-keys", "-t", "0", "C-c")
		types("echo code $?")
		sees("code 130")
		types("exit")
		await(h.t, "the end of the session", func() bool {
			return h.command("tmux", "-S", socket, "has-session", "-t", "0").Run() != nil
		})
	}
}

func (h *host) scp() {
	hash := h.random("tree/a/big", 8<<20)
	h.write("tree/b c.txt", "b\n")
	h.wants(h.ssh("scp", "-r", "tree", "box:scp"), 0)
	h.says(hash+"  scp/a/big\n", "sha256sum scp/a/big")
	h.wants(h.ssh("scp", "-rp", "box:/work/scp", "back"), 0)
	if sum(h.read("back/a/big")) != hash || h.read("back/b c.txt") != "b\n" {
		h.t.Error("the folder has changed on its way")
	}
}

func (h *host) sftp() {
	h.write("f", "hello")
	cmd := h.ssh("sftp", "-b", "-", "box")
	cmd.Stdin = strings.NewReader("mkdir d\nput f d/g\nrename d/g d/h\nget d/h f2\nchmod 600 d/h\nln -s h d/l\nls -l d\ndf d\nrm d/l\n")
	h.wants(cmd, 0)
	if h.read("f2") != "hello" {
		h.t.Error("the file has changed on its way")
	}
	h.says("h 600\n", "cd d; stat -c '%n %a' *")
}

// serve has a server answer with a word, on the renter's machine.
func serve(t *testing.T, word string) (port string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, word) }))
	t.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(s.Listener.Addr().String())
	return port
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

// curl fetches a page until it has a text.
func (l *lab) curl(want string, args ...string) {
	l.t.Helper()
	require(l.t, "curl")
	await(l.t, fmt.Sprintf("%q from curl %s", want, strings.Join(args, " ")), func() bool {
		out, err := l.command("curl", append([]string{"-s", "-m", "10"}, args...)...).Output()
		return err == nil && string(out) == want
	})
}

func (h *host) forwards() {
	inside := h.start(h.ssh("ssh", "box", "mkdir -p site; echo inside >site/index.html; cd site; exec python3 -u -m http.server --bind 127.0.0.1 8123"))
	inside.awaitOut("Serving")
	defer inside.interrupt()
	local, socks := freePort(h.t), freePort(h.t)
	ssh := h.start(h.ssh("ssh", "-N", "-o", "ExitOnForwardFailure=yes", "-o", "LogLevel=INFO",
		"-L", local+":localhost:8123", "-D", socks, "-R", "0:127.0.0.1:"+serve(h.t, "outside"), "box"))
	defer ssh.interrupt()
	h.curl("inside\n", "http://127.0.0.1:"+local)
	h.curl("inside\n", "--socks5-hostname", "127.0.0.1:"+socks, "http://localhost:8123")
	var found []string
	await(h.t, "the port of -R", func() bool {
		found = regexp.MustCompile(`Allocated port (\d+) for remote forward`).FindStringSubmatch(ssh.err.String())
		return found != nil
	})
	h.says("outside", `python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:`+found[1]+`").read().decode(), end="")'`)
	forward := h.start(h.command("haggle", "forward", "box", "8123:"+freePort(h.t)))
	defer forward.interrupt()
	forward.awaitOut(" -> ")
	address, _, _ := strings.Cut(forward.out.String(), " ")
	h.curl("inside\n", "http://"+address)
}

func (h *host) master() {
	socket := filepath.Join(h.work, "cm")
	master := h.start(h.ssh("ssh", "-N", "-M", "-S", socket, "box"))
	defer master.interrupt()
	await(h.t, "the master", func() bool { return h.ssh("ssh", "-S", socket, "-O", "check", "box").Run() == nil })
	for code := range 3 {
		h.wants(h.ssh("ssh", "-S", socket, "-o", "ProxyCommand=false", "box", "exit "+strconv.Itoa(code)), code)
	}
}
