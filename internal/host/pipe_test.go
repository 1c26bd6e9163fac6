package host_test

import (
	"context"
	"io"
	"sync"

	"haggle/internal/host"
	"haggle/market"
)

// pipe is one end of a stream in memory. Every message is encoded and decoded on its way.
type pipe struct {
	peer market.Key
	in   <-chan []byte
	out  chan<- []byte
	shut *shutter
}

// shutter closes both ends.
type shutter struct {
	once sync.Once
	done chan struct{}
}

// newPipe returns the rig's end, which sees the renter's key, and the renter's.
func newPipe(renter, rig market.Key) (atRig, atRenter *pipe) {
	up, down := make(chan []byte, 16), make(chan []byte, 16)
	s := &shutter{done: make(chan struct{})}
	return &pipe{peer: renter, in: up, out: down, shut: s}, &pipe{peer: rig, in: down, out: up, shut: s}
}

func (p *pipe) Peer() market.Key { return p.peer }

func (p *pipe) Close() { p.shut.once.Do(func() { close(p.shut.done) }) }

func (p *pipe) Send(ctx context.Context, m market.Message) error {
	data, err := market.EncodeMessage(m)
	if err != nil {
		return err
	}
	select {
	case <-p.shut.done:
		return io.ErrClosedPipe
	default:
	}
	select {
	case p.out <- data:
		return nil
	case <-p.shut.done:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pipe) Receive(ctx context.Context) (market.Message, error) {
	data, err := p.next(ctx)
	if err != nil {
		return nil, err
	}
	return decoded(data)
}

// next returns what comes next. What was sent before the end still arrives.
func (p *pipe) next(ctx context.Context) ([]byte, error) {
	select {
	case data := <-p.in:
		return data, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.shut.done:
	}
	select {
	case data := <-p.in:
		return data, nil
	default:
		return nil, io.EOF
	}
}

func decoded(data []byte) (market.Message, error) {
	m, err := market.DecodeMessage(data)
	if r, ok := m.(market.Refuse); ok {
		return nil, &r.Err
	}
	return m, err
}

// Raw implements host.Stream.
func (p *pipe) Raw() host.Conn { return &rawPipe{pipe: p} }

// rawPipe is a pipe as bytes. An empty message is the end of one direction.
type rawPipe struct {
	pipe  *pipe
	rest  []byte
	ended bool
}

func (r *rawPipe) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		var err error
		if r.rest, err = r.pipe.next(context.Background()); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		r.ended = len(r.rest) == 0
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *rawPipe) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return len(b), r.put(append([]byte(nil), b...))
}

func (r *rawPipe) put(b []byte) error {
	select {
	case r.pipe.out <- b:
		return nil
	case <-r.pipe.shut.done:
		return io.ErrClosedPipe
	}
}

func (r *rawPipe) CloseWrite() error { return r.put(nil) }

func (r *rawPipe) Close() error {
	r.pipe.Close()
	return nil
}
