package nvidia

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"haggle/nvml"
)

// The questions of a child that answers only one.
const (
	opSpecs = "specs" // describe the cards for containers
	opScrub = "scrub" // overwrite a card's memory
)

// The bounds of its answer.
const (
	maxSpecs = 16                       // CDI specs
	maxSpec  = 1 << 20                  // bytes of one
	maxNotes = 64                       // lines of a log
	maxShot  = maxSpecs*maxSpec + 1<<16 // bytes of the whole answer
	maxPaths = 16                       // folders in which to look for libraries
	maxPath  = 4096                     // bytes of a path
	maxBytes = int64(1) << 50           // memory of a card
)

// shotReply is the answer of a child that answers only one question.
type shotReply struct {
	Code  string            `json:"code,omitempty"`
	Text  string            `json:"text,omitempty"`
	Notes []string          `json:"notes,omitempty"` // what went on, for a log
	Lacks []string          `json:"lacks,omitempty"` // what is missing, for the owner of the rig
	Specs []json.RawMessage `json:"specs,omitempty"`
	// Sliced says that a card is divided into slices, which may change without a sign.
	Sliced bool  `json:"sliced,omitempty"`
	Bytes  int64 `json:"bytes,omitempty"`
}

// shotAnswer is what became of the question.
type shotAnswer struct {
	reply shotReply
	err   error
}

// check refuses an answer out of bounds.
func (r *shotReply) check() error {
	if len(r.Specs) > maxSpecs || len(r.Notes) > maxNotes || len(r.Lacks) > maxNotes || r.Bytes < 0 || r.Bytes > maxBytes {
		return fmt.Errorf("%w: %d specs, %d and %d lines, %d bytes", errFrame, len(r.Specs), len(r.Notes), len(r.Lacks), r.Bytes)
	}
	for _, s := range r.Specs {
		if len(s) > maxSpec {
			return fmt.Errorf("%w: a spec of %d bytes", errFrame, len(s))
		}
	}
	return nil
}

// shot asks one question of a child of its own, so that whatever happens to that child disturbs no reading. There is one
// child of a key at a time; who comes later waits, as long as an answer may take. The child has ended when shot returns, unless
// the kernel holds it: then the key stays taken until it lets go.
func (d *Driver) shot(ctx context.Context, key string, r request, env []string, limit time.Duration) (shotReply, error) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return shotReply{}, nvml.ErrClosed
	}
	d.loops.Add(1)
	d.mu.Unlock()
	defer d.loops.Done()
	leave, err := d.claim(ctx, key, limit)
	if err != nil {
		return shotReply{}, err
	}
	run, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(d.life, cancel)()
	answer := make(chan shotAnswer, 1)
	gone := make(chan struct{})
	go func() {
		fire(run, d.cfg.Command, env, r, answer)
		leave()
		close(gone)
	}()
	var a shotAnswer
	select {
	case a = <-answer:
		cancel()
	case <-run.Done():
		a.err = d.unanswered(ctx, limit)
	}
	wait(gone, endGrace)
	if a.err == nil {
		a.err = a.reply.refused()
	}
	return a.reply, a.err
}

// unanswered is the error of a question that was cut.
func (d *Driver) unanswered(ctx context.Context, limit time.Duration) error {
	switch {
	case ctx.Err() != nil:
		return ended(ctx.Err())
	case d.life.Err() != nil:
		return nvml.ErrClosed
	default:
		return fmt.Errorf("no answer within %s: %w", limit, nvml.ErrTimeout)
	}
}

// claim waits until nobody else has the key, and takes it until leave is called.
func (d *Driver) claim(ctx context.Context, key string, limit time.Duration) (leave func(), err error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		d.mu.Lock()
		busy := d.shots[key]
		if busy == nil {
			free := make(chan struct{})
			d.shots[key] = free
			d.mu.Unlock()
			return func() {
				d.mu.Lock()
				delete(d.shots, key)
				d.mu.Unlock()
				close(free)
			}, nil
		}
		d.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ended(ctx.Err())
		case <-d.life.Done():
			return nil, nvml.ErrClosed
		case <-timer.C:
			return nil, fmt.Errorf("an earlier one has not ended: %w", nvml.ErrTimeout)
		}
	}
}

// fire starts the child, sends what it answers and waits for its end.
func fire(ctx context.Context, command, env []string, r request, answer chan<- shotAnswer) {
	last := new(tail)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	detach(cmd)
	cmd.WaitDelay, cmd.Stderr, cmd.Env = endGrace, last, env
	stdout, stdin, err := begin(cmd)
	if err != nil {
		answer <- shotAnswer{err: fmt.Errorf("start the child process: %w", err)}
		return
	}
	b, err := frame(r)
	if err == nil {
		_, err = stdin.Write(b) // far less than a pipe holds
	}
	var a shotReply
	if err == nil {
		err = readSized(bufio.NewReader(stdout), &a, maxShot)
	}
	if err == nil {
		err = a.check()
	}
	_ = stdin.Close()
	if err == nil {
		answer <- shotAnswer{reply: a}
		_ = cmd.Wait()
		return
	}
	exit := cmd.Wait()
	answer <- shotAnswer{err: obituary(exit, last.String(), err)}
}

// begin starts the process with pipes to both its ends.
func begin(cmd *exec.Cmd) (io.Reader, io.WriteCloser, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return stdout, stdin, cmd.Start()
}

// obituary is why the child gave no answer.
func obituary(exit error, last string, read error) error {
	if symbol := lookupFailure(exit, last); symbol != "" {
		return fmt.Errorf("the driver's library lacks the function %s: %w", symbol, nvml.ErrUnsupported)
	}
	if !errors.Is(read, io.EOF) {
		return fmt.Errorf("the child process answered badly: %w", read)
	}
	if exit == nil {
		return errors.New("the child process ended without an answer")
	}
	return fmt.Errorf("the child process ended: %w: %s", exit, printable(last, maxText))
}

// refused is the error of an answer that is none.
func (r *shotReply) refused() error {
	if r.Code == "" {
		return nil
	}
	return refusedWith(r.Code, r.Text)
}
