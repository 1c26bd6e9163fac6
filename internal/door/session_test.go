//go:build unix

package door_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestACommandsExitCodeComesHome(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	for _, want := range []int{0, 7, 255} {
		cmd := j.ssh("exit " + strconv.Itoa(want))
		err := cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("exit %d: %d, %v", want, got, err)
		}
	}
}

func TestASessionIsInTheJobsFolderAndEnvironment(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	got := output(t, j.ssh("pwd; echo $HAGGLE_LEASE; [ -n \"$HOME$USER$PATH\" ] && echo whole"))
	if want := j.work + "\nl-1\nwhole\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheEndOfInputReachesACommand(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	cmd := j.ssh("cat; echo after")
	cmd.Stdin = strings.NewReader("x\n")
	if got := output(t, cmd); got != "x\nafter\n" {
		t.Errorf("%q", got)
	}
}

func TestTenMegabytesGoBothWays(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	data := make([]byte, 10<<20)
	_, _ = rand.Read(data)
	cmd := j.ssh("cat")
	cmd.Stdin = bytes.NewReader(data)
	if got := output(t, cmd); sha256.Sum256([]byte(got)) != sha256.Sum256(data) {
		t.Error("what came back is something else")
	}
}

func TestCtrlCReachesWhatRunsInATerminal(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	cmd := j.client("ssh", "-F", j.config, "-tt", "job", `trap "echo got; exit 3" INT; echo ready; while :; do sleep 0.05; done`)
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	waitFor(t, r, "ready")
	_, _ = in.Write([]byte{3})
	waitFor(t, r, "got")
	_, _ = io.Copy(io.Discard, r)
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 3 {
		t.Errorf("exit %d", got)
	}
}

func waitFor(t *testing.T, r *bufio.Reader, word string) {
	t.Helper()
	var seen strings.Builder
	for {
		line, err := r.ReadString('\n')
		seen.WriteString(line)
		if strings.Contains(line, word) {
			return
		}
		if err != nil {
			t.Fatalf("no %q: %v after %q", word, err, seen.String())
		}
	}
}

func TestASignalEndsACommandAndIsTold(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	s := j.session()
	out, _ := s.StdoutPipe()
	if err := s.Start("echo ready; exec sleep 60"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, bufio.NewReader(out), "ready")
	if err := s.Signal(ssh.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *ssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.Signal() != "TERM" {
		t.Errorf("%v", err)
	}
}

func TestATerminalHasItsSizeAndTakesAnother(t *testing.T) {
	t.Parallel()
	require(t, "stty")
	j := startJob(t)
	s := j.session()
	if err := s.RequestPty("xterm-test", 24, 80, ssh.TerminalModes{ssh.ECHO: 0}); err != nil {
		t.Fatal(err)
	}
	out, _ := s.StdoutPipe()
	const command = `stty size; echo $TERM; stty -a | grep -c -e '-echo '; trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.05; done`
	if err := s.Start(command); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	for _, want := range []string{"24 80", "xterm-test", "1", "ready"} {
		if line, _ := r.ReadString('\n'); strings.TrimSpace(line) != want {
			t.Errorf("%q, want %q", line, want)
		}
	}
	if err := s.WindowChange(50, 132); err != nil {
		t.Fatal(err)
	}
	waitFor(t, r, "50 132")
	if err := s.Wait(); err != nil {
		t.Error(err)
	}
}

func TestABackgroundProcessDoesNotHoldATerminal(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	s := j.session()
	if err := s.RequestPty("xterm", 24, 80, nil); err != nil {
		t.Fatal(err)
	}
	out, err := s.Output("trap '' HUP; sleep 20 & echo $!")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("it did not live on: %v", err)
	}
}

func TestProcessesAreHungUpWhenTheirSessionIsGone(t *testing.T) {
	t.Parallel()
	for _, terminal := range []bool{false, true} {
		t.Run(fmt.Sprintf("terminal %v", terminal), func(t *testing.T) {
			t.Parallel()
			j := startJob(t)
			client := j.sshClient()
			s, err := client.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			if terminal {
				if err := s.RequestPty("xterm", 24, 80, nil); err != nil {
					t.Fatal(err)
				}
			}
			out, _ := s.StdoutPipe()
			if err := s.Start(`trap "touch hup; exit" HUP; echo ready; while :; do sleep 0.05; done`); err != nil {
				t.Fatal(err)
			}
			waitFor(t, bufio.NewReader(out), "ready")
			_ = client.Close()
			eventually(t, "SIGHUP", func() bool {
				_, err := os.Stat(filepath.Join(j.work, "hup"))
				return err == nil
			})
		})
	}
}

func TestEnvironmentOfAClientIsTakenAndBounded(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	s := j.session()
	if err := s.Setenv("LC_HERE", "yes"); err != nil {
		t.Fatal(err)
	}
	if err := s.Setenv("BIG", strings.Repeat("x", 8<<10)); err == nil {
		t.Error("8 KiB were taken")
	}
	refused := 0
	for i := range 200 {
		if s.Setenv("V"+strconv.Itoa(i), "1") != nil {
			refused++
		}
	}
	if refused != 200-127 {
		t.Errorf("%d of 200 refused", refused)
	}
	out, err := s.Output("echo $LC_HERE")
	if err != nil || string(out) != "yes\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestMoreCommandsThanAllowedAreRefusedAndTheRestGoOn(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	client := j.sshClient()
	var held []*ssh.Session
	for i := range 65 {
		s, err := client.NewSession()
		if err != nil {
			t.Fatalf("session %d: %v", i, err)
		}
		in, _ := s.StdinPipe()
		out, _ := s.StdoutPipe()
		if err := s.Start("cat"); err != nil {
			t.Fatal(err)
		}
		if i < 64 {
			fmt.Fprintln(in, "hello")
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "hello\n" {
				t.Fatalf("session %d: %q, %v", i, line, err)
			}
			held = append(held, s)
			continue
		}
		var exit *ssh.ExitError
		if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 254 {
			t.Errorf("the 65th: %v", err)
		}
	}
	for _, s := range held {
		_ = s.Close()
	}
	eventually(t, "a free place", func() bool {
		s, err := client.NewSession()
		if err != nil {
			return false
		}
		out, err := s.Output("echo free")
		return err == nil && string(out) == "free\n"
	})
}

func TestAgentsAndDisplaysAreRefused(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	s := j.session()
	for _, kind := range []string{"auth-agent-req@openssh.com", "x11-req"} {
		if ok, err := s.SendRequest(kind, true, nil); ok || err != nil {
			t.Errorf("%s: %v, %v", kind, ok, err)
		}
	}
}

func TestAClientWithoutItsOtherHalfIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	s := j.session()
	_ = s.Setenv("PATH", "/nowhere")
	var errs bytes.Buffer
	s.Stderr = &errs
	err := s.Run("rsync --server .")
	var exit *ssh.ExitError
	if !errors.As(err, &exit) || exit.ExitStatus() != 127 || !strings.Contains(errs.String(), "haggle sync") {
		t.Errorf("%v, %q", err, errs.String())
	}
}

// A door whose reader went away, and that is told to hang up, goes on.
func TestTheDoorEndsOnSIGTERMOnly(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE} {
		if err := j.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	// The process that a session starts does not have them ignored.
	got := output(t, j.ssh("grep SigIgn /proc/self/status"))
	if ignored, err := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(got, "SigIgn:")), 16, 64); err != nil || ignored&3 != 0 {
		t.Errorf("ignored: %q", got)
	}
	_ = j.cmd.Process.Signal(syscall.SIGTERM)
	if err := j.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}

func TestAnIdleDoorLeaves(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	cmd := exec.CommandContext(t.Context(), self(t), "inside", "door", "--idle", "50ms", filepath.Join(dir, "door"))
	begin(t, cmd)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
