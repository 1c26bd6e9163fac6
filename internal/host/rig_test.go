package host_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/host"
	"haggle/internal/view"
	"haggle/market"
	"haggle/nvml/sim"
	"haggle/runtime"
	"haggle/runtime/runtimetest"
)

const network = "lab-test"

// rig is a machine: its engine, cards and store outlive the daemon, which can be stopped and started. It lives in a
// synctest bubble.
type rig struct {
	t      *testing.T
	key    ed25519.PrivateKey
	config host.Config
	engine *runtimetest.Fake
	cards  *sim.Driver
	store  *memoryStore
	image  runtime.Image

	*host.Daemon
	cancel  context.CancelFunc
	ended   chan error
	streams sync.WaitGroup
	off     atomic.Int64 // ms that its wall clock is ahead
}

func private(word string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(word))
	return ed25519.NewKeyFromSeed(seed[:])
}

// inBubble runs a test with a rig of two simulated cards under virtual time.
func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	inBubbleOf(t, func(*rig) {}, test)
}

// inBubbleOf is inBubble with a rig that is changed before it starts.
func inBubbleOf(t *testing.T, change func(r *rig), test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		change(r)
		r.start()
		test(t, r)
		r.stop()
		r.engine.Shutdown()
		_ = r.cards.Close()
	})
}

// jobs lists what is in the engine.
func (r *rig) jobs() []runtime.Status {
	r.t.Helper()
	list, err := r.engine.List(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

func newRig(t *testing.T) *rig {
	t.Helper()
	cards, err := sim.New(sim.Config{Cards: []sim.CardConfig{{Profile: "RTX_4090", Count: 2}}, Serial: "test"})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		t: t, key: private("rig"), cards: cards, store: newMemoryStore(),
		engine: runtimetest.NewFake(map[string]runtimetest.Program{"probe": program}),
	}
	r.image = addImage(r.engine, "lab")
	r.config = host.Config{
		Key: r.key, Network: network, Name: "rig-1", Store: r.store, Cards: r.cards, Runtime: r.engine,
		Machine: host.Machine{CPU: "test", Kernel: "6.1", Threads: 16, Memory: 32 << 30, DiskFree: 200e9},
		Salt:    []byte("salt"), Prices: market.Prices{Currency: "USD", Slot: 360_000},
		Net: market.NetFacts{Reach: "loopback"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	r.config.Rules = host.DefaultRules()
	r.config.Rules.MinMs = 1000
	return r
}

// program is the probe of the engines' own tests, and "wait SECONDS", which ends with 0, and "write-and-wait PATH TEXT", which goes
// on as polite does.
func program(ctx context.Context, p *runtimetest.Process) int {
	if len(p.Args) == 4 && p.Args[1] == "write-and-wait" {
		args := p.Args
		p.Args = []string{args[0], "write", args[2], args[3]}
		if code := runtimetest.Probe(ctx, p); code != 0 {
			return code
		}
		p.Args = []string{args[0], "polite"}
	}
	if len(p.Args) != 3 || p.Args[1] != "wait" {
		return runtimetest.Probe(ctx, p)
	}
	seconds, err := strconv.Atoi(p.Args[2])
	if err != nil {
		return 2
	}
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
	case <-ctx.Done():
	}
	return 0
}

// addImage makes an image without a command of its own: jobs name their program.
func addImage[C any](engine interface {
	AddImage(name string, config C) runtime.Image
}, name string,
) runtime.Image {
	var none C
	return engine.AddImage(name, none)
}

// newClock is the clock of a process that begins now.
func newClock() func() market.Instant {
	born := time.Now()
	return func() market.Instant {
		return market.Instant{Mono: time.Since(born).Milliseconds(), Wall: time.Now().UnixMilli()}
	}
}

// start begins a life of the daemon and waits for its offer.
func (r *rig) start() {
	r.t.Helper()
	right := newClock()
	r.config.Clock = func() market.Instant {
		now := right()
		now.Wall += r.off.Load()
		return now
	}
	d, err := host.New(r.config)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	r.Daemon, r.cancel, r.ended = d, cancel, make(chan error, 1)
	go func() { r.ended <- d.Run(ctx) }()
	synctest.Wait()
	if len(r.Offers()) != 1 {
		r.t.Fatalf("%d offers", len(r.Offers()))
	}
}

// stop ends the daemon's life; jobs go on.
func (r *rig) stop() {
	r.t.Helper()
	r.cancel()
	if err := <-r.ended; err != nil {
		r.t.Fatal(err)
	}
	r.streams.Wait()
}

// pass lets time go by, and everything happen that falls due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// open dials the rig as p2p does: an error that a handler returns is told before the stream is closed.
func (r *rig) open(renter market.Key, serve func(context.Context, host.Stream) error) *pipe {
	ours, theirs := newPipe(renter, market.KeyOf(r.key))
	r.streams.Go(func() {
		if err := serve(r.t.Context(), ours); err != nil {
			_ = ours.Send(r.t.Context(), market.Refuse{Err: *market.Public(err)})
		}
		ours.Close()
	})
	return theirs
}

// offer opens the rig's present offer.
func (r *rig) offer() (market.Offer, market.Sealed, []byte) {
	r.t.Helper()
	raw := r.Offers()[0]
	o, s, err := market.OpenOffer(r.config.Network, raw)
	if err != nil {
		r.t.Fatal(err)
	}
	return o, s, raw
}

// free counts the slots that the offer shows as free.
func (r *rig) free() int {
	r.t.Helper()
	synctest.Wait()
	o, _, _ := r.offer()
	return len(o.Free())
}

// lease returns the stored state of the only lease.
func (r *rig) lease() market.Lease {
	r.t.Helper()
	list, err := r.store.Records(r.t.Context(), true)
	if err != nil || len(list) == 0 {
		r.t.Fatalf("%d leases: %v", len(list), err)
	}
	return list[len(list)-1].Lease
}

func wantCode(t *testing.T, err error, code market.Code) {
	t.Helper()
	if got := market.CodeOf(err); got != code {
		t.Fatalf("got %q (%v), want %q", got, err, code)
	}
}

// named trusts an owner under a name.
func named(name string) view.Trust { return view.Trust{Name: &name} }
