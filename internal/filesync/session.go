package filesync

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// farewell is how long a side waits for the other to take the news of a failure, or to say its own.
const farewell = 2 * time.Second

// session is one copy over one stream: how it ends when one of its goroutines cannot go on.
type session struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	c      io.ReadWriter
	l      *link
	m      *meter

	mu      sync.Mutex
	err     error // what this side found first
	peerErr error // what the other side said
	timer   *time.Timer
	release func() bool
	telling sync.WaitGroup
}

func newSession(ctx context.Context, c io.ReadWriter, tell func(Progress)) *session {
	s := &session{c: c, l: newLink(c), m: newMeter(tell)}
	outer := ctx
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.release = context.AfterFunc(outer, func() { s.stop(context.Cause(outer)) })
	return s
}

// end gives what the session holds back and returns why it failed, if it did.
func (s *session) end() error {
	s.release()
	s.telling.Wait()
	s.cancel(nil)
	s.m.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.peerErr != nil {
		if _, ours := errors.AsType[*Error](s.err); !ours {
			return s.peerErr
		}
	}
	return s.err
}

// stop ends the session for a reason of this side. The first reason counts. An *Error is told to the other side; after a fault of the
// stream, the other side may still have something to say.
func (s *session) stop(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.peerErr != nil {
		return
	}
	s.err = err
	s.cancel(err)
	e, isOurs := errors.AsType[*Error](err)
	if !isOurs && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		interrupt(s.c)
		return
	}
	s.timer = time.AfterFunc(farewell, func() { interrupt(s.c) })
	if isOurs {
		s.telling.Go(func() {
			//nolint:errcheck // nothing is left to do for one who cannot be told
			s.l.send(frameError, e.encode())
		})
	}
}

// said ends the session because the other side said so.
func (s *session) said(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peerErr == nil {
		s.peerErr = err
	}
	s.cancel(err)
	interrupt(s.c)
}

func (s *session) dead() bool { return s.ctx.Err() != nil }

// interrupt makes reads and writes of c return.
func interrupt(c io.ReadWriter) {
	if d, ok := c.(interface{ SetDeadline(time.Time) error }); ok {
		if d.SetDeadline(time.Unix(1, 0)) == nil {
			return
		}
	}
	if d, ok := c.(io.Closer); ok {
		d.Close()
	}
}

// expect reads one frame of the given type, whose payload is short.
func (s *session) expect(kind byte) ([]byte, error) {
	k, n, err := s.l.next()
	if err != nil {
		return nil, err
	}
	if n > 3*MaxPath {
		return nil, badFrame("a long frame of type %#x", k)
	}
	buf := make([]byte, n)
	if err := s.l.payload(buf); err != nil {
		return nil, err
	}
	switch k {
	case kind:
		return buf, nil
	case frameError:
		s.said(decodeError(buf))
		return nil, s.peerErr
	}
	return nil, badFrame("a frame of type %#x out of turn", k)
}

// drain reads until the other side has closed, so that what was told to it is not lost with the stream.
func (s *session) drain() {
	//nolint:errcheck // any end is an end
	io.Copy(io.Discard, s.l.r)
}

func push(ctx context.Context, c io.ReadWriter, cfg PushConfig) (Report, error) {
	src, err := openLocalSource(cfg.From)
	if err != nil {
		return Report{}, err
	}
	defer src.close()
	s := newSession(ctx, c, cfg.Progress)
	snd := newSender(s, src, cfg.Workers, cfg.Ignore)
	err = snd.greetAndRun(&hello{op: opPush, flags: flags(cfg.Delete, cfg.Ignore, cfg.Checksum), kind: src.kind, base: src.base, path: slashed(cfg.To)})
	if end := s.end(); end != nil {
		err = end
	}
	if err == nil {
		err = snd.firstFail()
	}
	return snd.report(), err
}

func flags(del, ignore, checksum bool) uint16 {
	var f uint16
	if del {
		f |= flagDelete
	}
	if ignore {
		f |= flagIgnore
	}
	if checksum {
		f |= flagChecksum
	}
	return f
}

func (snd *sender) greetAndRun(h *hello) error {
	s := snd.s
	err := s.l.send(frameHello, h.encode())
	if err == nil {
		_, err = s.expect(frameWelcome)
	}
	if err == nil {
		err = snd.run()
	}
	s.stop(err)
	return err
}

func pull(ctx context.Context, c io.ReadWriter, cfg PullConfig) (Report, error) {
	s := newSession(ctx, c, cfg.Progress)
	rcv, err := fetch(s, cfg)
	s.stop(err)
	end := s.end()
	if rcv == nil {
		return Report{}, end
	}
	defer rcv.t.close()
	if end == nil {
		end = rcv.firstFail()
	}
	return rcv.report(), end
}

func fetch(s *session, cfg PullConfig) (*receiver, error) {
	h := hello{op: opPull, flags: flags(cfg.Delete, false, cfg.Checksum), path: slashed(cfg.From)}
	if err := s.l.send(frameHello, h.encode()); err != nil {
		return nil, err
	}
	b, err := s.expect(frameWelcome)
	if err != nil {
		return nil, err
	}
	if len(b) != 1 || b[0] != sourceFile && b[0] != sourceFolder {
		return nil, badFrame("an unknown kind of source")
	}
	// The name is taken from what was asked for, and not from what the other side says.
	base, contents := lastName(h.path)
	kind := b[0]
	if kind == sourceFolder && contents {
		kind = sourceContents
	}
	t, err := place{}.target(orDot(cfg.To), slashed(cfg.To), kind, base)
	if err != nil {
		return nil, err
	}
	rcv := newReceiver(s, t, limits{entries: cfg.MaxEntries, bytes: cfg.MaxBytes}, cfg.Workers)
	rcv.deletes, rcv.checksum, rcv.names.plain = cfg.Delete, cfg.Checksum, true
	rcv.sync = cfg.Sync
	return rcv, rcv.run()
}

func serve(ctx context.Context, c io.ReadWriter, cfg ServeConfig) error {
	s := newSession(ctx, c, nil)
	err := s.answer(&cfg)
	s.stop(err)
	if err != nil && s.peerErr == nil {
		s.drain()
	}
	if end := s.end(); end != nil {
		return end
	}
	return err
}

func (s *session) answer(cfg *ServeConfig) error {
	b, err := s.expect(frameHello)
	if err != nil {
		return err
	}
	h, err := decodeHello(b)
	if err != nil {
		return err
	}
	p, name, err := cfg.resolve(h.path)
	if err != nil {
		return err
	}
	if p.root != nil {
		defer p.root.Close()
	}
	if h.op == opPush {
		return s.take(cfg, &h, p, name)
	}
	src, err := p.source(name, orDot(h.path))
	if err != nil {
		return err
	}
	defer src.close()
	kind := src.kind
	if kind == sourceContents {
		kind = sourceFolder
	}
	if err := s.l.send(frameWelcome, []byte{kind}); err != nil {
		return err
	}
	return newSender(s, src, cfg.Workers, h.flags&flagIgnore != 0).run()
}

func (s *session) take(cfg *ServeConfig, h *hello, p place, name string) error {
	t, err := p.target(name, h.path, h.kind, h.base)
	if err != nil {
		return err
	}
	defer t.close()
	if err := s.l.send(frameWelcome, []byte{h.kind}); err != nil {
		return err
	}
	rcv := newReceiver(s, t, limits{entries: cfg.MaxEntries, bytes: cfg.MaxBytes, path: cfg.MaxPath}, cfg.Workers)
	rcv.deletes, rcv.ignore, rcv.checksum = h.flags&flagDelete != 0, h.flags&flagIgnore != 0, h.flags&flagChecksum != 0
	rcv.sync = cfg.Sync
	return rcv.run()
}
