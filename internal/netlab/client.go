//go:build linux

package netlab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

const (
	answerSize = 1 << 20          // of a line, at most
	endTime    = 20 * time.Second // for a peer whose input has ended
)

// BuildPeer builds the program of a Peer into a folder and returns its path. It is built by itself, so that whoever uses this package
// need not link libp2p.
func BuildPeer(ctx context.Context, folder string) (string, error) {
	path := filepath.Join(folder, "peer")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "haggle/internal/netlab/peer").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the peer: %w\n%s", err, out)
	}
	return path, nil
}

// Peer is a bare node of our network at work on a host. Ask may be called by many goroutines.
type Peer struct {
	Name string

	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{} // closed when its output has ended

	mu      sync.Mutex
	waiting map[int64]chan Answer // by the question's number
	asked   int64
	broken  error // what it said was no answer
}

// StartPeer starts a peer and returns when it listens. Its log goes to log; Close must be called. The context does not end it.
func StartPeer(ctx context.Context, program string, h *Host, log io.Writer, name string, args ...string) (*Peer, error) {
	p := &Peer{Name: name, done: make(chan struct{}), waiting: map[int64]chan Answer{}}
	p.cmd = h.Command(context.WithoutCancel(ctx), program, append([]string{"-name", name}, args...)...)
	p.cmd.Stderr = log
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start peer %s: %w", name, err)
	}
	up := p.expect(0)
	go p.read(out)
	if _, err := p.wait(ctx, up); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close ends the peer.
func (p *Peer) Close() error {
	_ = p.in.Close() // it ends by that
	late := time.AfterFunc(endTime, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	<-p.done
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("peer %s: %w", p.Name, err)
	}
	return p.broken
}

// read hands each answer to the one who waits for it.
func (p *Peer) read(out io.Reader) {
	defer close(p.done)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, answerSize)
	for lines.Scan() {
		var a Answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			p.broken = fmt.Errorf("peer %s says %q: %w", p.Name, lines.Text(), err)
			return
		}
		p.mu.Lock()
		c := p.waiting[a.ID]
		delete(p.waiting, a.ID)
		p.mu.Unlock()
		if c != nil {
			c <- a
		}
	}
	p.broken = lines.Err()
}

func (p *Peer) expect(id int64) chan Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := make(chan Answer, 1)
	p.waiting[id] = c
	return c
}

func (p *Peer) wait(ctx context.Context, c chan Answer) (Answer, error) {
	select {
	case a := <-c:
		return a, nil
	case <-p.done:
		return Answer{}, fmt.Errorf("peer %s has ended", p.Name)
	case <-ctx.Done():
		return Answer{}, fmt.Errorf("peer %s does not answer: %w", p.Name, ctx.Err())
	}
}

// Ask gives the peer a command and waits for the answer. What went wrong on the network is in the answer.
func (p *Peer) Ask(ctx context.Context, q Question) (Answer, error) {
	p.mu.Lock()
	p.asked++
	q.ID = p.asked
	p.mu.Unlock()
	c := p.expect(q.ID)
	line, err := json.Marshal(q)
	if err != nil {
		return Answer{}, err
	}
	p.mu.Lock()
	_, err = p.in.Write(append(line, '\n'))
	p.mu.Unlock()
	if err != nil {
		return Answer{}, fmt.Errorf("peer %s takes no commands: %w", p.Name, err)
	}
	return p.wait(ctx, c)
}
