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
	settings host.Settings
	broken   error // what every write returns
	writes   int
}

var errFork = errors.New("other bytes at this number")

func newMemoryStore() *memoryStore {
	return &memoryStore{records: map[market.LeaseID]host.Record{}, receipts: map[market.LeaseID][]host.Receipt{}, extended: map[market.LeaseID][][]byte{}}
}

func (m *memoryStore) Instance(context.Context) (market.Nonce, error) { return market.Nonce{1}, nil }

func (m *memoryStore) write(ctx context.Context) error {
	m.writes++
	return errors.Join(m.broken, ctx.Err())
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
	r.Lease = l
	m.records[l.ID], m.receipts[l.ID] = kept(r), list
	return nil
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
