package p2p

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"haggle/market"
)

// wire is what a stream needs of the connection below it; libp2p's streams and pairs of pipes are such.
type wire interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	Reset() error
}

// Stream is a conversation of messages with one peer. Send may be called by many goroutines, Receive by one at a time, and
// both at once. Whoever got a stream from Open must Close or Reset it; a handler's stream is closed by the node.
type Stream struct {
	wire    wire
	peer    market.Key
	idle    time.Duration // longest wait for a frame to begin, 0 for ever
	firstBy time.Time     // the first frame must be whole by then; zero: no such bound, or it has come

	sending chan struct{} // holds one token while a Send writes
	sendErr error         // under sending: a failed write may have left half a frame
	recvErr error         // of the one reader: what came is the end
	refused atomic.Bool   // the peer sent Refuse
	over    sync.Once
	release func() // called once the stream is over
	doubt   func() // called where the peer may be gone
}

func newStream(w wire, peer market.Key, idle time.Duration) *Stream {
	return &Stream{wire: w, peer: peer, idle: idle, sending: make(chan struct{}, 1), release: func() {}, doubt: func() {}}
}

// Peer returns the key at the other end, as the connection's handshake proved it.
func (s *Stream) Peer() market.Key { return s.peer }

// Send writes one message, within 10 seconds and as long as ctx allows. After an error other than "too large" the stream
// can send no more, but Receive may still hold the peer's reason.
func (s *Stream) Send(ctx context.Context, m market.Message) error {
	frame, err := encodeFrame(m)
	if err != nil {
		return err
	}
	select {
	case s.sending <- struct{}{}:
	case <-ctx.Done():
		return s.ended(ctx)
	}
	defer func() { <-s.sending }()
	if s.sendErr == nil {
		s.sendErr = s.write(ctx, frame)
	}
	return s.sendErr
}

func (s *Stream) write(ctx context.Context, frame []byte) error {
	if err := s.wire.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return s.fault(ctx, writeTimeout, err)
	}
	defer interrupt(ctx, s.wire.SetWriteDeadline)()
	if _, err := s.wire.Write(frame); err != nil {
		return s.fault(ctx, writeTimeout, err)
	}
	return nil
}

// Receive waits for the next message as long as ctx and the protocol's idle limit allow; a frame that has begun must be
// whole within 10 seconds. It returns io.EOF after the peer's clean close, and the peer's refusal as its *market.Error. Of
// the other errors, one that came before a frame began leaves the stream usable; any later one is its end.
func (s *Stream) Receive(ctx context.Context) (market.Message, error) {
	if s.recvErr != nil {
		return nil, s.recvErr
	}
	data, begun, err := s.readFrame(ctx)
	if err != nil {
		if begun || errors.Is(err, io.EOF) {
			s.recvErr = err
		}
		return nil, err
	}
	m, err := market.DecodeMessage(data)
	if r, ok := m.(market.Refuse); err == nil && ok {
		s.refused.Store(true)
		err = bounded(r.Err)
	}
	if err != nil {
		s.recvErr = err
		return nil, err
	}
	return m, nil
}

func (s *Stream) readFrame(ctx context.Context) (data []byte, begun bool, err error) {
	limit, by := s.idle, time.Time{}
	switch {
	case !s.firstBy.IsZero():
		limit, by = firstFrameTimeout, s.firstBy
	case s.idle > 0:
		by = time.Now().Add(s.idle)
	}
	if err := s.wire.SetReadDeadline(by); err != nil {
		return nil, false, s.fault(ctx, limit, err)
	}
	stop := interrupt(ctx, s.wire.SetReadDeadline)
	defer func() { stop() }()
	data, err = readFrame(s.wire, func() {
		begun = true
		if !s.firstBy.IsZero() {
			return // its deadline covers the whole frame
		}
		stop()
		limit = frameTimeout
		// A failure shows in the read that follows.
		_ = s.wire.SetReadDeadline(time.Now().Add(frameTimeout))
		stop = interrupt(ctx, s.wire.SetReadDeadline)
	})
	if err != nil {
		return nil, begun, s.fault(ctx, limit, err)
	}
	s.firstBy = time.Time{}
	return data, true, nil
}

// fault tells what an error of the wire means.
func (s *Stream) fault(ctx context.Context, limit time.Duration, err error) error {
	var known *market.Error
	var timeout net.Error
	switch {
	case errors.As(err, &known), errors.Is(err, io.EOF):
		return err
	case ctx.Err() != nil:
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.doubt()
		}
		return s.ended(ctx)
	case errors.As(err, &timeout) && timeout.Timeout():
		s.doubt()
		return market.NewError(market.CodeTooSlow, "limit", limit.String())
	}
	return fmt.Errorf("%w: %w", unreachable(s.peer), err)
}

// ended returns why a context ended; a deadline is "too slow" for the peer as well.
func (s *Stream) ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && market.CodeOf(cause) != market.CodeTooSlow {
		return fmt.Errorf("%w: %w", market.NewError(market.CodeTooSlow, "limit", "the time given"), cause)
	}
	return cause
}

// Close ends the stream cleanly: what was sent still arrives, what the peer sends is dropped.
func (s *Stream) Close() error {
	err := s.wire.Close()
	s.over.Do(s.release)
	return err
}

// Reset ends the stream at once; what was sent may be lost.
func (s *Stream) Reset() error {
	err := s.wire.Reset()
	s.over.Do(s.release)
	return err
}

// interrupt makes reads or writes fail when ctx ends. The returned function undoes it and may be called again.
func interrupt(ctx context.Context, setDeadline func(time.Time) error) (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = setDeadline(time.Unix(1, 0)) // a dead connection fails by itself
	})
	return sync.OnceFunc(func() {
		if !cancel() {
			<-done // or it would hit the next read
		}
	})
}

// bounded returns a peer's error within the bounds of our own.
func bounded(e market.Error) error {
	const maxCode = 64
	var pairs []string
	for _, a := range e.Args[:min(len(e.Args), 8)] {
		pairs = append(pairs, a.Name[:min(len(a.Name), maxCode)], a.Value)
	}
	return market.NewError(e.Code[:min(len(e.Code), maxCode)], pairs...)
}
