package renter_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"haggle/internal/renter"
	"haggle/market"
)

var errFork = errors.New("the store holds other bytes of this number")

// memStore is a renter.Store in memory. It keeps the rules: a receipt never changes, and a record's head only grows.
type memStore struct {
	mu       sync.Mutex
	order    []market.Hash
	records  map[market.Hash]renter.Record
	receipts map[market.LeaseID][]renter.Receipt
	rejects  map[market.LeaseID][][]byte
	extended map[market.LeaseID][][]byte
	papers   []market.Paper
	settings renter.Settings
	saves    int
	broken   error // what every write returns
}

func newMemStore() *memStore {
	return &memStore{
		records:  map[market.Hash]renter.Record{},
		receipts: map[market.LeaseID][]renter.Receipt{},
		rejects:  map[market.LeaseID][][]byte{},
		extended: map[market.LeaseID][][]byte{},
	}
}

func (s *memStore) Instance(context.Context) (market.Nonce, error) { return market.Nonce{1}, nil }

func (s *memStore) Save(ctx context.Context, r renter.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.save(ctx, r)
}

func (s *memStore) save(ctx context.Context, r renter.Record) error {
	if err := errors.Join(ctx.Err(), s.broken); err != nil {
		return err
	}
	old, ok := s.records[r.Bid]
	switch {
	case !ok:
		s.order = append([]market.Hash{r.Bid}, s.order...)
	case !old.Lease.IsZero() && old.Lease != r.Lease:
		return errFork
	case r.Head.Seq < old.Head.Seq:
		r.Head = old.Head
	}
	if ok {
		r.Inside = old.Inside
	}
	s.saves++
	s.records[r.Bid] = r
	return nil
}

func (s *memStore) Sign(ctx context.Context, r renter.Record, receipt renter.Receipt) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, old := range s.receipts[r.Lease] {
		if old.Seq == receipt.Seq && !sameBody(old.Sealed, receipt.Sealed) {
			return errFork
		}
	}
	if err := s.save(ctx, r); err != nil {
		return err
	}
	s.receipts[r.Lease] = append(s.receipts[r.Lease], receipt)
	return nil
}

func (s *memStore) Dispute(ctx context.Context, r renter.Record, _ uint32, reject []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.save(ctx, r); err != nil {
		return err
	}
	s.rejects[r.Lease] = append(s.rejects[r.Lease], reject)
	return nil
}

func (s *memStore) File(ctx context.Context, r renter.Record, papers ...market.Paper) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	filed := slices.Clone(s.papers)
	for _, p := range papers {
		i := slices.IndexFunc(filed, func(o market.Paper) bool { return o.Lease == p.Lease && o.Kind == p.Kind && o.Seq == p.Seq })
		switch {
		case p.Lease != r.Lease:
			return errFork
		case i < 0:
			filed = append(filed, p)
		case p.Kind == market.KindPayment && !sameBody(filed[i].Sealed, p.Sealed):
			return errFork
		default:
			filed[i] = p
		}
	}
	if err := s.save(ctx, r); err != nil {
		return err
	}
	s.papers = filed
	return nil
}

func (s *memStore) Papers(_ context.Context, id market.LeaseID, kind market.Kind) ([]market.Paper, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []market.Paper
	for _, p := range s.papers {
		if p.Lease == id && p.Kind == kind {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b market.Paper) int { return int(a.Seq) - int(b.Seq) })
	return list, nil
}

func (s *memStore) Settings(context.Context) (renter.Settings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings, nil
}

func (s *memStore) SaveSettings(ctx context.Context, set renter.Settings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(ctx.Err(), s.broken); err != nil {
		return err
	}
	s.settings = set
	return nil
}

func (s *memStore) SaveInside(ctx context.Context, bid market.Hash, in renter.Inside) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(ctx.Err(), s.broken); err != nil {
		return err
	}
	r, ok := s.records[bid]
	if !ok {
		return market.NewError(market.CodeLeaseUnknown, "lease", bid.String()[:8])
	}
	s.saves++
	r.Inside = in
	s.records[bid] = r
	return nil
}

func (s *memStore) Extend(ctx context.Context, r renter.Record, seq uint32, extension []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(seq) != len(s.extended[r.Lease])+1 {
		return errFork
	}
	if err := s.save(ctx, r); err != nil {
		return err
	}
	s.extended[r.Lease] = append(s.extended[r.Lease], extension)
	return nil
}

func (s *memStore) Extensions(_ context.Context, id market.LeaseID) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.extended[id]), nil
}

func (s *memStore) Record(_ context.Context, id market.LeaseID) (renter.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.Lease == id {
			return r, nil
		}
	}
	return renter.Record{}, market.NewError(market.CodeLeaseUnknown, "lease", id.Short())
}

func (s *memStore) Records(context.Context) ([]renter.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []renter.Record
	for _, bid := range s.order {
		list = append(list, s.records[bid])
	}
	return list, nil
}

func (s *memStore) Receipts(_ context.Context, id market.LeaseID) ([]renter.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.receipts[id]), nil
}

func (s *memStore) Rejects(_ context.Context, id market.LeaseID) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rejects[id]), nil
}

func sameBody(a, b []byte) bool {
	x, errX := market.DecodeSealed(a)
	y, errY := market.DecodeSealed(b)
	return errX == nil && errY == nil && x.Hash() == y.Hash()
}
