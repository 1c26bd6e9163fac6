package index_test

import (
	"context"
	"crypto/ed25519"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/index"
	"haggle/market"
	"haggle/market/markettest"
)

const testNetwork = "lab-index"

// keyOf makes the key of a number.
func keyOf(n int) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0], seed[1], seed[2] = byte(n), byte(n>>8), byte(n>>16)
	return ed25519.NewKeyFromSeed(seed)
}

// town is a market in memory, 60 ms round trips. What a member is asked it answers from its index or by its own rule.
type town struct {
	mu      sync.Mutex
	members map[market.Key]*member
	found   map[string][]market.Key // by cell, in the order of announcement
	slow    map[market.Key]time.Duration
	dead    map[market.Key]bool
	asked   map[string]int
	addrs   map[market.Key][]string
}

func newTown() *town {
	return &town{
		members: map[market.Key]*member{}, found: map[string][]market.Key{}, slow: map[market.Key]time.Duration{}, dead: map[market.Key]bool{},
		asked: map[string]int{}, addrs: map[market.Key][]string{},
	}
}

const roundTrip = 60 * time.Millisecond

// member is somebody in a town.
type member struct {
	town     *town
	key      ed25519.PrivateKey
	self     market.Key
	offer    market.Offer
	sealed   [][]byte
	contacts []market.Key
	shelf    *index.Index
	page     func(market.SnapshotRequest) ([][]byte, market.SnapshotEnd) // instead of the shelf's
	fetch    func() ([][]byte, error)                                    // instead of its own offers
	cells    []string
	blamed   map[market.Key]int
	blocked  map[market.Key]bool
	unready  error
}

// rig adds a rig that offers something and keeps no shelf.
func (w *town) rig(n int, changes ...func(*market.Offer)) *member {
	m := w.visitor(n)
	m.offer = markettest.Offer()
	m.offer.Rig, m.offer.Owner, m.offer.Simulated = m.self, m.self, true
	for i := range m.offer.Slots {
		m.offer.Slots[i].Vendor = market.VendorSimulated
	}
	m.renew(changes...)
	return m
}

// visitor adds somebody who offers nothing.
func (w *town) visitor(n int) *member {
	key := keyOf(n)
	m := &member{town: w, key: key, self: market.KeyOf(key), blamed: map[market.Key]int{}, blocked: map[market.Key]bool{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.members[m.self] = m
	return m
}

// renew signs a member's offer anew.
func (m *member) renew(changes ...func(*market.Offer)) {
	m.town.mu.Lock()
	defer m.town.mu.Unlock()
	now := time.Now()
	m.offer.Seq, m.offer.Issued, m.offer.Expires = now.UnixMilli(), now.UnixMilli(), now.Add(market.MaxOfferLife).UnixMilli()
	for _, change := range changes {
		change(&m.offer)
	}
	m.sealed = [][]byte{market.SealOffer(testNetwork, m.key, m.offer).Encode()}
}

// offers are a member's sealed offers.
func (m *member) offers() [][]byte {
	m.town.mu.Lock()
	defer m.town.mu.Unlock()
	return m.sealed
}

func (m *member) buckets() []string {
	m.town.mu.Lock()
	defer m.town.mu.Unlock()
	return market.Buckets(m.offer)
}

// set changes a member while others may ask it.
func (m *member) set(change func()) {
	m.town.mu.Lock()
	defer m.town.mu.Unlock()
	change()
}

// announced has a member be found in the buckets of its offer, without a shelf.
func (m *member) announced() *member {
	m.Announce(m.buckets())
	return m
}

// index makes a member's index and runs it until the test's context ends.
func (m *member) index(t *testing.T, change func(*index.Config)) *index.Index {
	t.Helper()
	cfg := index.Config{Network: testNetwork, Self: m.self, Net: m, Workers: 1}
	if change != nil {
		change(&cfg)
	}
	x, err := index.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// inTown runs a test in virtual time. start runs an index until the end of the test or until the returned function is called.
func inTown(t *testing.T, test func(t *testing.T, w *town, start func(*index.Index) (stop func()))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var stops []func()
		test(t, newTown(), func(x *index.Index) func() {
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- x.Run(ctx) }()
			stop := sync.OnceFunc(func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
			stops = append(stops, stop)
			return stop
		})
		for _, stop := range slices.Backward(stops) {
			stop()
		}
		synctest.Wait()
	})
}

// keepsShelf makes a rig's shelf.
func (m *member) keepsShelf(t *testing.T) *index.Index {
	t.Helper()
	shelf := m.index(t, func(c *index.Config) { c.Offers, c.Buckets = m.offers, m.buckets })
	m.set(func() { m.shelf = shelf })
	return shelf
}

// set changes a town while its members go on.
func (w *town) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *town) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[what]++
}

func (w *town) counted(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[what]
}

// travel takes the time of a round trip to a member, and fails where it is dead.
func (w *town) travel(ctx context.Context, to market.Key) (*member, error) {
	w.mu.Lock()
	m, dead, pause := w.members[to], w.dead[to], roundTrip+w.slow[to]
	w.mu.Unlock()
	if m == nil || dead {
		pause = 1500 * time.Millisecond
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if m == nil || dead {
		return nil, market.NewError(market.CodeUnreachable, "peer", to.String())
	}
	return m, nil
}

func (m *member) Ready(context.Context) error {
	m.town.mu.Lock()
	defer m.town.mu.Unlock()
	return m.unready
}

func (m *member) Contacts() []market.Key {
	m.town.mu.Lock()
	defer m.town.mu.Unlock()
	return slices.Clone(m.contacts)
}

// Find takes three round trips and names those first who announced themselves first.
func (m *member) Find(ctx context.Context, cell string) iter.Seq[market.Key] {
	return func(yield func(market.Key) bool) {
		m.town.count("find")
		for range 3 {
			time.Sleep(roundTrip)
		}
		m.town.mu.Lock()
		keys := slices.Clone(m.town.found[cell])
		m.town.mu.Unlock()
		for _, key := range keys {
			if ctx.Err() != nil || key != m.self && !yield(key) {
				return
			}
		}
	}
}

func (m *member) FetchOffers(ctx context.Context, rig market.Key) ([][]byte, error) {
	m.town.count("fetch " + rig.Short())
	to, err := m.town.travel(ctx, rig)
	if err != nil {
		return nil, err
	}
	m.town.mu.Lock()
	fetch := to.fetch
	m.town.mu.Unlock()
	if fetch != nil {
		return fetch()
	}
	return to.offers(), nil
}

func (m *member) Snapshot(ctx context.Context, peer market.Key, r market.SnapshotRequest) ([][]byte, market.SnapshotEnd, error) {
	m.town.count("snapshot " + peer.Short())
	to, err := m.town.travel(ctx, peer)
	if err != nil {
		return nil, market.SnapshotEnd{}, err
	}
	m.town.mu.Lock()
	serve, shelf := to.page, to.shelf
	m.town.mu.Unlock()
	if shelf == nil && serve == nil {
		return nil, market.SnapshotEnd{}, market.NewError(market.CodeUnsupported, "what", "snapshot", "instead", "nothing")
	}
	if serve == nil {
		serve = func(r market.SnapshotRequest) ([][]byte, market.SnapshotEnd) { return shelf.Serve(m.self, r) }
	}
	offers, end := serve(r)
	return offers, end, nil
}

func (m *member) Announce(cells []string) {
	m.town.mu.Lock()
	defer m.town.mu.Unlock()
	for _, name := range m.cells {
		m.town.found[name] = slices.DeleteFunc(m.town.found[name], func(k market.Key) bool { return k == m.self })
	}
	m.cells = slices.Clone(cells)
	for _, name := range cells {
		m.town.found[name] = append(m.town.found[name], m.self)
	}
}

func (m *member) Remember(rig market.Key, addrs []string) {
	m.town.mu.Lock()
	defer m.town.mu.Unlock()
	m.town.addrs[rig] = addrs
}

func (m *member) AddrsOf(rig market.Key) []string { return []string{"/memory/" + rig.Short()} }

func (m *member) Blame(peer market.Key, _ error) {
	m.town.mu.Lock()
	defer m.town.mu.Unlock()
	m.blamed[peer]++
}

func (m *member) Admits(key market.Key) bool {
	m.town.mu.Lock()
	defer m.town.mu.Unlock()
	return !m.blocked[key]
}

// memory is a store in memory.
type memory struct {
	mu     sync.Mutex
	rigs   map[market.Key]index.Remembered
	writes int
}

func (s *memory) RememberedRigs(_ context.Context, most int) ([]index.Remembered, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.SortedFunc(maps.Values(s.rigs), func(a, b index.Remembered) int { return int(b.Used - a.Used) })
	return list[:min(most, len(list))], nil
}

func (s *memory) RememberRigs(_ context.Context, rigs []index.Remembered) ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	first := make([]int64, len(rigs))
	for i, m := range rigs {
		if old, ok := s.rigs[m.Rig]; ok && old.FirstSeen < m.FirstSeen {
			m.FirstSeen = old.FirstSeen
		}
		first[i] = m.FirstSeen
		if s.rigs == nil {
			s.rigs = map[market.Key]index.Remembered{}
		}
		s.rigs[m.Rig] = m
	}
	return first, nil
}

// pass lets time go by.
func pass(d time.Duration) {
	time.Sleep(d) // of the bubble: virtual
	synctest.Wait()
}
