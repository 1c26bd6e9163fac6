package door

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// session is one SSH session: what is asked for before its one program starts, and then that program.
type session struct {
	door    *Door
	channel ssh.Channel
	env     [][2]string
	term    *terminal // nil without pty-req
	begun   bool

	mu    sync.Mutex
	child *child // nil before the start, and with sftp
	gone  bool
}

// terminal is what a client said about its own.
type terminal struct {
	name  string
	size  windowSize
	modes string
}

// serve answers requests until the client is gone, and ends when the session's program has.
func (s *session) serve(ctx context.Context, requests <-chan *ssh.Request) {
	var program sync.WaitGroup
	begin := func(run func()) bool {
		if s.begun {
			return false
		}
		s.begun = true
		program.Go(func() {
			select {
			case s.door.commands <- struct{}{}:
				defer func() { <-s.door.commands }()
				run()
			default:
				say(s.channel, "haggle: too many commands at once in this job")
				finish(s.channel, "exit-status", exitStatus{254})
			}
			_ = s.channel.Close()
		})
		return true
	}
	for r := range requests {
		ok := s.request(ctx, r, begin)
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
	}
	s.hangUp()
	if !s.begun {
		_ = s.channel.Close()
	}
	program.Wait()
}

// request does what one request asks and says whether it was granted.
func (s *session) request(ctx context.Context, r *ssh.Request, begin func(func()) bool) bool {
	switch r.Type {
	case "env":
		return s.addEnv(r.Payload)
	case "pty-req":
		return s.askTerminal(r.Payload)
	case "window-change":
		var size windowSize
		if ssh.Unmarshal(r.Payload, &size) != nil {
			return false
		}
		s.resize(size)
		return true
	case "shell":
		return begin(func() { s.run(ctx, "") })
	case "exec":
		var cmd struct{ Command string }
		if ssh.Unmarshal(r.Payload, &cmd) != nil || cmd.Command == "" {
			return false
		}
		return begin(func() { s.run(ctx, cmd.Command) })
	case "subsystem":
		var sub struct{ Name string }
		if ssh.Unmarshal(r.Payload, &sub) != nil || sub.Name != "sftp" {
			return false
		}
		return begin(s.sftp)
	case "signal":
		var sig struct{ Name string }
		return ssh.Unmarshal(r.Payload, &sig) == nil && s.signal(sig.Name)
	case "keepalive@openssh.com":
		return true
	}
	return false // the renter's agents, keys and displays are not for the job
}

func (s *session) addEnv(payload []byte) bool {
	var e struct{ Name, Value string }
	if ssh.Unmarshal(payload, &e) != nil || len(s.env) >= maxEnv || len(e.Name)+len(e.Value) > maxEnvBytes {
		return false
	}
	if e.Name == "" || strings.ContainsAny(e.Name, "=\x00") || strings.Contains(e.Value, "\x00") {
		return false
	}
	s.env = append(s.env, [2]string{e.Name, e.Value})
	return true
}

// windowSize is how RFC 4254 sends it.
type windowSize struct{ Columns, Rows, Width, Height uint32 }

func (s *session) askTerminal(payload []byte) bool {
	var ask struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}
	if ssh.Unmarshal(payload, &ask) != nil || s.term != nil || s.begun || len(ask.Term) > 128 || strings.Contains(ask.Term, "\x00") {
		return false
	}
	size := windowSize{ask.Columns, ask.Rows, ask.Width, ask.Height}
	s.term = &terminal{name: ask.Term, size: size, modes: ask.Modes}
	return true
}

func (s *session) resize(size windowSize) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == nil {
		return
	}
	s.term.size = size
	if s.child != nil && s.child.tty != nil {
		setSize(s.child.tty, size)
	}
}

func (s *session) signal(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child != nil && s.child.signal(name)
}

// hangUp tells the session's processes that their terminal, or who read them, is gone for good. What was made to live on, does.
func (s *session) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return // a second SIGHUP would end what the first had a process do
	}
	s.gone = true
	switch {
	case s.child == nil:
	case s.child.tty != nil:
		s.child.closePipes() // and the kernel sends it
	default:
		s.child.signal("HUP")
		time.AfterFunc(lastWords, s.child.closePipes) // a shell that has something to say must not die of it
	}
}

// run starts a command, or with "" a login shell, and serves it until it has ended and all that it said is sent.
func (s *session) run(ctx context.Context, command string) {
	env := s.door.environment()
	for _, e := range s.env {
		env.set(e[0], e[1])
	}
	if s.term != nil {
		env.set("TERM", s.term.name)
	}
	if missing := missingServer(env, command); missing != "" {
		say(s.channel, missing)
		finish(s.channel, "exit-status", exitStatus{127})
		return
	}
	c, err := s.start(env, command)
	if err != nil {
		say(s.channel, "haggle: "+short(err))
		finish(s.channel, "exit-status", exitStatus{126})
		return
	}
	defer context.AfterFunc(ctx, s.hangUp)()

	var output sync.WaitGroup
	output.Go(func() { pour(s.channel, c.stdout) })
	if c.stderr != nil {
		output.Go(func() { pour(s.channel.Stderr(), c.stderr) })
	}
	go c.feed(s.channel)

	kind, payload := c.wait()
	if c.tty == nil {
		// Something that the command left behind may still write, and then the session stays, as it does with OpenSSH.
		finish(s.channel, kind, payload)
		output.Wait()
		c.closePipes()
		return
	}
	c.drain(&output)
	finish(s.channel, kind, payload)
}

// start tries the job's shells until one starts.
func (s *session) start(env environ, command string) (*child, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil, errors.New("the session is gone")
	}
	dir := s.door.cwd(env)
	var first error
	for _, shell := range s.door.shells(env) {
		env.set("SHELL", shell[0])
		args := append([]string{}, shell[1:]...)
		name := filepath.Base(shell[0])
		if command != "" {
			args = append(args, "-c", command)
		} else if len(args) == 0 {
			name = "-" + name
		}
		c, err := s.door.children.start(shell[0], append([]string{name}, args...), env, dir, s.term)
		if err == nil {
			s.child = c
			return c, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// missingServer says what a person can do where a client's far half is not in the image.
func missingServer(env environ, command string) string {
	words := strings.Fields(command)
	if len(words) < 2 || has(env, words[0]) {
		return ""
	}
	switch {
	case words[0] == "scp" && (words[1] == "-t" || words[1] == "-f" || strings.HasPrefix(words[1], "-")):
		return "haggle: this image has no scp; use scp without -O (OpenSSH 9 or newer), sftp, or haggle cp"
	case words[0] == "rsync" && words[1] == "--server":
		return "haggle: this image has no rsync; use haggle sync, or rclone over sftp"
	}
	return ""
}

// sftp serves the job's files with the door's own rights, which are those of the job.
func (s *session) sftp() {
	env := s.door.environment()
	server, err := sftp.NewServer(s.channel, sftp.WithServerWorkingDirectory(s.door.cwd(env)), sftp.WithAllocator())
	if err == nil {
		err = server.Serve() // and not Close, which would close the channel before its exit status
	}
	status := exitStatus{}
	if err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintf(s.channel.Stderr(), "haggle: sftp: %v\r\n", err)
		status.Status = 1
	}
	finish(s.channel, "exit-status", status)
}

// pour copies to the end of from. When to is gone, the rest is dropped.
func pour(to io.Writer, from io.Reader) {
	if _, err := io.Copy(to, from); err != nil {
		_, _ = io.Copy(io.Discard, from)
	}
}

// pipe is a pipe whose ends are both this process's until a child has one.
func pipe(files *[]*os.File) (r, w *os.File, err error) {
	r, w, err = os.Pipe()
	if err == nil {
		*files = append(*files, r, w)
	}
	return r, w, err
}
