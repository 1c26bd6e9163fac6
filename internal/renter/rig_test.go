package renter_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"sync"
	"time"

	"haggle/internal/tunnel"
	"haggle/market"
)

const testNetwork = "lab-renter"

// cheat is how a rig differs from an honest one. The zero cheat is honest.
type cheat struct {
	grant   func(*market.Terms)
	receipt func(*market.Receipt)
	agreed  func(l *rigLease, seq uint32) []byte // sealed bytes to send after a receipt was agreed
	mute    bool                                 // takes everything and says nothing
	refuse  error                                // the answer to every bid
	busy    int                                  // how many bids meet a rig that serves as many requests as it may
	ask     func(*market.AskMessage)             // of every request for money
}

// testRig is a small rig that keeps the rules of market.Step: jobs start at once and run for a given time.
type testRig struct {
	key   ed25519.PrivateKey
	self  market.Key
	offer market.Offer
	cheat cheat
	run   time.Duration // of a job; 0 is until it is stopped
	code  int64
	wrong time.Duration // how far its clock is ahead, when it says the time

	mu         sync.Mutex
	ctx        context.Context
	born       time.Time
	down       bool
	sealed     [][]byte
	leases     map[market.LeaseID]*rigLease
	wires      []*wire
	log        []byte
	logCut     func(offset int64) int64 // how many bytes of the log a tunnel carries before it breaks; nil is all
	bids       int
	stops      int
	logs       int      // tunnels opened
	logHold    bool     // sends nothing
	dropAccept bool     // loses the first signature under the terms, with its connection
	expire     bool     // lets every hold run out
	echoes     []uint32 // receipts with both signatures that this rig does not wait for
	repeats    int      // receipts that it has with both signatures and that came again

	root        string                // folder of the jobs' disks
	doors       int                   // paths to doors that were opened
	shut        error                 // what a door answers
	spoil       func(io.Writer) error // what a door answers in place of a checkpoint
	decline     error                 // the answer to orders to extend and to start again
	hurt        error                 // the end of an image's tunnel after a part of it
	imaged      int64                 // bytes of images that came
	final       func(dir string)      // what a job does when it is told to end
	accepted    []int                 // secrets that came with each acceptance
	till        *bank                 // nil: everything is owed
	also        *bank                 // of a deputy
	fromBalance uint32                // the slice that is paid from what the renter has left with the rig
	deaf        bool                  // it never sees money come
	quiet       bool                  // it does not say that complaints have come
	instance    market.Nonce          // of its store
	frozen      bool                  // jobs do not run, though the rig says so and bills it
}

type rigLease struct {
	rig      *testRig
	state    market.Lease
	sealed   []byte
	receipts [][]byte // signed by both
	rejects  []market.Reject
	env      market.Env
	wire     *wire
	deputy   *wire // of a deputy
	started  time.Time
	said     time.Time
	outcome  []byte

	work    string // the folder that is /work in the job; never changes
	job     market.Job
	image   []byte // that was brought
	whole   bool   // it has come
	secrets []market.Secret
	door    *tunnel.Server

	payments [][]byte
	signed   map[uint32]bool // slices for which a payment was signed
	wishes   []market.Slice
	told     []market.PaidMessage
	accepted []byte // the outcome with both signatures
	reminded int    // payments that the renter sent back
	notices  int
	disputes [][]byte // that the renter said, repetitions too
	extended []uint32 // numbers of extensions that came with both signatures
}

func seedKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), seed))
}

func testOffer(key ed25519.PrivateKey, name string, price market.Rate, slots int, now time.Time) market.Offer {
	self := market.KeyOf(key)
	o := market.Offer{
		Rig: self, Owner: self, Name: name, ID: "cards", Seq: now.UnixMilli(), Issued: now.UnixMilli(),
		Expires: now.Add(market.MaxOfferLife).UnixMilli(), State: market.OfferOpen, Simulated: true,
		Host: market.HostFacts{
			CPU: "test", SlotThreads: 4, SlotMemory: 8 << 30, DiskFree: 1e12, Kernel: "6.1", Isolation: "none",
			Images: []market.ImageName{{Name: "train", Digest: digest("1"), Size: 1}},
		},
		Net:    market.NetFacts{Reach: "loopback"},
		Prices: market.Prices{Currency: "USD", Slot: price},
		Rules: market.Rules{
			MinMs: 60_000, MaxMs: 86_400_000, IntervalMs: 60_000, FirstMs: 10_000, GraceMs: 120_000, NoticeMs: 10_000,
			MaxUnattended: 8 * 3_600_000, Credit: market.Unlimited, Bidders: market.BiddersAnyone,
		},
	}
	for i := range slots {
		o.Slots = append(o.Slots, market.Slot{
			Index: uint8(i), Kind: market.SlotCard, Card: market.HashOf([]byte{byte(i), key[0]}), Vendor: market.VendorSimulated,
			Model: "RTX_4090", RawModel: "NVIDIA GeForce RTX 4090", Memory: 24 << 30, Usable: 23 << 30, Health: "fit",
		})
	}
	return o
}

func digest(digit string) string {
	d := "sha256:"
	for range 64 {
		d += digit
	}
	return d
}

func newRig(seed byte, name string, price market.Rate) *testRig {
	key := seedKey(seed)
	r := &testRig{key: key, self: market.KeyOf(key), leases: map[market.LeaseID]*rigLease{}, born: time.Now()}
	r.offer = testOffer(key, name, price, 2, time.Now())
	r.sign()
	return r
}

// start lets the rig's time pass until ctx ends.
func (r *testRig) start(ctx context.Context) {
	r.ctx = ctx
	go func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		renewed := time.Now()
		for {
			select {
			case <-ctx.Done():
				r.cut()
				return
			case <-t.C:
			}
			if time.Since(renewed) >= market.OfferRenewal {
				renewed = time.Now()
				r.update(func(o *market.Offer) {})
			}
			r.tick()
		}
	}()
}

func (r *testRig) sign() {
	r.sealed = [][]byte{market.SealOffer(testNetwork, r.key, r.offer).Encode()}
}

// update signs the offer anew.
func (r *testRig) update(change func(*market.Offer)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.offer.Issued, r.offer.Expires = now.UnixMilli(), now.Add(market.MaxOfferLife).UnixMilli()
	r.offer.Seq = max(r.offer.Seq+1, now.UnixMilli())
	change(&r.offer)
	r.sign()
}

// set changes the rig under its lock.
func (r *testRig) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *testRig) current() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sealed
}

func (r *testRig) isDown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down
}

func (r *testRig) isMute() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cheat.mute
}

func (r *testRig) setDown(down bool) {
	r.mu.Lock()
	r.down = down
	r.mu.Unlock()
	if down {
		r.cut()
	}
}

// cut breaks every connection.
func (r *testRig) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.wires {
		w.cut()
	}
	r.wires = nil
}

func (r *testRig) connect(agent market.Key, serve func(*wire) error) *wire {
	theirs, ours := newWire(r.self, agent)
	r.mu.Lock()
	r.wires = append(r.wires, ours)
	r.mu.Unlock()
	go func() {
		err := serve(ours)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errCut) {
			_ = ours.Send(r.ctx, market.Refuse{Err: *market.Public(err)})
		}
		_ = ours.Close()
	}()
	return theirs
}

func (r *testRig) now() market.Instant {
	return market.Instant{Mono: time.Since(r.born).Milliseconds(), Wall: time.Now().UnixMilli()}
}

func (r *testRig) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.leases {
		if l.state.Job == market.JobRunning && r.run > 0 && time.Since(l.started) >= r.run {
			_ = l.event(market.Exited{Code: r.code, RanMs: r.run.Milliseconds()})
			continue
		}
		if l.state.Job == market.JobStopping && time.Now().UnixMilli() >= l.state.KillAt {
			_ = l.event(market.Exited{Code: 143, RanMs: time.Since(l.started).Milliseconds()})
			continue
		}
		_ = l.event(market.Tick{})
		l.collect()
		if l.state.Job == market.JobRunning && time.Since(l.said) >= 5*time.Second {
			l.status()
		}
	}
}

// event steps a lease and performs what it asks for. The caller holds the lock.
func (l *rigLease) event(e market.Event) error {
	before, ready := l.state.Job, l.state.Ready
	next, actions, err := market.Step(l.state, l.rig.now(), e)
	if err != nil {
		return err
	}
	l.state = next
	if next.Job != before || next.Ready != ready {
		l.status()
	}
	for _, action := range actions {
		switch a := action.(type) {
		case market.Prepare:
			if l.job.Archive == 0 || l.whole {
				err = l.event(market.Prepared{})
			}
		case market.Start:
			l.started = time.Now()
			err = l.event(market.Started{})
		case market.EndJob:
			if a.GraceMs > 0 {
				if l.rig.final != nil {
					l.rig.final(l.work)
				}
				continue // it takes its time
			}
			err = l.event(market.Exited{Code: 143, RanMs: time.Since(l.started).Milliseconds()})
		case market.Scrub:
			err = l.event(market.Scrubbed{Cards: []market.CardWipe{{Index: l.state.Terms.Slots[0].Index, Bytes: 1 << 30}}})
		case market.Remove:
			err = l.event(market.Removed{})
		case market.Attest:
			l.outcome = market.SealOutcome(testNetwork, l.rig.key, a.Outcome).Encode()
			l.send(market.OutcomeMessage{Outcome: l.outcome})
		case market.AskPay:
			l.askPay(a.Slice)
		case market.Warn:
			l.notices++
			l.send(market.NoticeMessage{Notice: market.SealNotice(testNetwork, l.rig.key, a.Notice).Encode()})
		case market.Propose:
			l.send(market.ReceiptMessage{Receipt: l.draft(a.Receipt)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *rigLease) draft(r market.Receipt) []byte {
	if l.rig.cheat.receipt != nil {
		l.rig.cheat.receipt(&r)
	}
	return market.SealReceipt(testNetwork, l.rig.key, r).Encode()
}

func (l *rigLease) status() {
	l.said = time.Now()
	l.send(l.state.Status())
}

func (l *rigLease) send(m market.Message) {
	for _, w := range []*wire{l.wire, l.deputy} {
		if w != nil && !l.rig.cheat.mute {
			_ = w.Send(l.rig.ctx, m)
		}
	}
}
