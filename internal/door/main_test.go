//go:build unix

package door_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"haggle/internal/door"
	"haggle/internal/tunnel"
)

// TestMain lets the test's program be the door, and the proxy between a client and the door.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "inside" && os.Args[2] == "door" {
		os.Exit(door.Main(context.Background(), os.Args[3:], os.Stdout))
	}
	if len(os.Args) == 3 && os.Args[1] == "proxy" {
		os.Exit(proxy(os.Args[2]))
	}
	os.Exit(m.Run())
}

// proxy is what an SSH client has for a ProxyCommand.
func proxy(address string) int {
	c, err := dial(context.Background(), address, tunnel.KindSSH, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		_, _ = io.Copy(c, os.Stdin)
		_ = c.CloseWrite()
		time.AfterFunc(2*time.Second, func() { _ = c.Close() }) // the client is gone
	}()
	_, err = io.Copy(os.Stdout, c)
	_ = c.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func opener(address string) tunnel.Opener {
	return func(ctx context.Context) (tunnel.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, "unix", address)
		if err != nil {
			return nil, err
		}
		return c.(*net.UnixConn), nil
	}
}

func dial(ctx context.Context, address, kind string, args []byte) (*tunnel.Channel, error) {
	return tunnel.Dial(ctx, tunnel.Config{Open: opener(address), Request: tunnel.Request{Kind: kind, Args: args}})
}

// job is a door in a process of its own, with a folder that stands for /work.
type job struct {
	t       *testing.T
	dir     string // short, for sockets and the client's files
	work    string
	address string
	config  string // for OpenSSH's clients
	cmd     *exec.Cmd
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hg") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func startJob(t *testing.T) *job {
	t.Helper()
	j := &job{t: t, dir: shortDir(t)}
	j.work = filepath.Join(j.dir, "work")
	j.address = filepath.Join(j.dir, "door")
	j.config = filepath.Join(j.dir, "config")
	if err := os.Mkdir(j.work, 0o755); err != nil {
		t.Fatal(err)
	}
	j.configure()
	j.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), self(t), "inside", "door", "--root", j.work, j.address)
	j.cmd.Env = append(os.Environ(), "HAGGLE_LEASE=l-1", "SHELL=/bin/sh")
	begin(t, j.cmd)
	return j
}

// configure writes what OpenSSH's clients need to know.
func (j *job) configure() {
	j.t.Helper()
	write(j.t, j.config, fmt.Sprintf(`Host job
	ProxyCommand %s proxy %s
	User anyone
	IdentityFile /dev/null
	StrictHostKeyChecking no
	UserKnownHostsFile /dev/null
	LogLevel ERROR
	ControlPath %s/cm
`, self(j.t), j.address, j.dir))
}

// begin starts a door and waits until it is ready; the test's end ends it.
func begin(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "ready\n" {
		t.Fatalf("the door said %q, %v", line, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// require names a program that a test needs.
func require(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		missing(t, program)
	}
}

func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing", what)
	}
	t.Skipf("%s is missing", what)
}

// client makes a command of a client's.
func (j *job) client(name string, args ...string) *exec.Cmd {
	j.t.Helper()
	require(j.t, name)
	return exec.CommandContext(j.t.Context(), name, args...)
}

func (j *job) ssh(args ...string) *exec.Cmd {
	return j.client("ssh", append([]string{"-F", j.config, "job"}, args...)...)
}

// output runs a command that must succeed.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out, errs.String())
	}
	return string(out)
}

// sshClient is Go's own client on a channel to the door.
func (j *job) sshClient() *ssh.Client {
	j.t.Helper()
	c, err := dial(j.t.Context(), j.address, tunnel.KindSSH, nil)
	if err != nil {
		j.t.Fatal(err)
	}
	conn, chans, reqs, err := ssh.NewClientConn(c, "job", &ssh.ClientConfig{
		User: "x", HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 10 * time.Second, //nolint:gosec // the path is what is trusted
	})
	if err != nil {
		j.t.Fatal(err)
	}
	client := ssh.NewClient(conn, chans, reqs)
	j.t.Cleanup(func() { _ = client.Close() })
	return client
}

func (j *job) session() *ssh.Session {
	j.t.Helper()
	s, err := j.sshClient().NewSession()
	if err != nil {
		j.t.Fatal(err)
	}
	return s
}

// eventually waits for a condition of another process.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(15 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited too long: %s", what)
		}
	}
}
