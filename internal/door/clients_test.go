//go:build unix

package door_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tree makes a few files to copy.
func tree(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a", "one"), "1")
	write(t, filepath.Join(dir, "a", "b", "two"), strings.Repeat("2", 100_000))
}

func sameTree(t *testing.T, dir string) {
	t.Helper()
	if read(t, filepath.Join(dir, "a", "one")) != "1" || len(read(t, filepath.Join(dir, "a", "b", "two"))) != 100_000 {
		t.Error("the copy is another")
	}
}

func TestScpCopiesFoldersBothWays(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	local := filepath.Join(j.dir, "local")
	tree(t, local)
	output(t, j.client("scp", "-F", j.config, "-r", local, "job:there"))
	sameTree(t, filepath.Join(j.work, "there"))
	output(t, j.client("scp", "-F", j.config, "-r", "job:there", filepath.Join(j.dir, "back")))
	sameTree(t, filepath.Join(j.dir, "back"))
}

func TestSftpRunsABatch(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	write(t, filepath.Join(j.dir, "f"), "hello")
	cmd := j.client("sftp", "-F", j.config, "-b", "-", "job")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(
		"mkdir d\nput %s/f d/g\nrename d/g d/h\nget d/h %s/back\nls -l d\nchmod 600 d/h\nln -s h d/l\nrm d/l\n", j.dir, j.dir))
	output(t, cmd)
	if read(t, filepath.Join(j.dir, "back")) != "hello" || read(t, filepath.Join(j.work, "d", "h")) != "hello" {
		t.Error("the file is another")
	}
}

func TestRsyncCopiesBothWays(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	local := filepath.Join(j.dir, "local")
	tree(t, local)
	sh := "ssh -F " + j.config
	output(t, j.client("rsync", "-a", "-e", sh, local+"/", "job:there/"))
	sameTree(t, filepath.Join(j.work, "there"))
	output(t, j.client("rsync", "-a", "-e", sh, "job:there/", filepath.Join(j.dir, "back")))
	sameTree(t, filepath.Join(j.dir, "back"))
}

func TestRcloneListsAndCopies(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	local := filepath.Join(j.dir, "local")
	tree(t, local)
	ssh := fmt.Sprintf("ssh -F %s job", j.config)
	rclone := func(args ...string) string {
		cmd := j.client("rclone", append([]string{"--config", "/dev/null", "--sftp-ssh", ssh, "--sftp-shell-type", "none"}, args...)...)
		return output(t, cmd)
	}
	if !regexp.MustCompile(`--sftp-ssh`).MatchString(output(t, j.client("rclone", "help", "flags"))) {
		// An older rclone speaks SSH itself, and needs an address: a port that leads to the door.
		port := j.listen()
		rclone = func(args ...string) string {
			return output(t, j.client("rclone", append([]string{
				"--config", "/dev/null", "--sftp-host", "127.0.0.1", "--sftp-port", port, "--sftp-user", "x", "--sftp-pass", obscured,
				"--sftp-ask-password=false", "--sftp-key-use-agent=false", "--sftp-disable-hashcheck",
			}, args...)...))
		}
	}
	rclone("copy", local, ":sftp:there")
	sameTree(t, filepath.Join(j.work, "there"))
	if got := rclone("lsf", "-R", ":sftp:there"); got != "a/\na/b/\na/b/two\na/one\n" && !strings.Contains(got, "a/b/two") {
		t.Errorf("%q", got)
	}
	rclone("copy", ":sftp:there", filepath.Join(j.dir, "back"))
	sameTree(t, filepath.Join(j.dir, "back"))
}

// obscured is a password as rclone writes it, which the door does not ask for.
const obscured = "YmJiYmJiYmJiYmJiYmJiYp3gcEWbAw"

// listen gives a port of loopback that leads to the door, for clients that know no ProxyCommand.
func (j *job) listen() string {
	j.t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(j.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				cmd := exec.CommandContext(j.t.Context(), self(j.t), "proxy", j.address)
				cmd.Stdin, cmd.Stdout = c, c
				_ = cmd.Run()
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func TestSshfsMounts(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		missing(t, "/dev/fuse")
	} else {
		_ = f.Close()
	}
	require(t, "fusermount3")
	tree(t, j.work)
	at := filepath.Join(j.dir, "mount")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	output(t, j.client("sshfs", "-F", j.config, "job:", at))
	t.Cleanup(func() { _ = exec.Command("fusermount3", "-u", "-z", at).Run() }) //nolint:noctx // after the test's context
	sameTree(t, at)
	write(t, filepath.Join(at, "new"), "n")
	if read(t, filepath.Join(j.work, "new")) != "n" {
		t.Error("what was written is not there")
	}
}

func TestParamikoRunsACommandAndCopies(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	const python = "/usr/bin/python3"
	require(t, python)
	if exec.CommandContext(t.Context(), python, "-c", "import paramiko").Run() != nil {
		missing(t, "python3-paramiko")
	}
	script := filepath.Join(j.dir, "p.py")
	write(t, script, `
import sys, paramiko
sock = paramiko.ProxyCommand(sys.argv[1] + " proxy " + sys.argv[2])
t = paramiko.Transport(sock)
t.start_client(timeout=10)
t.auth_none("x")
ch = t.open_session()
ch.exec_command("cat; exit 5")
ch.sendall(b"hello")
ch.shutdown_write()
out = ch.makefile().read()
assert out == b"hello", out
assert ch.recv_exit_status() == 5
sftp = paramiko.SFTPClient.from_transport(t)
with sftp.open("f", "w") as f: f.write("x" * 100000)
assert sftp.stat("f").st_size == 100000
assert "f" in sftp.listdir(".")
t.close()
`)
	output(t, j.client(python, script, self(t), j.address))
	if len(read(t, filepath.Join(j.work, "f"))) != 100_000 {
		t.Error("the file is another")
	}
}

// site is a server of the test's.
func site(t *testing.T, word string) (port string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, word) }))
	t.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(s.Listener.Addr().String())
	return port
}

func fetch(t *testing.T, at string) string {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at, nil)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return string(b)
}

// hold runs ssh until the test ends, and gives what it says on stderr.
func (j *job) hold(args ...string) *bufio.Reader {
	j.t.Helper()
	cmd := j.client("ssh", append([]string{"-F", j.config, "-o", "LogLevel=INFO", "-o", "ExitOnForwardFailure=yes"}, args...)...)
	errs, _ := cmd.StderrPipe()
	in, _ := cmd.StdinPipe()
	if err := cmd.Start(); err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return bufio.NewReader(errs)
}

func TestForwardsOfOpenSSH(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	port := site(t, "hello")

	t.Run("a local port leads into the job", func(t *testing.T) {
		local := filepath.Join(j.dir, "l.sock")
		j.hold("-N", "-L", local+":localhost:"+port, "job")
		eventually(t, "the forward", func() bool {
			out, err := exec.CommandContext(t.Context(), "curl", "-s", "--unix-socket", local, "http://x/").Output()
			return err == nil && string(out) == "hello"
		})
	})
	t.Run("any port of the job leads home", func(t *testing.T) {
		errs := j.hold("-N", "-R", "0:127.0.0.1:"+port, "job")
		at := regexp.MustCompile(`Allocated port (\d+) for remote forward`)
		var found []string
		for found == nil {
			line, err := errs.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			found = at.FindStringSubmatch(line)
		}
		if got := fetch(t, "127.0.0.1:"+found[1]); got != "hello" {
			t.Error(got)
		}
	})
	t.Run("a socket of the job leads home", func(t *testing.T) {
		far := filepath.Join(j.work, "r.sock")
		j.hold("-N", "-R", far+":127.0.0.1:"+port, "job")
		eventually(t, "the forward", func() bool {
			out, err := exec.CommandContext(t.Context(), "curl", "-s", "--unix-socket", far, "http://x/").Output()
			return err == nil && string(out) == "hello"
		})
	})
	t.Run("SOCKS", func(t *testing.T) {
		require(t, "curl")
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at := l.Addr().String()
		_ = l.Close()
		j.hold("-N", "-D", at, "job")
		eventually(t, "the proxy", func() bool {
			out, err := exec.CommandContext(t.Context(), "curl", "-s", "--socks5-hostname", at, "http://127.0.0.1:"+port).Output()
			return err == nil && string(out) == "hello"
		})
	})
}

func TestControlMasterSharesOneConnection(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	j.hold("-N", "-M", "job")
	eventually(t, "the master", func() bool { return j.client("ssh", "-F", j.config, "-O", "check", "job").Run() == nil })
	for i := range 3 {
		cmd := j.client("ssh", "-F", j.config, "-o", "ProxyCommand=false", "job", fmt.Sprintf("cat; exit %d", i))
		cmd.Stdin = bytes.NewReader([]byte("x"))
		out, _ := cmd.Output()
		if string(out) != "x" || cmd.ProcessState.ExitCode() != i {
			t.Errorf("%q, %d", out, cmd.ProcessState.ExitCode())
		}
	}
}
