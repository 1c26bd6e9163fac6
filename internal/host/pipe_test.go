package host_test

import (
	"context"
	"io"
	"sync"

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
	select {
	case data := <-p.in: // what was sent before the end still arrives
		return decoded(data)
	default:
	}
	select {
	case data := <-p.in:
		return decoded(data)
	case <-p.shut.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func decoded(data []byte) (market.Message, error) {
	m, err := market.DecodeMessage(data)
	if r, ok := m.(market.Refuse); ok {
		return nil, &r.Err
	}
	return m, err
}
