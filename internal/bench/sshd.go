package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// sshServer is an OpenSSH server on loopback with keys of its own, which bench's own client may enter.
type sshServer struct {
	command *exec.Cmd
	config  string // of the client; the server is host "peer" in it
}

const privilegeDir = "/run/sshd"

func (l *insideLab) startSSH(ctx context.Context) (*sshServer, error) {
	in := func(name string) string { return filepath.Join(l.work, name) }
	for _, key := range []string{"host", "user"} {
		if out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", in(key)).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("make a key for ssh: %w: %s", err, out)
		}
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	server := []string{
		"Port " + port, "ListenAddress 127.0.0.1", "HostKey " + in("host"), "AuthorizedKeysFile " + in("user.pub"), "StrictModes no",
		"UsePAM no", "PidFile none", "PermitRootLogin prohibit-password", "Subsystem sftp /usr/lib/openssh/sftp-server", "LogLevel ERROR",
	}
	client := []string{
		"Host peer", "HostName 127.0.0.1", "Port " + port, "User root", "IdentityFile " + in("user"), "IdentitiesOnly yes",
		"StrictHostKeyChecking no", "UserKnownHostsFile /dev/null", "LogLevel ERROR",
	}
	s := &sshServer{config: in("ssh")}
	err = errors.Join(os.WriteFile(in("sshd"), lines(server), 0o600), os.WriteFile(s.config, lines(client), 0o600))
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(privilegeDir, 0o755); err == nil {
		l.undo = append(l.undo, func() error { return os.Remove(privilegeDir) })
	}
	s.command = exec.CommandContext(context.WithoutCancel(ctx), "/usr/sbin/sshd", "-D", "-e", "-f", in("sshd"))
	s.command.Stderr = os.Stderr
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	l.undo = append(l.undo, func() error {
		err := s.command.Process.Kill()
		_ = s.command.Wait() // it was killed
		return err
	})
	return s, wait(ctx, "sshd", func() bool {
		return exec.CommandContext(ctx, "ssh", "-F", s.config, "peer", "true").Run() == nil
	})
}

// idle waits until nobody is connected: what the server's children used is known then.
func (s *sshServer) idle(ctx context.Context) error {
	children := fmt.Sprintf("/proc/%d/task/%[1]d/children", s.command.Process.Pid)
	return wait(ctx, "the end of a connection with sshd", func() bool {
		text, err := os.ReadFile(children)
		return err == nil && strings.TrimSpace(string(text)) == ""
	})
}

func lines(all []string) []byte { return []byte(strings.Join(all, "\n") + "\n") }

func freePort(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on TCP
	return strconv.Itoa(port), l.Close()
}
