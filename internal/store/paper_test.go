package store_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/host"
	"haggle/internal/renter"
	"haggle/internal/store"
	"haggle/market"
)

// paymentOf makes a payment of a lease; amount decides its content.
func paymentOf(id market.LeaseID, seq uint32, amount market.Micro) market.Paper {
	sealed := market.SealPayment(network, rigKey(), market.Payment{Lease: id, Seq: seq, Amount: amount, Total: amount})
	return market.Paper{Lease: id, Kind: market.KindPayment, Seq: seq, Sealed: sealed.Encode()}
}

// rejectOf makes a refusal of a receipt; total decides its content.
func rejectOf(id market.LeaseID, seq uint32, total market.Micro) market.Paper {
	sealed := market.SealReject(network, renterKey(), market.Reject{Lease: id, Seq: seq, Total: total})
	return market.Paper{Lease: id, Kind: market.KindReject, Seq: seq, Sealed: sealed.Encode()}
}

// papers is what rigs' and agents' stores do alike.
type papers interface {
	Papers(ctx context.Context, id market.LeaseID, kind market.Kind) ([]market.Paper, error)
	PapersOf(ctx context.Context, kind market.Kind) ([]market.Paper, error)
}

// conformPapers is what both must do. file files papers of the first or the second lease, together with a state that says spent;
// spent is what the state of the first says. again closes the store and opens what is left of it.
func conformPapers(t *testing.T, one, two market.LeaseID, s papers,
	file func(second bool, spent int64, papers ...market.Paper) error, spent func() int64, again func() papers,
) {
	ctx := t.Context()
	check := func(want []market.Paper, got []market.Paper, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("papers: %v (-want +got):\n%s", err, diff)
		}
	}
	list, err := s.Papers(ctx, one, market.KindPayment)
	check(nil, list, err)
	list, err = s.PapersOf(ctx, market.KindPayment)
	check(nil, list, err)

	must(t, file(false, 1, paymentOf(one, 2, 20), rejectOf(one, 1, 1)))
	must(t, file(true, 1, paymentOf(two, 1, 7)))
	must(t, file(false, 2, paymentOf(one, 1, 10), paymentOf(one, 2, 20))) // one of them again
	must(t, file(false, 3, rejectOf(one, 1, 2)))
	must(t, file(false, 4))
	wantError(t, file(false, 5, rejectOf(one, 2, 2), paymentOf(one, 2, 21)), store.ErrFork)
	wantError(t, file(false, 5, paymentOf(two, 3, 1)), store.ErrFork)
	if err := file(false, 5, market.Paper{Lease: one, Kind: market.KindNotice, Sealed: []byte("no record")}); err == nil {
		t.Error("bytes that nobody sealed were filed")
	}

	s = again()
	if got := spent(); got != 4 {
		t.Errorf("the state says %d: what is refused must leave nothing, and what is filed all", got)
	}
	list, err = s.Papers(ctx, one, market.KindPayment)
	check([]market.Paper{paymentOf(one, 1, 10), paymentOf(one, 2, 20)}, list, err)
	list, err = s.Papers(ctx, one, market.KindReject)
	check([]market.Paper{rejectOf(one, 1, 2)}, list, err)
	list, err = s.Papers(ctx, two, market.KindReject)
	check(nil, list, err)
	list, err = s.PapersOf(ctx, market.KindPayment)
	check([]market.Paper{paymentOf(one, 2, 20), paymentOf(two, 1, 7), paymentOf(one, 1, 10)}, list, err)
	_, err = s.Papers(ctx, market.LeaseID{9}, market.KindPayment)
	wantError(t, err, unknownLease())
}

func TestARigKeepsPapers(t *testing.T) {
	p := path(t)
	s := openRig(t, p)
	one, two := rigRecord(1), rigRecord(2)
	must(t, s.Create(t.Context(), one))
	must(t, s.Create(t.Context(), two))
	conformPapers(t, one.Lease.ID, two.Lease.ID, s,
		func(second bool, spent int64, papers ...market.Paper) error {
			l := one.Lease
			if second {
				l = two.Lease
			}
			l.Meter.BilledMs = spent
			return s.File(t.Context(), l, nil, papers)
		},
		func() int64 {
			r, err := s.Record(t.Context(), one.Lease.ID)
			must(t, err)
			return r.Lease.Meter.BilledMs
		},
		func() papers {
			must(t, s.Close())
			s = openRig(t, p)
			return s
		})
	other := rigRecord(9).Lease
	wantError(t, s.File(t.Context(), other, nil, []market.Paper{paymentOf(other.ID, 1, 1)}), unknownLease())
	// Receipts go with papers, or not at all.
	receipt := receiptOf(one, 1, 10)
	wantError(t, s.File(t.Context(), one.Lease, []host.Receipt{receipt}, []market.Paper{paymentOf(one.Lease.ID, 1, 11)}), store.ErrFork)
	must(t, s.File(t.Context(), two.Lease, []host.Receipt{receiptOf(two, 1, 10)}, []market.Paper{paymentOf(two.Lease.ID, 2, 11)}))
	for r, want := range map[*host.Record]int{&one: 0, &two: 1} {
		if list, err := s.Receipts(t.Context(), r.Lease.ID, 0); err != nil || len(list) != want {
			t.Errorf("%d receipts, %v, want %d", len(list), err, want)
		}
	}
}

func TestAnAgentKeepsPapers(t *testing.T) {
	p := path(t)
	a := openAgent(t, p)
	one, two := leaseRecord(1), leaseRecord(2)
	must(t, a.Save(t.Context(), one))
	conformPapers(t, one.Lease, two.Lease, a,
		func(second bool, spent int64, papers ...market.Paper) error {
			r := one
			if second {
				r = two // which is new to the store
			}
			r.State.BilledMs = spent
			return a.File(t.Context(), r, papers...)
		},
		func() int64 {
			r, err := a.Record(t.Context(), one.Lease)
			must(t, err)
			return r.State.BilledMs
		},
		func() papers {
			must(t, a.Close())
			a = openAgent(t, p)
			return a
		})
	wantError(t, a.File(t.Context(), bidRecord(3), paymentOf(market.LeaseID{}, 1, 1)), store.ErrFork)
}

func TestAnAgentKeepsWhatTheUserChose(t *testing.T) {
	p := path(t)
	a := openAgent(t, p)
	if got, err := a.Settings(t.Context()); err != nil || !cmp.Equal(got, renter.Settings{}) {
		t.Errorf("fresh settings are %v, %v", got, err)
	}
	want := renter.Settings{
		Budgets:  []renter.Budget{{Currency: "USD", Day: 5, Month: 9}},
		Deputies: []renter.Deputy{{Key: market.Key{1}, Name: "nas", Cap: 7}},
	}
	must(t, a.SaveSettings(t.Context(), renter.Settings{Deputies: want.Deputies}))
	must(t, a.SaveSettings(t.Context(), want))
	must(t, a.Close())
	if got, err := openAgent(t, p).Settings(t.Context()); err != nil || !cmp.Equal(got, want) {
		t.Errorf("settings are %v, %v, want %v", got, err, want)
	}
}
