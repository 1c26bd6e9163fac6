package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"haggle/internal/config"
	"haggle/market"
)

const (
	startTime = 10 * time.Second      // for the agent to answer
	startPoll = 10 * time.Millisecond // between looks at its socket
	lastWords = 4 << 10               // bytes of the log that are read for its last line
)

// startAgent starts the agent in the background and returns when it answers. Commands that find none at the same time start
// one together: the first to hold the lock does, the others wait for it.
func (p *program) startAgent(ctx context.Context) error {
	c, err := p.config()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, hinted(market.ClassUnreachable,
		"the agent does not answer after "+startTime.String(), "its log is "+c.Paths.Log))
	defer cancel()
	if err := c.Paths.Make(); err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	unlock, err := lockStart(ctx, c.Paths.Socket+".start")
	if err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	defer unlock()
	if answers(ctx, c.Paths.Socket) {
		return nil
	}
	return p.spawn(ctx, c)
}

// spawn starts `haggle agent run` in a session of its own, with its output in the log.
func (p *program) spawn(ctx context.Context, c config.Agent) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	log, err := os.OpenFile(c.Paths.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	defer log.Close()
	args := []string{p.self, "agent", "run"}
	if p.home != "" {
		args = append(args, "--home", p.home)
	}
	// Not CommandContext: the agent outlives this program.
	cmd := &exec.Cmd{Path: self, Args: args, Stdout: log, Stderr: log, SysProcAttr: detached()}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended stands in its log
		close(ended)
	}()
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ended:
			return notStarted(lastLine(c.Paths.Log), c.Paths.Log)
		case <-tick.C:
		}
		if answers(ctx, c.Paths.Socket) {
			p.Say("started the agent, process %d", cmd.Process.Pid)
			return nil
		}
	}
}

// notStarted is the error of an agent that ended at once: what its last line says, which is an error of this program's own
// form where all is well, and where the rest of its log is.
func notStarted(said, log string) error {
	said, hint, found := strings.Cut(strings.TrimPrefix(said, "haggle: "), " (hint: ")
	if !found {
		return hinted(market.ClassUnreachable, "the agent did not start: "+said, "its log is "+log)
	}
	return hinted(market.ClassUnreachable, "the agent did not start: "+said, strings.TrimSuffix(hint, ")")+"; its log is "+log)
}

// answers tells whether somebody listens on a socket.
func answers(ctx context.Context, socket string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was sent
	return true
}

// lockStart takes the lock under which the agent is started. It waits until ctx ends.
func lockStart(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for {
		err := tryLock(f)
		if err == nil {
			return func() { _ = f.Close() }, nil // which gives the lock back
		}
		if !errors.Is(err, errLocked) {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-tick.C:
		}
	}
}

// lastLine returns the last line of a log, for people: what a program said before it ended.
func lastLine(path string) string {
	const silent = "it said nothing"
	f, err := os.Open(path)
	if err != nil {
		return silent
	}
	defer f.Close()
	if end, err := f.Seek(0, io.SeekEnd); err != nil || end > lastWords {
		if _, err := f.Seek(-lastWords, io.SeekEnd); err != nil {
			return silent
		}
	} else if _, err := f.Seek(0, io.SeekStart); err != nil {
		return silent
	}
	text, err := io.ReadAll(io.LimitReader(f, lastWords))
	if err != nil {
		return silent
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return silent
}

// errLocked: another process holds the lock.
var errLocked = errors.New("locked")
