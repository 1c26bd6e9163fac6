package index

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"haggle/market"
)

// Config is what an index is made of. Network, Self and Net are required.
type Config struct {
	Network string // the network's name, part of what rigs sign
	Self    market.Key
	Net     Network
	Store   Store            // nil: nothing is remembered
	Clock   func() time.Time // with a monotonic reading; time.Now by default
	Log     *slog.Logger     // nil discards
	Refresh time.Duration    // between two questions to a known rig while the market is small; 10 seconds by default

	// Offers returns this rig's own sealed offers, and Buckets the buckets in which they belong. A rig has both and keeps a shelf;
	// an agent has neither and keeps a list for its renter.
	Offers  func() [][]byte
	Buckets func() []string

	MaxRigs   int // 100 000 by default, and 8192 for a shelf
	MaxOffers int // five for four rigs by default
	MaxBytes  int // of their sealed bytes; 1.5 kB for each by default

	MaxOfOwner int // offers of one owner; an eighth of all by default
	MaxHearsay int // rigs that rest on one peer's word, or on its network's; an eighth of all by default

	Workers int // signatures checked at the same time; half of the processors by default
}

// DefaultRefresh is the default of Config.Refresh.
const DefaultRefresh = 10 * time.Second

// errStopped says that Run has returned.
var errStopped = errors.New("the index has stopped")

// Index is a book of offers. New makes it, Run keeps it fresh.
type Index struct {
	cfg     Config
	log     *slog.Logger
	work    chan func(context.Context) // for Run to own
	stopped chan struct{}              // closed when Run ends its work
	loaded  chan struct{}              // closed when what is remembered is there
	verify  *verifier
	asks    asks
	looks   looks
	sources sources
	reading reading
	shelf   shelf

	mu       sync.Mutex
	rigs     map[market.Key]*rig
	byName   map[name]*Statement // what is held, by its sealed bytes: nothing is verified twice
	count    int                 // offers of all rigs
	proofs   int                 // contradictions that are kept
	room     room
	arrivals arrivals
	news     bool          // something changed since changed was last closed
	changed  chan struct{} // closed and replaced when offers came, changed or went
	touched  touched
}

// New checks a configuration and makes an index of it. It starts nothing.
func New(cfg Config) (*Index, error) {
	switch {
	case cfg.Net == nil || cfg.Self == market.Key{}:
		return nil, errors.New("new index: no network or no key")
	case (cfg.Offers == nil) != (cfg.Buckets == nil):
		return nil, errors.New("new index: a shelf needs both offers and buckets")
	case cfg.Refresh < 0:
		return nil, errors.New("new index: a negative time")
	}
	if err := market.CheckNetwork(cfg.Network); err != nil {
		return nil, fmt.Errorf("new index: %w", err)
	}
	x := &Index{work: make(chan func(context.Context)), stopped: make(chan struct{}), loaded: make(chan struct{})}
	x.cfg = cfg.complete()
	x.log = x.cfg.Log
	x.verify = newVerifier(cfg.Network, cfg.Workers)
	x.rigs, x.byName, x.changed = map[market.Key]*rig{}, map[name]*Statement{}, make(chan struct{})
	x.asks, x.looks, x.sources = newAsks(), newLooks(), newSources()
	x.reading, x.shelf, x.room = newReading(), newShelf(), newRoom()
	rand.Read(x.arrivals.instance[:]) // never fails: it ends the program instead
	return x, nil
}

func (c Config) complete() Config {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Refresh == 0 {
		c.Refresh = DefaultRefresh
	}
	if c.MaxRigs <= 0 {
		c.MaxRigs = maxAgentRigs
		if c.Offers != nil {
			c.MaxRigs = maxShelfRigs
		}
	}
	if c.MaxOffers <= 0 {
		c.MaxOffers = c.MaxRigs + c.MaxRigs/4
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = max(c.MaxOffers*bytesPerOffer, leastBytes)
	}
	if c.MaxOfOwner <= 0 {
		c.MaxOfOwner = max(c.MaxOffers/ownerShare, leastOfOwner)
	}
	if c.MaxHearsay <= 0 {
		c.MaxHearsay = max(c.MaxRigs/hearsayShare, leastHearsay)
	}
	return c
}

// serves reports whether the index is a shelf that others ask.
func (x *Index) serves() bool { return x.cfg.Offers != nil }

// Run takes up what the last life remembered and keeps the index fresh until ctx ends. It returns when every goroutine is gone. It
// is called once.
func (x *Index) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	defer close(x.stopped)
	group.Go(func() {
		defer close(x.loaded)
		x.recall(ctx)
	})
	group.Go(func() {
		<-x.loaded
		x.keepMemory(ctx)
	})
	group.Go(func() { x.sweep(ctx) })
	group.Go(func() {
		<-x.loaded // remembered rigs are dialled first
		if x.serves() {
			x.keepShelf(ctx)
			return
		}
		x.keepFresh(ctx)
	})
	if !x.serves() {
		group.Go(func() { x.keepReading(ctx) })
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case f := <-x.work:
			group.Go(func() { f(ctx) })
		}
	}
}

// spawn hands work to Run. The work's context is Run's: it outlives ctx, which bounds the handing over only.
func (x *Index) spawn(ctx context.Context, f func(context.Context)) error {
	select {
	case x.work <- f:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("hand over to the index: %w", ctx.Err())
	case <-x.stopped:
		return errStopped
	}
}

// Changed returns a channel that is closed when the next offer has come, changed or gone.
func (x *Index) Changed() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.changed
}

// tell lets those know who wait for a change, if there was one. The index is locked.
func (x *Index) tell() {
	if x.news {
		x.news = false
		close(x.changed)
		x.changed = make(chan struct{})
	}
}

// sweep drops what has expired and forgets rigs of which nobody speaks any more.
func (x *Index) sweep(ctx context.Context) {
	for rest(ctx, sweepEvery) {
		x.clean(x.cfg.Clock())
	}
}

func (x *Index) clean(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer x.tell()
	for key, r := range x.rigs {
		for id, e := range r.offers {
			if now.UnixMilli() >= e.until {
				x.drop(r, id)
			}
		}
		if !now.Before(r.marked) {
			x.dropProof(r)
		}
		quiet := now.Sub(r.heard) > forgetRig && now.Sub(r.told) > forgetRig && now.Sub(r.born) > forgetRig
		if quiet && len(r.offers) == 0 && !now.Before(r.marked) {
			x.forget(key, r)
		}
	}
	x.arrivals.compact(x.count)
}

// drop removes an offer. The index is locked.
func (x *Index) drop(r *rig, id string) {
	e := r.offers[id]
	if e == nil {
		return
	}
	delete(r.offers, id)
	delete(x.byName, nameOf(e.Raw))
	x.release(e.Statement)
	x.touch(e.Offer.Rig)
	e.seq = 0
	x.count--
	x.news = true
}

// dropProof forgets how a rig contradicted itself. The index is locked.
func (x *Index) dropProof(r *rig) {
	if len(r.proofs) == 0 {
		return
	}
	for _, e := range r.proofs {
		e.seq = 0
	}
	r.proofs = nil
	x.proofs--
}

// forget removes a rig, but not what is remembered of it. The index is locked.
func (x *Index) forget(key market.Key, r *rig) {
	for id := range r.offers {
		x.drop(r, id)
	}
	x.dropProof(r)
	x.spoke(r)
	delete(x.rigs, key)
}

// rest waits, and reports whether ctx still runs.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
