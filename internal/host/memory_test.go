package host_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"haggle/internal/host"
	"haggle/market"
)

// memoryStore keeps the promises of host.Store in memory. It outlives the Daemon that uses it.
type memoryStore struct {
	mu       sync.Mutex
	order    []market.LeaseID
	records  map[market.LeaseID]host.Record
	receipts map[market.LeaseID][]host.Receipt
	extended map[market.LeaseID][][]byte
	papers   []market.Paper
	settings host.Settings
	broken   error // what every write returns
	writes   int
	left     int   // writes until it breaks, 0 for never
	after    error // with which it breaks
}

var errFork = errors.New("other bytes at this number")

func newMemoryStore() *memoryStore {
	return &memoryStore{records: map[market.LeaseID]host.Record{}, receipts: map[market.LeaseID][]host.Receipt{}, extended: map[market.LeaseID][][]byte{}}
}

func (m *memoryStore) Instance(context.Context) (market.Nonce, error) { return market.Nonce{1}, nil }

func (m *memoryStore) write(ctx context.Context) error {
	if m.left > 0 {
		if m.left--; m.left == 0 {
			m.broken = m.after
		}
	}
	m.writes++
	return errors.Join(m.broken, ctx.Err())
}

// breakAfter lets the store take so many writes less one more.
func (m *memoryStore) breakAfter(writes int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left, m.after = writes, err
}

func (m *memoryStore) isBroken() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broken != nil
}

func (m *memoryStore) breakWith(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = err
}

func (m *memoryStore) Create(ctx context.Context, r host.Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.write(ctx); err != nil {
		return err
	}
	for _, old := range m.records {
		if old.Lease.Terms.Bid == r.Lease.Terms.Bid {
			return errors.New("bid has a lease")
		}
	}
	m.order = append(m.order, r.Lease.ID)
	m.records[r.Lease.ID] = kept(r)
	return nil
}

// kept passes the state through its stored form.
func kept(r host.Record) host.Record {
	var l market.Lease
	if err := market.DecodeState(market.EncodeState(r.Lease), &l); err != nil {
		panic(err)
	}
	r.Lease = l
	if l.Job == market.JobEnded {
		r.Env = nil
	}
	return r
}

func (m *memoryStore) Granted(_ context.Context, bid market.Hash) (host.Record, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if r.Lease.Terms.Bid == bid {
			return r, true, nil
		}
	}
	return host.Record{}, false, nil
}

func (m *memoryStore) Sign(ctx context.Context, l market.Lease, sealed []byte, env market.Env) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.write(ctx); err != nil {
		return err
	}
	r, ok := m.records[l.ID]
	if !ok {
		return market.NewError(market.CodeLeaseUnknown)
	}
	r.Lease, r.Sealed, r.Env = l, sealed, env
	m.records[l.ID] = kept(r)
	return nil
}

func (m *memoryStore) Save(ctx context.Context, l market.Lease, receipts ...host.Receipt) error {
	return m.File(ctx, l, receipts, nil)
}

func (m *memoryStore) File(ctx context.Context, l market.Lease, receipts []host.Receipt, papers []market.Paper) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.write(ctx); err != nil {
		return err
	}
	r, ok := m.records[l.ID]
	if !ok {
		return market.NewError(market.CodeLeaseUnknown)
	}
	list := slices.Clone(m.receipts[l.ID])
	for _, n := range receipts {
		i := slices.IndexFunc(list, func(o host.Receipt) bool { return o.Seq == n.Seq })
		switch {
		case i < 0:
			list = append(list, n)
		case !bytes.Equal(bodyOf(list[i].Sealed), bodyOf(n.Sealed)):
			return errFork
		case !list[i].Agreed:
			list[i] = n
		}
	}
	filed := slices.Clone(m.papers)
	for _, p := range papers {
		i := slices.IndexFunc(filed, func(o market.Paper) bool { return o.Lease == p.Lease && o.Kind == p.Kind && o.Seq == p.Seq })
		switch {
		case p.Lease != l.ID:
			return errFork
		case i < 0:
			filed = append(filed, p)
		case p.Kind == market.KindPayment && !bytes.Equal(bodyOf(filed[i].Sealed), bodyOf(p.Sealed)):
			return errFork
		default:
			filed[i] = p
		}
	}
	r.Lease = l
	m.records[l.ID], m.receipts[l.ID], m.papers = kept(r), list, filed
	return nil
}

func (m *memoryStore) Papers(_ context.Context, id market.LeaseID, kind market.Kind) ([]market.Paper, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []market.Paper
	for _, p := range m.papers {
		if p.Lease == id && p.Kind == kind {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b market.Paper) int { return int(a.Seq) - int(b.Seq) })
	return list, nil
}

func (m *memoryStore) PapersOf(_ context.Context, kind market.Kind) ([]market.Paper, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.papers), func(p market.Paper) bool { return p.Kind != kind }), nil
}

func (m *memoryStore) Conclude(ctx context.Context, l market.Lease, outcome []byte) error {
	if err := m.Save(ctx, l); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[l.ID]
	r.Outcome = outcome
	m.records[l.ID] = r
	return nil
}

func (m *memoryStore) Extend(ctx context.Context, l market.Lease, seq uint32, sealed []byte) error {
	if err := m.Save(ctx, l); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if int(seq) != len(m.extended[l.ID])+1 {
		return errFork
	}
	m.extended[l.ID] = append(m.extended[l.ID], sealed)
	return nil
}

func (m *memoryStore) Extensions(_ context.Context, id market.LeaseID) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.extended[id], nil
}

func bodyOf(raw []byte) []byte {
	s, err := market.DecodeSealed(raw)
	if err != nil {
		panic(err)
	}
	return s.Body
}

func (m *memoryStore) Record(_ context.Context, id market.LeaseID) (host.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[id]
	if !ok {
		return r, market.NewError(market.CodeLeaseUnknown, "lease", id.Short())
	}
	return r, nil
}

func (m *memoryStore) Records(_ context.Context, closed bool) ([]host.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []host.Record
	for _, id := range m.order {
		if r := m.records[id]; closed || !r.Lease.Closed() {
			list = append(list, r)
		}
	}
	return list, nil
}

func (m *memoryStore) Receipts(_ context.Context, id market.LeaseID, after uint32) ([]host.Receipt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []host.Receipt
	for _, r := range m.receipts[id] {
		if r.Seq > after {
			list = append(list, r)
		}
	}
	return list, nil
}

func (m *memoryStore) Settings(context.Context) (host.Settings, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings, nil
}

func (m *memoryStore) SaveSettings(ctx context.Context, s host.Settings) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.write(ctx); err != nil {
		return err
	}
	m.settings = s
	return nil
}

// backup is a copy of a store.
type backup struct {
	store *memoryStore
	heads map[market.LeaseID]uint32
}

// copy returns what the store holds now.
func (m *memoryStore) copy() backup {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := newMemoryStore()
	b := backup{store: c, heads: map[market.LeaseID]uint32{}}
	c.order, c.settings = slices.Clone(m.order), m.settings
	for id, r := range m.records {
		c.records[id], c.receipts[id], c.extended[id] = r, slices.Clone(m.receipts[id]), slices.Clone(m.extended[id])
		b.heads[id] = r.Lease.Head.Seq
	}
	c.papers = slices.Clone(m.papers)
	return b
}

// putBack makes the store what it was when it was copied, as a restore does: its open leases are in doubt.
func (m *memoryStore) putBack(b backup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := b.store
	m.order, m.records, m.receipts, m.extended, m.settings, m.papers = c.order, c.records, c.receipts, c.extended, c.settings, c.papers
	for id, r := range m.records {
		if !r.Lease.Closed() {
			r.Lease.Unsure = true
			m.records[id] = r
		}
	}
}

// tornStore is a store whose last write before it breaks is there, and nobody hears of it: the program dies between the two.
type tornStore struct{ *memoryStore }

// torn takes a write that was done and reports the death.
func (s tornStore) torn(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.left == 1 {
		s.left, s.broken = 0, s.after
		return s.after
	}
	return err
}

func (s tornStore) Sign(ctx context.Context, l market.Lease, sealed []byte, env market.Env) error {
	return s.torn(s.memoryStore.Sign(ctx, l, sealed, env))
}

func (s tornStore) Save(ctx context.Context, l market.Lease, receipts ...host.Receipt) error {
	return s.torn(s.memoryStore.Save(ctx, l, receipts...))
}

func (s tornStore) File(ctx context.Context, l market.Lease, receipts []host.Receipt, papers []market.Paper) error {
	return s.torn(s.memoryStore.File(ctx, l, receipts, papers))
}

func (s tornStore) Conclude(ctx context.Context, l market.Lease, outcome []byte) error {
	return s.torn(s.memoryStore.Conclude(ctx, l, outcome))
}
