//go:build linux && clients

package clients_test

import (
	"crypto/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func (h *host) rsync() {
	require(h.t, "rsync")
	data := make([]byte, 16<<20)
	_, _ = rand.Read(data) // it never fails
	h.write("rs/big", string(data))
	sync := func(args ...string) int {
		h.t.Helper()
		out := h.run("rsync", append([]string{"-a", "--stats", "--no-whole-file", "-e", "ssh -F " + h.config}, args...)...)
		found := regexp.MustCompile(`Literal data: ([\d,]+)`).FindStringSubmatch(out)
		if found == nil {
			h.t.Fatalf("rsync says\n%s", out)
		}
		n, _ := strconv.Atoi(strings.ReplaceAll(found[1], ",", "")) // the pattern has digits only
		return n
	}
	if n := sync("rs/", "box:rs/"); n != len(data) {
		h.t.Errorf("the first time %d bytes were sent of %d", n, len(data))
	}
	data[5<<20]++
	h.write("rs/big", string(data))
	h.run("touch", "-d", "+1 minute", "rs/big")
	if n := sync("rs/", "box:rs/"); n == 0 || n > 1<<20 {
		h.t.Errorf("the second time %d bytes were sent, where one had changed", n)
	}
	h.says(sum(string(data))+"  rs/big\n", "sha256sum rs/big")
	sync("box:rs/", "rs2/")
	if sum(h.read("rs2/big")) != sum(string(data)) {
		h.t.Error("the file has changed on its way")
	}
}

func (h *host) rclone() {
	require(h.t, "rclone")
	h.random("rc/a/big", 4<<20)
	h.write("rc/b", "b")
	flags := []string{"--config", "/dev/null", "--sftp-ssh", "ssh -F " + h.config + " box", "--sftp-shell-type", "none"}
	if out, err := h.command("rclone", "help", "flags").Output(); err != nil || !strings.Contains(string(out), "--sftp-ssh") {
		// An older one speaks SSH itself, and needs an address.
		flags = []string{
			"--config", "/dev/null", "--sftp-host", "127.0.0.1", "--sftp-port", h.door(), "--sftp-user", "root",
			"--sftp-key-use-agent=false", "--sftp-disable-hashcheck", "--sftp-pass", obscured,
		}
	}
	rclone := func(args ...string) string {
		h.t.Helper()
		return h.run("rclone", append(flags, args...)...)
	}
	rclone("copy", "rc", ":sftp:/work/rc")
	if got := rclone("lsf", "-R", "--files-only", ":sftp:/work/rc"); !strings.Contains(got, "a/big\n") || !strings.Contains(got, "b\n") {
		h.t.Errorf("rclone lists %q", got)
	}
	rclone("copy", ":sftp:/work/rc", "rc2")
	if h.read("rc2/a/big") != h.read("rc/a/big") {
		h.t.Error("the file has changed on its way")
	}
}

// obscured is a password as rclone writes it, which nobody asks for.
const obscured = "YmJiYmJiYmJiYmJiYmJiYp3gcEWbAw"

// door gives a port of loopback that leads to the SSH server of the job, for clients that know no ProxyCommand.
func (h *host) door() string {
	h.t.Helper()
	var listens net.ListenConfig
	l, err := listens.Listen(h.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				cmd := h.command("haggle", "ssh-proxy", "box")
				cmd.Stdin, cmd.Stdout = c, c
				_ = cmd.Run() // the client sees how it ended
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func (h *host) sshfs() {
	require(h.t, "sshfs", "fusermount3")
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		lacks(h.t, "/dev/fuse")
	} else {
		_ = f.Close()
	}
	at := filepath.Join(h.work, "mount")
	if err := os.Mkdir(at, 0o700); err != nil {
		h.t.Fatal(err)
	}
	h.wants(h.ssh("sshfs", "box:", at), 0)
	unmount := func() error { return exec.Command("fusermount3", "-u", "-z", at).Run() } //nolint:noctx // after the test's context too
	h.t.Cleanup(func() { _ = unmount() })
	h.write("mount/new", "from here")
	h.says("from here", "cat new")
	h.says("", "printf 'from there' >new2")
	if h.read("mount/new2") != "from there" {
		h.t.Error("the file is another")
	}
	if err := unmount(); err != nil {
		h.t.Error(err)
	}
}

func (h *host) paramiko() {
	const python = "/usr/bin/python3"
	require(h.t, python)
	if h.command(python, "-c", "import paramiko").Run() != nil {
		lacks(h.t, "python3-paramiko")
	}
	script := h.write("p.py", `
import sys, paramiko
config = paramiko.SSHConfig.from_path(sys.argv[1]).lookup("box")
c = paramiko.SSHClient()
c.set_missing_host_key_policy(paramiko.AutoAddPolicy())
t = paramiko.Transport(paramiko.ProxyCommand(config["proxycommand"]))
t.start_client(timeout=60)
t.auth_none(config["user"])
ch = t.open_session()
ch.exec_command("cat; exit 5")
ch.sendall(b"hello")
ch.shutdown_write()
out = ch.makefile().read()
assert out == b"hello", out
assert ch.recv_exit_status() == 5
sftp = paramiko.SFTPClient.from_transport(t)
with sftp.open("paramiko", "w") as f: f.write("x" * 1000000)
assert sftp.stat("paramiko").st_size == 1000000
assert "paramiko" in sftp.listdir(".")
with sftp.open("paramiko") as f: assert f.read() == b"x" * 1000000
t.close()
`)
	h.run(python, script, h.config)
}

func (h *host) own() {
	hash := h.random("own/a/big", 8<<20)
	h.run("haggle", "cp", "own", "box:")
	h.says(hash+"  own/a/big\n", "sha256sum own/a/big")
	h.run("haggle", "sync", "box:own", "own2")
	if sum(h.read("own2/a/big")) != hash {
		h.t.Error("the folder has changed on its way")
	}
	cmd := h.command("haggle", "exec", "-i", "-w", "own", "-e", "WORD=a b", "box", "--", "sh", "-c", `cat; echo " $WORD $PWD"`)
	cmd.Stdin = strings.NewReader("in")
	if got := h.wants(cmd, 0); got != "in a b /work/own\n" {
		h.t.Errorf("exec wrote %q", got)
	}
	h.wants(h.command("haggle", "shell", "box", "--", "exit 9"), 9)
}
