//go:build unix

package door_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/crypto/ssh"
)

// shell runs the built-in shell on a text.
func shell(t *testing.T, dir, command, in string) (string, int) {
	t.Helper()
	args := []string{"inside", "door", "shell"}
	if command != "" {
		args = append(args, "-c", command)
	}
	cmd := exec.CommandContext(t.Context(), self(t), args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/nowhere", "HOME=/", "GREETING=hello"}
	cmd.Stdin = strings.NewReader(in)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	return out.String(), cmd.ProcessState.ExitCode()
}

func TestTheBuiltInShellHasTheFirstFewCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, command, in, out string
		code                   int
	}{
		{"echo and code", `echo $GREETING; exit 7`, "", "hello\n", 7},
		{"cat and wc", `cat | wc -l`, "a\nb\n", "2\n", 0},
		{"files", `mkdir -p d/e && echo x > d/e/f && cp -r d c && mv c/e/f c/g && ls c && cat c/g && rm -r c && ls`, "", "e\ng\nx\nd\n", 0},
		{"head and tail", `head -n 2 | tail -1`, "a\nb\nc\n", "b\n", 0},
		{"a folder is not removed without -r", `mkdir d; rm d`, "", "rm: d: is a folder; use -r\n", 1},
		{"env", `env | tail -n 0; A=1 env`, "", "", -1},
		{"unknown", `frobnicate`, "", "\"frobnicate\": executable file not found in $PATH\n", 127},
		{"loops", `for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done`, "", "1\n3\n", 0},
		{"a shell in the shell", `sh -c 'echo $0 $1; exit 6' zero one`, "", "", 6},
		{"a script", `echo 'echo $1 $GREETING; exit 4' >s.sh; bash s.sh word`, "", "word hello\n", 4},
		{"no such script", `sh gone.sh`, "", "haggle shell: cannot read gone.sh\n", 2},
		{"a mistake", `if`, "", "", 2},
		{"scp", `scp -t /x`, "", "scp: this image has no scp; use scp without -O (OpenSSH 9 or newer), sftp, or haggle cp\n", 1},
		{"from its input", "", "cd /\npwd\nfalse\n", "/\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, code := shell(t, t.TempDir(), c.command, c.in)
			if c.out != "" && out != c.out || c.code >= 0 && code != c.code {
				t.Errorf("%q, %d", out, code)
			}
		})
	}
}

func TestTheBuiltInShellTalksToATerminal(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), self(t), "inside", "door", "shell")
	cmd.Env = []string{"PATH=/nowhere"}
	tty, err := pty.Start(cmd)
	if err != nil {
		missing(t, "a terminal")
	}
	defer tty.Close()
	talk := func(send, want string) {
		t.Helper()
		_, _ = io.WriteString(tty, send)
		var seen []byte
		b := make([]byte, 4096)
		for !strings.Contains(string(seen), want) {
			n, err := tty.Read(b)
			if err != nil {
				t.Fatalf("no %q in %q: %v", want, seen, err)
			}
			seen = append(seen, b[:n]...)
		}
	}
	talk("", "$ ")
	talk("echo on''e\n", "one\r\n")
	talk("echo )\n", "haggle shell:")
	talk("echo tw''o\n", "two\r\n")
	talk("sleep 60\n", "sleep 60")
	talk("\x03", "$ ")
	talk("echo thr''ee\n", "three\r\n")
	_, _ = io.WriteString(tty, "exit 9\n")
	_, _ = io.Copy(io.Discard, tty)
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 9 {
		t.Errorf("exit %d", got)
	}
}

// static builds the test's program without a C library, to run in a folder that has nothing.
func static(t *testing.T, dir string) string {
	t.Helper()
	require(t, "go")
	path := filepath.Join(dir, "haggle")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-c", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	output(t, cmd)
	return path
}

func TestAnImageWithNothingInItHasAShellAndSftp(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		missing(t, "root")
	}
	j := &job{t: t, dir: shortDir(t)}
	root := filepath.Join(j.dir, "root")
	if err := os.MkdirAll(filepath.Join(root, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	static(t, root)
	j.address = filepath.Join(root, "door")
	// By CommandContext with a context that outlives the test's: see begin.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/haggle", "inside", "door", "/door")
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	cmd.Env, cmd.Dir = []string{}, "/"
	begin(t, cmd)

	run := func(command, in string) (string, int) {
		s := j.session()
		s.Stdin = strings.NewReader(in)
		out, err := s.CombinedOutput(command)
		var exit *ssh.ExitError
		if errors.As(err, &exit) {
			return string(out), exit.ExitStatus()
		} else if err != nil {
			t.Fatal(err)
		}
		return string(out), 0
	}
	if out, code := run("pwd; echo hi > f; cat f; exit 4", ""); out != "/work\nhi\n" || code != 4 {
		t.Errorf("%q, %d", out, code)
	}
	if out, code := run("cat", "through"); out != "through" || code != 0 {
		t.Errorf("%q, %d", out, code)
	}
	s := j.session()
	s.Stdin = strings.NewReader("ls\nexit 3\n")
	var out bytes.Buffer
	s.Stdout = &out
	if err := s.Shell(); err != nil {
		t.Fatal(err)
	}
	var exit *ssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 3 || out.String() != "f\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	if err := j.session().RequestPty("xterm", 24, 80, nil); err != nil {
		t.Errorf("a terminal is refused before it is known that there is none: %v", err)
	}

	j.config = filepath.Join(j.dir, "config")
	j.configure()
	tree(t, filepath.Join(j.dir, "local"))
	output(t, j.client("scp", "-F", j.config, "-r", filepath.Join(j.dir, "local"), "job:there"))
	sameTree(t, filepath.Join(root, "work", "there"))
	if out, _ := j.ssh("scp -t /x").CombinedOutput(); !strings.Contains(string(out), "without -O") {
		t.Errorf("%q", out)
	}
}
