package nvidia

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

const (
	maxPending = 256             // questions without an answer
	maxStderr  = 8 << 10         // bytes of the child's last words
	endGrace   = time.Second     // for a child to end by itself, and again once it is killed
	beatsPer   = 8               // signs of life within one deadline
	minBeat    = time.Second / 4 // no need for more
)

// errGone means that the child ended before it answered.
var errGone = errors.New("the child process ended")

// errLate means that the child did not answer before the deadline.
var errLate = errors.New("the child process did not answer in time")

// link is one child process and the questions that it owes an answer.
type link struct {
	pid    int
	kill   context.CancelFunc
	stdin  io.WriteCloser
	write  chan []byte
	stderr *tail
	// closing ends every call that waits.
	closing <-chan struct{}
	// take is shown every answer in the order in which the child gave them, before anybody else sees it. An error ends the
	// child.
	take func(*reply) error
	// late is told of a question about a card, asked at the given time, that was not answered before its deadline.
	late func(l *link, uuid string, asked time.Time)

	dead chan struct{} // closed when no answer comes any more
	gone chan struct{} // closed when the process is no more; the exit status is then known
	exit error

	mu      sync.Mutex
	next    uint64
	pending map[uint64]*question
	heard   time.Time // of the last sign of life
	cause   error     // the first reason for the end
}

// question is one that waits for its answer.
type question struct {
	uuid   string
	asked  time.Time
	timer  *time.Timer
	answer chan answered // holds one
}

type answered struct {
	reply reply
	err   error
}

// spawn starts a child. Its life ends with ctx, with stop, or by itself.
func spawn(ctx context.Context, command []string, l *link) error {
	ctx, l.kill = context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	detach(cmd)
	cmd.WaitDelay = endGrace
	cmd.Stderr = l.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		l.kill()
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		l.kill()
		return err
	}
	if err := cmd.Start(); err != nil {
		l.kill()
		return err
	}
	l.pid, l.stdin, l.heard = cmd.Process.Pid, stdin, time.Now()
	go l.send()
	go func() {
		err := l.receive(stdout)
		l.die(err)
		l.exit = cmd.Wait()
		close(l.gone)
	}()
	return nil
}

// send writes the questions. A child that does not read holds up this goroutine alone.
func (l *link) send() {
	for {
		select {
		case <-l.dead:
			return
		case b := <-l.write:
			if _, err := l.stdin.Write(b); err != nil {
				return // the reading side learns why
			}
		}
	}
}

// receive reads answers until there are no more.
func (l *link) receive(stdout io.Reader) error {
	in := bufio.NewReader(stdout)
	for {
		var r reply
		if err := readFrame(in, &r); err != nil {
			return err
		}
		if err := r.check(); err != nil {
			return err
		}
		if err := l.take(&r); err != nil {
			return err
		}
		l.mu.Lock()
		l.heard = time.Now()
		q := l.pending[r.ID]
		delete(l.pending, r.ID)
		l.mu.Unlock()
		if q != nil {
			q.timer.Stop()
			q.answer <- answered{reply: r}
		}
	}
}

// stop kills the child for a reason.
func (l *link) stop(cause error) {
	l.mu.Lock()
	if l.cause == nil {
		l.cause = cause
	}
	l.mu.Unlock()
	l.kill()
	l.die(cause)
}

// die ends the questions that are waiting.
func (l *link) die(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending == nil {
		return
	}
	if l.cause == nil {
		l.cause = cause
	}
	for _, q := range l.pending {
		q.timer.Stop()
		q.answer <- answered{err: errGone}
	}
	l.pending = nil
	l.kill()
	close(l.dead)
}

// ask sends a question and waits for its answer, for ctx, for the deadline or for the child's end. Should ctx end first,
// the question still keeps its deadline, and late is told when it passes.
func (l *link) ask(ctx context.Context, r request, deadline time.Duration) (reply, error) {
	q := &question{uuid: r.UUID, asked: time.Now(), answer: make(chan answered, 1)}
	l.mu.Lock()
	if l.pending == nil {
		l.mu.Unlock()
		return reply{}, errGone
	}
	if len(l.pending) == maxPending {
		l.mu.Unlock()
		return reply{}, errLate
	}
	l.next++
	r.ID = l.next
	l.pending[r.ID] = q
	q.timer = time.AfterFunc(deadline, func() { l.expire(r.ID) })
	l.mu.Unlock()
	b, err := frame(r)
	if err != nil {
		return reply{}, fmt.Errorf("write question: %w", err)
	}
	select {
	case l.write <- b:
	default: // the child reads nothing: the deadline will tell
	}
	select {
	case a := <-q.answer:
		return a.reply, a.err
	case <-ctx.Done():
		return reply{}, ctx.Err()
	case <-l.closing:
		return reply{}, errGone
	}
}

// expire ends a question that was not answered in time.
func (l *link) expire(id uint64) {
	l.mu.Lock()
	q := l.pending[id]
	delete(l.pending, id)
	l.mu.Unlock()
	if q == nil {
		return
	}
	l.late(l, q.uuid, q.asked)
	q.answer <- answered{err: errLate}
}

// silentFor is how long the child has given no sign of life.
func (l *link) silentFor() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.heard)
}

// why is the reason for the child's end. It is complete once gone is closed.
func (l *link) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// tail keeps the last bytes that were written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b[max(0, len(b)-maxStderr):]...)
	if over := len(t.text) - maxStderr; over > 0 {
		t.text = append([]byte(nil), t.text[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
