package door

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// drainTime is how long output may lag behind the end of a terminal's shell.
const drainTime = time.Second

// lastWords is how long what a command writes is read after its client is gone.
const lastWords = 5 * time.Second

// children knows the processes that the door started, to leave them to who waits for them.
type children struct {
	mu   sync.Mutex
	pids map[int]struct{}
}

// child is a program of a session.
type child struct {
	cmd    *exec.Cmd
	all    *children
	tty    *os.File // the door's side of its terminal; nil with pipes
	stdin  *os.File
	stdout *os.File
	stderr *os.File // nil with a terminal
	closed sync.Once
}

// start runs a program in a session of its own, on a terminal where term is not nil.
func (all *children) start(path string, args []string, env environ, dir string, term *terminal) (*child, error) {
	c := &child{all: all, cmd: &exec.Cmd{Path: path, Args: args, Env: env, Dir: dir}}
	var theirs []*os.File
	var err error
	if term != nil {
		theirs, err = c.openTerminal(term)
	} else {
		theirs, err = c.openPipes()
	}
	if err != nil {
		return nil, err
	}
	own(c.cmd, term != nil)

	all.mu.Lock()
	err = c.cmd.Start()
	if err == nil {
		if all.pids == nil {
			all.pids = map[int]struct{}{}
		}
		all.pids[c.cmd.Process.Pid] = struct{}{}
	}
	all.mu.Unlock()
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		c.closePipes()
		return nil, err
	}
	return c, nil
}

func (c *child) openTerminal(term *terminal) (theirs []*os.File, err error) {
	master, slave, err := openTerminal()
	if err != nil {
		return nil, errors.New("this job has no terminals")
	}
	c.cmd.Env = append(c.cmd.Env, "SSH_TTY="+slave.Name())
	setModes(slave, term.modes)
	setSize(master, term.size)
	c.tty, c.stdin, c.stdout = master, master, master
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
	return []*os.File{slave}, nil
}

func (c *child) openPipes() (theirs []*os.File, err error) {
	var files []*os.File
	in, toIn, err := pipe(&files)
	if err == nil {
		var fromOut, out *os.File
		if fromOut, out, err = pipe(&files); err == nil {
			var fromErr, stderr *os.File
			if fromErr, stderr, err = pipe(&files); err == nil {
				c.stdin, c.stdout, c.stderr = toIn, fromOut, fromErr
				c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = in, out, stderr
				return []*os.File{in, out, stderr}, nil
			}
		}
	}
	for _, f := range files {
		_ = f.Close()
	}
	return nil, err
}

// feed gives the program what the client sends, and the end of it.
func (c *child) feed(from io.Reader) {
	_, err := io.Copy(c.stdin, from)
	if c.tty == nil {
		_ = c.stdin.Close()
	} else if err == nil {
		_, _ = c.stdin.Write([]byte{4}) // a terminal has no end; this is what a person types
	}
	_, _ = io.Copy(io.Discard, from) // what nobody reads must not hold up the connection
}

// wait waits for the program's end and gives the message that tells it to a client.
func (c *child) wait() (kind string, payload any) {
	err := c.cmd.Wait()
	c.all.mu.Lock()
	delete(c.all.pids, c.cmd.Process.Pid)
	c.all.mu.Unlock()
	state := c.cmd.ProcessState
	if name, dumped := killedBy(state); name != "" {
		return "exit-signal", exitSignal{Signal: name, Dumped: dumped}
	}
	if state == nil {
		return "exit-signal", exitSignal{Signal: "KILL", Message: short(err)}
	}
	return "exit-status", exitStatus{uint32(state.ExitCode())}
}

// drain sends what is left in a terminal whose shell has ended, and hangs it up.
func (c *child) drain(output *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { output.Wait(); close(done) }()
	t := time.NewTimer(drainTime)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C: // something in the background has the terminal open
	}
	c.closePipes()
	<-done
}

// closePipes takes the program's streams away.
func (c *child) closePipes() {
	c.closed.Do(func() {
		for _, f := range []*os.File{c.stdin, c.stdout, c.stderr} {
			if f != nil {
				_ = f.Close()
			}
		}
	})
}

// signalNames are those that RFC 4254 names, and a few more that clients send.
func signalNames() []ssh.Signal {
	return []ssh.Signal{
		ssh.SIGABRT, ssh.SIGALRM, ssh.SIGFPE, ssh.SIGHUP, ssh.SIGILL, ssh.SIGINT, ssh.SIGKILL, ssh.SIGPIPE,
		ssh.SIGQUIT, ssh.SIGSEGV, ssh.SIGTERM, ssh.SIGUSR1, ssh.SIGUSR2, "BUS", "WINCH", "CONT", "STOP", "TSTP",
	}
}

// adopt buries what others leave behind where the door is the first process, until ctx ends.
func (all *children) adopt(ctx context.Context) {
	if os.Getpid() == 1 {
		go all.bury(ctx)
	}
}
