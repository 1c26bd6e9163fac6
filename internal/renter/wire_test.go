package renter_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"sync"

	"haggle/internal/renter"
	"haggle/market"
)

var errCut = errors.New("connection reset")

// pipe is one direction of a stream. Messages pass as bytes, as on a network.
type pipe struct {
	data chan []byte
	mu   sync.Mutex
	why  error         // why it ended
	lost bool          // what is on the way is lost
	end  chan struct{} // closed then
}

func newPipe() *pipe { return &pipe{data: make(chan []byte, 4096), end: make(chan struct{})} }

func (p *pipe) stop(why error, lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why == nil {
		p.why, p.lost = why, lost
		close(p.end)
	}
}

func (p *pipe) reason() (error, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why, p.lost
}

// wire is one end of a stream in memory.
type wire struct {
	peer    market.Key
	in, out *pipe
	rest    []byte // of raw bytes: came, and not read yet
}

// newWire makes both ends of a stream: the renter's and the rig's.
func newWire(rig, agent market.Key) (*wire, *wire) {
	up, down := newPipe(), newPipe()
	return &wire{peer: rig, in: down, out: up}, &wire{peer: agent, in: up, out: down}
}

func (w *wire) Peer() market.Key { return w.peer }

func (w *wire) Send(ctx context.Context, m market.Message) error {
	data, err := market.EncodeMessage(m)
	if err != nil {
		return err
	}
	return w.put(ctx, data)
}

func (w *wire) put(ctx context.Context, data []byte) error {
	if why, _ := w.out.reason(); why != nil {
		return errCut
	}
	select {
	case w.out.data <- data:
		return nil
	case <-w.out.end:
		return errCut
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *wire) Receive(ctx context.Context) (market.Message, error) {
	data, err := w.take(ctx)
	if err != nil {
		return nil, err
	}
	return decode(data)
}

func (w *wire) take(ctx context.Context) ([]byte, error) {
	if why, lost := w.in.reason(); lost {
		return nil, why
	}
	select {
	case data := <-w.in.data:
		return data, nil
	default:
	}
	select {
	case data := <-w.in.data:
		return data, nil
	case <-w.in.end:
		select {
		case data := <-w.in.data:
			return data, nil
		default:
			why, _ := w.in.reason()
			return nil, why
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func decode(data []byte) (market.Message, error) {
	m, err := market.DecodeMessage(data)
	if refuse, ok := m.(market.Refuse); ok {
		return nil, &refuse.Err
	}
	return m, err
}

func (w *wire) Close() error {
	w.out.stop(io.EOF, false)
	w.in.stop(io.EOF, false)
	return nil
}

// Raw turns the stream into bytes.
func (w *wire) Raw() renter.Conn { return rawWire{w} }

type rawWire struct{ w *wire }

func (r rawWire) Read(p []byte) (int, error) {
	for len(r.w.rest) == 0 {
		data, err := r.w.take(context.Background())
		if err != nil {
			return 0, err
		}
		r.w.rest = data
	}
	n := copy(p, r.w.rest)
	r.w.rest = r.w.rest[n:]
	return n, nil
}

func (r rawWire) Write(p []byte) (int, error) {
	if err := r.w.put(context.Background(), bytes.Clone(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (r rawWire) Close() error { return r.w.Close() }

func (r rawWire) CloseWrite() error {
	r.w.out.stop(io.EOF, false)
	return nil
}

// cut breaks the stream and loses what is on the way; snap only breaks it.
func (w *wire) cut() {
	w.out.stop(errCut, true)
	w.in.stop(errCut, true)
}

func (w *wire) snap() {
	w.out.stop(errCut, false)
	w.in.stop(errCut, false)
}

// testNet is the network of one test, with every rig a call away.
type testNet struct {
	agent market.Key

	mu      sync.Mutex
	rigs    map[market.Key]*testRig
	order   []market.Key
	unready error
	found   []market.Key // keys that Find yields beside the rigs
	fetch   func(market.Key) ([][]byte, error)
	fetches map[market.Key]int
	finds   map[string]int
	path    string // by which every rig is reached; "" is unknown

	deputies map[market.Key]func(context.Context, renter.Stream) error // agents that take handed leases
}

func newTestNet(agent market.Key, rigs ...*testRig) *testNet {
	n := &testNet{agent: agent, rigs: map[market.Key]*testRig{}, fetches: map[market.Key]int{}, finds: map[string]int{}, deputies: map[market.Key]func(context.Context, renter.Stream) error{}}
	for _, r := range rigs {
		n.rigs[r.self] = r
		n.order = append(n.order, r.self)
	}
	return n
}

// set changes the network under its lock.
func (n *testNet) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

func (n *testNet) Ready(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.unready
}

func (n *testNet) Find(ctx context.Context, bucket string) iter.Seq[market.Key] {
	n.mu.Lock()
	n.finds[bucket]++
	keys := append(append([]market.Key{}, n.order...), n.found...)
	n.mu.Unlock()
	return func(yield func(market.Key) bool) {
		for _, k := range keys {
			if ctx.Err() != nil || !yield(k) {
				return
			}
		}
	}
}

func (n *testNet) FetchOffers(ctx context.Context, key market.Key) ([][]byte, error) {
	n.mu.Lock()
	n.fetches[key]++
	fetch := n.fetch
	n.mu.Unlock()
	if fetch != nil {
		return fetch(key)
	}
	r, err := n.reach(key)
	if err != nil {
		return nil, err
	}
	return r.current(), nil
}

func (n *testNet) OpenLease(_ context.Context, key market.Key) (renter.Stream, error) {
	r, err := n.reach(key)
	if err != nil {
		return nil, err
	}
	return r.connect(n.agent, r.serveLease), nil
}

func (n *testNet) OpenTunnel(_ context.Context, key market.Key, _ bool) (renter.Stream, error) {
	r, err := n.reach(key)
	if err != nil {
		return nil, err
	}
	return r.connect(n.agent, r.serveTunnel), nil
}

// OpenDeputy reaches another agent of the test.
func (n *testNet) OpenDeputy(_ context.Context, key market.Key) (renter.Stream, error) {
	n.mu.Lock()
	serve := n.deputies[key]
	n.mu.Unlock()
	if serve == nil {
		return nil, market.NewError(market.CodeUnreachable, "peer", key.String())
	}
	theirs, ours := newWire(key, n.agent)
	go func() {
		if err := serve(context.Background(), ours); err != nil {
			_ = ours.Send(context.Background(), market.Refuse{Err: *market.Public(err)})
		}
		_ = ours.Close()
	}()
	return theirs, nil
}

func (n *testNet) reach(key market.Key) (*testRig, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.rigs[key]
	if r == nil || r.isDown() {
		return nil, market.NewError(market.CodeUnreachable, "peer", key.String())
	}
	return r, nil
}
