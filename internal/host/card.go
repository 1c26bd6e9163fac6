package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"haggle/market"
	"haggle/nvml"
)

// Times of the cards.
const (
	cardAnswer = 10 * time.Second // for a list of all cards
	readAnswer = 5 * time.Second  // for one reading
	cardRetry  = 10 * time.Second // between tries to list the cards
)

// rack is the cards of the rig. A card keeps its slot for as long as the program runs.
type rack struct {
	driver nvml.Driver
	salt   []byte
	tick   time.Duration
	power  int64 // the most milliwatts of a leased card, 0 for its own limit
	log    *slog.Logger
	// fault is told of what went wrong with a card. It must not wait.
	fault func(card market.Hash, v nvml.Verdict)

	mu    sync.Mutex
	cards []*card
	info  nvml.DriverInfo
}

// card is one card. What it is never changes; the rack's lock guards how it fares.
type card struct {
	nvml.Card
	hash  market.Hash
	index uint8

	verdict nvml.Verdict // the worst so far
	last    nvml.Sample
	fresh   bool // the last attempt to read it worked
	xid     *int64
	unruly  string // why its power could not be limited, or was not given back
}

// load lists the cards, once. Cards that are not fit to be described, that exceed an offer, or that are simulated beside
// real ones are left out.
func (r *rack) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cardAnswer)
	defer cancel()
	info, err := r.driver.Info(ctx)
	if err != nil {
		return fmt.Errorf("ask the cards' driver: %w", err)
	}
	list, err := r.driver.Cards(ctx)
	if err != nil {
		return fmt.Errorf("list cards: %w", err)
	}
	var cards []*card
	for _, c := range list {
		if err := c.Validate(); err != nil {
			r.log.Warn("card is left out", slog.Any("err", err))
			continue
		}
		if len(cards) == market.MaxSlots || len(cards) > 0 && cards[0].Simulated != c.Simulated {
			r.log.Warn("card is left out", slog.String("gpu", c.UUID))
			continue
		}
		cards = append(cards, &card{Card: c, hash: nvml.SaltedHash(r.salt, c.UUID), index: uint8(len(cards))})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.info, r.cards = info, cards
	return nil
}

// run watches the cards until ctx ends.
func (r *rack) run(ctx context.Context, loaded func()) {
	for len(r.all()) == 0 {
		if !pause(ctx, cardRetry) {
			return
		}
		if err := r.load(ctx); err != nil {
			r.log.Warn("no cards", slog.Any("err", err))
		}
	}
	loaded()
	var wg sync.WaitGroup
	for _, c := range r.all() {
		wg.Go(func() { r.read(ctx, c) })
	}
	wg.Go(func() { r.listen(ctx) })
	wg.Wait()
}

// read samples one card with every tick. A card that hangs holds up nobody else.
func (r *rack) read(ctx context.Context, c *card) {
	ticker := time.NewTicker(r.tick)
	defer ticker.Stop()
	for {
		r.sample(ctx, c)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *rack) sample(ctx context.Context, c *card) {
	ctx, cancel := context.WithTimeout(ctx, readAnswer)
	defer cancel()
	s, err := r.driver.Sample(ctx, c.UUID)
	if err == nil {
		err = s.Validate()
	}
	if errors.Is(err, nvml.ErrLost) {
		r.note(nvml.HealthEvent{UUID: c.UUID, Kind: nvml.EventLost})
	}
	r.mu.Lock()
	before := c.last
	c.fresh = err == nil
	if c.fresh {
		c.last = s
	}
	r.mu.Unlock()
	if err == nil {
		if e, found := nvml.NewErrors(before, s); found {
			r.note(e)
		}
	}
}

// listen hears of the cards' faults.
func (r *rack) listen(ctx context.Context) {
	for {
		events, err := r.driver.Events(ctx)
		if err == nil {
			for e := range events {
				r.note(e)
			}
		}
		if ctx.Err() != nil {
			return
		}
		r.log.Warn("cards are not watched", slog.Any("err", err))
		if !pause(ctx, cardRetry) {
			return
		}
	}
}

// note judges what happened to a card.
func (r *rack) note(e nvml.HealthEvent) {
	v := nvml.Classify(e)
	r.mu.Lock()
	var hit *card
	for _, c := range r.cards {
		if c.UUID == e.UUID {
			hit = c
		}
	}
	known := hit == nil || hit.verdict.Health == nvml.Fence && v.Health == nvml.Fence
	if hit != nil {
		if e.Kind == nvml.EventXid {
			code := int64(e.Code)
			hit.xid = &code
		}
		drain := hit.verdict.Drain || v.Drain
		if v.Health > hit.verdict.Health {
			hit.verdict = v
		}
		hit.verdict.Drain = drain
	}
	r.mu.Unlock()
	if known {
		return
	}
	r.log.Warn("card", slog.String("gpu", e.UUID), slog.String("event", e.String()), slog.String("health", v.Health.String()))
	r.fault(hit.hash, v)
}

func (r *rack) all() []*card {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cards
}

// card finds a card by the hash that offers and leases name it by.
func (r *rack) card(hash market.Hash) (nvml.Card, bool) {
	for _, c := range r.all() {
		if c.hash == hash {
			return c.Card, true
		}
	}
	return nvml.Card{}, false
}

// reading returns a card's last reading and Xid; false where the last attempt failed.
func (r *rack) reading(hash market.Hash) (s nvml.Sample, xid *int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.cards {
		if c.hash == hash {
			return c.last, c.xid, c.fresh
		}
	}
	return nvml.Sample{}, nil, false
}

// begin forgets the last Xid of a card: the next belongs to the lease that begins.
func (r *rack) begin(hash market.Hash) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.cards {
		if c.hash == hash {
			c.xid = nil
		}
	}
}

// pause waits, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
