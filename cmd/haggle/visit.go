package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/term"

	"haggle/internal/cli"
	"haggle/internal/tunnel"
	"haggle/market"
)

// visit is one command, or with "" a login shell, inside a job.
type visit struct {
	command  string
	input    bool // our standard input is the command's
	terminal bool // it runs on a terminal, and ours becomes raw
	env      []string
}

// visit runs v inside a lease's job. The error is the command's exit code where it has one.
func (p *program) visit(ctx context.Context, lease string, v visit) error {
	note := &lostNote{say: func(text string) { p.Say("%s", text) }}
	if v.terminal {
		note.say = func(text string) { _, _ = io.WriteString(p.Err, "\r\n"+p.Program+": "+text+"\r\n") }
	}
	c, err := p.channel(ctx, lease, tunnel.KindSSH, nil, note.notify)
	if err != nil {
		return err
	}
	defer func() {
		if !note.lost() { // else it would wait for the other side, which cannot be reached
			_ = c.Close()
		}
	}()
	client, err := sshClient(ctx, c)
	if err != nil {
		return err
	}
	s, err := client.NewSession()
	if err != nil {
		return sessionFault(client, err)
	}
	if err := passEnv(s, v.env); err != nil {
		return err
	}
	h := &host{program: p, visit: v, session: s, note: note, leave: c.Close}
	return h.serve(ctx, client)
}

// sshClient speaks SSH over a channel. The channel is closed with it.
func sshClient(ctx context.Context, c *tunnel.Channel) (*ssh.Client, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	conn, channels, requests, err := ssh.NewClientConn(c, "job", &ssh.ClientConfig{
		// The path is the proof: it was let in by the lease's key and ends in the lease's own job. The host key is made
		// anew with each job and proves nothing beside that.
		User: "root", HostKeyCallback: ssh.InsecureIgnoreHostKey(), //nolint:gosec // see above
	})
	switch {
	case !stop():
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, doorFault(err)
	}
	return ssh.NewClient(conn, channels, requests), nil
}

// passEnv sets the command's environment.
func passEnv(s *ssh.Session, list []string) error {
	for _, e := range list {
		name, value, given := strings.Cut(e, "=")
		if !given {
			value = os.Getenv(name)
		}
		if name == "" {
			return cli.Usage("--env "+e+" has no name", "write --env NAME=VALUE")
		}
		if err := s.Setenv(name, value); err != nil {
			return cli.Usage("the job does not take --env "+name, "128 variables of at most 4 KiB each can be passed")
		}
	}
	return nil
}

// host is this side of a visit.
type host struct {
	*program
	visit
	session *ssh.Session
	note    *lostNote
	leave   func() error // ends the connection
	left    atomic.Bool  // because the user wanted it
}

// serve runs the command to its end.
func (h *host) serve(ctx context.Context, client *ssh.Client) error {
	h.session.Stdout, h.session.Stderr = forJob(h.Out), forJob(h.Err)
	if h.terminal { // whoever works on a job's terminal lets it steer his own
		h.session.Stdout, h.session.Stderr = h.Out, h.Err
		restore, err := h.raw()
		if err != nil {
			return err
		}
		defer restore()
	}
	in, err := h.session.StdinPipe()
	if err == nil {
		if h.command == "" {
			err = h.session.Shell()
		} else {
			err = h.session.Start(h.command)
		}
	}
	if err != nil {
		return sessionFault(client, err)
	}
	h.feed(in)
	if h.terminal {
		defer h.watchSize()()
		defer context.AfterFunc(ctx, h.end)()
	} else {
		defer h.passSignals()()
	}
	err = h.session.Wait()
	if h.left.Load() {
		return cli.Exit(cli.ExitInterrupted)
	}
	return sessionFault(client, err)
}

// end leaves the command because the user wants it.
func (h *host) end() {
	h.left.Store(true)
	go func() { _ = h.leave() }() // it waits for the other side a while, which this process need not
	_ = h.session.Close()
}

// feed passes our input on.
func (h *host) feed(in io.WriteCloser) {
	if !h.input && !h.terminal {
		_ = in.Close() // the command sees the end of its input
		return
	}
	from := h.in
	if h.terminal {
		from = &escapes{in: h.in, begun: true, end: h.end, help: func() {
			_, _ = io.WriteString(h.Err, "\r\n~.  ends the connection\r\n~~  is a ~\r\n~?  is this list\r\n")
		}}
	}
	go func() {
		_, _ = io.Copy(in, from) // a command that takes no more says so by its end
		_ = in.Close()
	}()
}

// raw asks for a terminal in the job and makes ours raw.
func (h *host) raw() (restore func(), err error) {
	in, out := h.in.(*os.File), h.Out.(*os.File) //nolint:forcetypeassert // isTTY said so
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	name := os.Getenv("TERM")
	if name == "" {
		name = "xterm-256color"
	}
	modes := ssh.TerminalModes{ssh.ECHO: 1, ssh.TTY_OP_ISPEED: 115200, ssh.TTY_OP_OSPEED: 115200}
	if err := h.session.RequestPty(name, height, width, modes); err != nil {
		return nil, hinted(market.ClassFailed, "the job has no terminals", "`haggle exec` without -t does without one")
	}
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, hinted(market.ClassFailed, "this terminal cannot be used: "+err.Error(), "`haggle exec` does without one")
	}
	undo := colours(out)
	return func() {
		undo()
		_ = term.Restore(int(in.Fd()), before) // nothing more can be done
	}, nil
}

// watchSize tells the job the size of our terminal whenever it changes.
func (h *host) watchSize() (stop func()) {
	out, ok := h.Out.(*os.File)
	if !ok {
		return func() {}
	}
	changes, done := sizeChanges()
	go func() {
		for range changes {
			if width, height, err := term.GetSize(int(out.Fd())); err == nil {
				_ = h.session.WindowChange(height, width) // a lost connection ends the session elsewhere
			}
		}
	}()
	return done
}

// passSignals gives our signals to the command. When the connection is away, and at the third interrupt, it leaves instead.
func (h *host) passSignals() (stop func()) {
	names := map[os.Signal]ssh.Signal{
		os.Interrupt: ssh.SIGINT, syscall.SIGTERM: ssh.SIGTERM, syscall.SIGQUIT: ssh.SIGQUIT, syscall.SIGHUP: ssh.SIGHUP,
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		count := 0
		for {
			select {
			case s := <-signals:
				if count++; count > 2 || h.note.lost() {
					h.end()
					return
				}
				_ = h.session.Signal(names[s]) // a lost connection ends the session elsewhere
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(signals); close(done) }
}

// sessionFault turns the end of a session into an exit code, or an error of our own.
func sessionFault(client *ssh.Client, err error) error {
	var status *ssh.ExitError
	if err == nil {
		return nil
	}
	if errors.As(err, &status) {
		return cli.Exit(status.ExitStatus())
	}
	_ = client.Close()
	if why := client.Wait(); why != nil && !errors.Is(why, io.EOF) {
		var told *tunnel.Error
		if errors.As(why, &told) {
			return doorFault(why)
		}
		err = why
	}
	return market.NewError(market.CodeTunnelGone, "why", clean(err.Error()))
}

// isTTY reports whether a stream is a terminal that a person may sit at.
func isTTY(end any) bool {
	f, ok := end.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
