package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/renter"
	"haggle/internal/store"
	"haggle/market"
)

// conformAgent is what every renter.Store must do. again closes the store and opens what is left of it.
func conformAgent(t *testing.T, s renter.Store, again func() renter.Store) {
	ctx := t.Context()
	first, second := bidRecord(1), bidRecord(2)
	must(t, s.Save(ctx, first))
	must(t, s.Save(ctx, second))
	instance, err := s.Instance(ctx)
	must(t, err)
	s = again()
	if same, err := s.Instance(ctx); err != nil || same != instance || same == (market.Nonce{}) {
		t.Errorf("instance after a restart is %v, %v, want %v", same, err, instance)
	}
	check := func(want ...renter.Record) {
		t.Helper()
		got, err := s.Records(ctx)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("records: %v (-want +got):\n%s", err, diff)
		}
	}
	check(second, first)

	first = leaseRecord(1)
	must(t, s.Save(ctx, first))
	second.State.Refused = &market.Error{Code: market.CodeSlotTaken, Args: []market.Arg{{Name: "free", Value: "0"}}}
	must(t, s.Save(ctx, second))
	second.Env = nil // of no use to a refused bid
	s = again()
	check(second, first)

	wantError(t, s.Save(ctx, bidRecord(1)), store.ErrFork)
	mixed := first
	mixed.Sealed = leaseRecord(2).Sealed
	wantError(t, s.Save(ctx, mixed), store.ErrFork)

	exit := market.Exit{Reason: market.ReasonCompleted, Code: 3}
	first.State.Job, first.State.Exit = market.JobEnded, &exit
	must(t, s.Save(ctx, first))
	first.Env = nil
	check(second, first)
	if got, err := s.Record(ctx, first.Lease); err != nil || !cmp.Equal(first, got) {
		t.Errorf("record: %v, %s", err, cmp.Diff(first, got))
	}
	without := first
	first.Outcome = []byte("signed")
	must(t, s.Save(ctx, first))
	must(t, s.Save(ctx, without)) // what a rig signed is not forgotten
	s = again()
	check(second, first)
}

func conformAgentReceipts(t *testing.T, s renter.Store, again func() renter.Store) {
	ctx := t.Context()
	r := leaseRecord(1)
	must(t, s.Save(ctx, r))
	receipt := func(seq uint32, billed int64) renter.Receipt {
		return renter.Receipt{Lease: r.Lease, Seq: seq, Sealed: sealReceipt(r.Lease, seq, billed, true)}
	}
	if list, err := s.Receipts(ctx, r.Lease); err != nil || len(list) != 0 {
		t.Errorf("before any receipt: got %v, %v", list, err)
	}
	stale := r
	r.Head = market.Head{Seq: 1, BilledMs: 10}
	must(t, s.Sign(ctx, r, receipt(1, 10)))
	must(t, s.Sign(ctx, r, receipt(1, 10)))
	r.Head = market.Head{Seq: 2, BilledMs: 20}
	must(t, s.Sign(ctx, r, receipt(2, 20)))

	forked := r
	forked.State.Disputed = true
	wantError(t, s.Sign(ctx, forked, receipt(2, 21)), store.ErrFork)
	other := receipt(3, 30)
	other.Lease = leaseRecord(2).Lease
	wantError(t, s.Sign(ctx, forked, other), store.ErrFork)
	stale.State.BilledMs = 25
	must(t, s.Save(ctx, stale))
	r.State.BilledMs = 25

	s = again()
	got, err := s.Receipts(ctx, r.Lease)
	if diff := cmp.Diff([]renter.Receipt{receipt(1, 10), receipt(2, 20)}, got); err != nil || diff != "" {
		t.Errorf("receipts: %v (-want +got):\n%s", err, diff)
	}
	if got, err := s.Record(ctx, r.Lease); err != nil || !cmp.Equal(r, got) {
		t.Errorf("a head must stay, and a refused change must leave nothing: %v, %s", err, cmp.Diff(r, got))
	}

	if list, err := s.Rejects(ctx, r.Lease); err != nil || len(list) != 0 {
		t.Errorf("before any refusal: got %v, %v", list, err)
	}
	r.State.Disputed = true
	must(t, s.Dispute(ctx, r, 3, []byte("no")))
	must(t, s.Dispute(ctx, r, 3, []byte("no")))
	wantError(t, s.Dispute(ctx, r, 3, []byte("never")), store.ErrFork)
	list, err := s.Rejects(ctx, r.Lease)
	if diff := cmp.Diff([][]byte{[]byte("no")}, list); err != nil || diff != "" {
		t.Errorf("refusals: %v (-want +got):\n%s", err, diff)
	}
}

// conformAgentInside: what is inside of a lease and its record change each on its own.
func conformAgentInside(t *testing.T, s renter.Store, again func() renter.Store) {
	ctx := t.Context()
	r := leaseRecord(1)
	must(t, s.Save(ctx, r))
	stale := r
	r.Inside.Name, r.Inside.Uploaded = "other", true
	r.Inside.Failed = &market.Error{Code: market.CodeFileNotFound}
	r.Inside.Checkpoints = []renter.Kept{{Seq: 1, AtMs: 2, Bytes: 3, Digest: "d", Where: []string{"renter"}}}
	must(t, s.SaveInside(ctx, r.Bid, r.Inside))
	stale.State.BilledMs = 7
	must(t, s.Save(ctx, stale))
	r.State.BilledMs = 7
	s = again()
	if got, err := s.Record(ctx, r.Lease); err != nil || !cmp.Equal(r, got) {
		t.Errorf("record: %v, %s", err, cmp.Diff(r, got))
	}
	wantError(t, s.SaveInside(ctx, market.Hash{9}, r.Inside), unknownLease())
}

func conformAgentExtensions(t *testing.T, s renter.Store, again func() renter.Store) {
	ctx := t.Context()
	r := leaseRecord(1)
	must(t, s.Save(ctx, r))
	if list, err := s.Extensions(ctx, r.Lease); err != nil || len(list) != 0 {
		t.Errorf("before any extension: got %v, %v", list, err)
	}
	first, second := sealExtension(r.Lease, 1, 5), sealExtension(r.Lease, 2, 6)
	r.State.Extension = &market.Extension{Lease: r.Lease, Seq: 1, Budget: 5}
	must(t, s.Extend(ctx, r, 1, first))
	must(t, s.Extend(ctx, r, 1, first))
	must(t, s.Extend(ctx, r, 2, second))
	forked := r
	forked.State.Disputed = true
	wantError(t, s.Extend(ctx, forked, 2, sealExtension(r.Lease, 2, 7)), store.ErrFork)
	s = again()
	list, err := s.Extensions(ctx, r.Lease)
	if diff := cmp.Diff([][]byte{first, second}, list); err != nil || diff != "" {
		t.Errorf("extensions: %v (-want +got):\n%s", err, diff)
	}
	if got, err := s.Record(ctx, r.Lease); err != nil || !cmp.Equal(r, got) {
		t.Errorf("a refused change must leave nothing: %v, %s", err, cmp.Diff(r, got))
	}
}

func conformUnknownAgentLease(t *testing.T, s renter.Store, _ func() renter.Store) {
	ctx := t.Context()
	must(t, s.Save(ctx, bidRecord(1))) // a bid without a lease is no lease
	id := leaseRecord(1).Lease
	_, err := s.Record(ctx, id)
	wantError(t, err, unknownLease())
	_, err = s.Receipts(ctx, id)
	wantError(t, err, unknownLease())
	_, err = s.Rejects(ctx, id)
	wantError(t, err, unknownLease())
	_, err = s.Extensions(ctx, id)
	wantError(t, err, unknownLease())
}

func TestAgentKeepsTheRulesOfARentersStore(t *testing.T) {
	for name, conform := range map[string]func(*testing.T, renter.Store, func() renter.Store){
		"bids and leases": conformAgent,
		"receipts":        conformAgentReceipts,
		"the inside":      conformAgentInside,
		"extensions":      conformAgentExtensions,
		"unknown leases":  conformUnknownAgentLease,
	} {
		t.Run(name, func(t *testing.T) {
			p := path(t)
			a := openAgent(t, p)
			conform(t, a, func() renter.Store {
				must(t, a.Close())
				a = openAgent(t, p)
				return a
			})
		})
	}
}
