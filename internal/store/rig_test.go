package store_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/host"
	"haggle/internal/store"
	"haggle/market"
)

// conformRig is what every host.Store must do. again closes the store and opens what is left of it.
func conformRig(t *testing.T, s host.Store, again func() host.Store) {
	ctx := t.Context()
	first, second := rigRecord(1), rigRecord(2)
	want := []host.Record{first, second}

	got, granted, err := s.Granted(ctx, first.Lease.Terms.Bid)
	if err != nil || granted {
		t.Fatalf("before any lease: got %v, %v, %v", got, granted, err)
	}
	must(t, s.Create(ctx, first))
	must(t, s.Create(ctx, second))
	wantError(t, s.Create(ctx, first), store.ErrGranted)

	instance, err := s.Instance(ctx)
	must(t, err)
	s = again()
	if same, err := s.Instance(ctx); err != nil || same != instance {
		t.Errorf("instance after a restart is %v, %v, want %v", same, err, instance)
	}
	records, err := s.Records(ctx, false)
	must(t, err)
	if diff := cmp.Diff(want, records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	got, granted, err = s.Granted(ctx, second.Lease.Terms.Bid)
	if diff := cmp.Diff(second, got); err != nil || !granted || diff != "" {
		t.Errorf("granted: %v, %v (-want +got):\n%s", granted, err, diff)
	}
	signed := market.SealTerms(network, rigKey(), first.Lease.Terms).Sign(market.RoleRenter, renterKey()).Encode()
	first.Lease.Job, first.Sealed, first.Env = market.JobPreparing, signed, market.Env{"A=1", "B=2"}
	must(t, s.Sign(ctx, first.Lease, first.Sealed, first.Env))
	wantError(t, s.Sign(ctx, first.Lease, second.Sealed, nil), store.ErrFork)
	got, err = s.Record(ctx, first.Lease.ID)
	if diff := cmp.Diff(first, got); err != nil || diff != "" {
		t.Errorf("record: %v (-want +got):\n%s", err, diff)
	}
	first.Lease.Job, first.Lease.Debt, first.Lease.Gone = market.JobEnded, market.DebtFinal, true
	must(t, s.Save(ctx, first.Lease))
	open, err := s.Records(ctx, false)
	must(t, err)
	all, err := s.Records(ctx, true)
	must(t, err)
	if len(open) != 1 || open[0].Lease.ID != second.Lease.ID || len(all) != 2 || all[0].Lease.ID != first.Lease.ID {
		t.Errorf("a closed lease: %d open, %d in all", len(open), len(all))
	}
	if all[0].Env != nil {
		t.Errorf("the environment outlived its job: %v", all[0].Env)
	}
}

func conformUnknownRigLease(t *testing.T, s host.Store) {
	ctx := t.Context()
	r := rigRecord(9)
	_, err := s.Record(ctx, r.Lease.ID)
	wantError(t, err, unknownLease())
	_, err = s.Receipts(ctx, r.Lease.ID, 0)
	wantError(t, err, unknownLease())
	wantError(t, s.Save(ctx, r.Lease), unknownLease())
	wantError(t, s.Sign(ctx, r.Lease, r.Sealed, nil), unknownLease())
}

func conformRigReceipts(t *testing.T, s host.Store) {
	ctx := t.Context()
	r := rigRecord(1)
	must(t, s.Create(ctx, r))
	id := r.Lease.ID
	receipt := func(seq uint32, billed int64, agreed bool) host.Receipt {
		return host.Receipt{Lease: id, Seq: seq, Sealed: sealReceipt(id, seq, billed, agreed), Agreed: agreed}
	}
	if list, err := s.Receipts(ctx, id, 0); err != nil || len(list) != 0 {
		t.Errorf("before any receipt: got %v, %v", list, err)
	}
	must(t, s.Save(ctx, r.Lease, receipt(1, 10, false)))
	must(t, s.Save(ctx, r.Lease, receipt(1, 10, true), receipt(2, 20, false)))

	after := r.Lease
	after.Meter.BilledMs = 99
	wantError(t, s.Save(ctx, after, receipt(3, 30, false), receipt(2, 21, false)), store.ErrFork)
	wantError(t, s.Save(ctx, after, receipt(2, 21, true)), store.ErrFork)
	wantError(t, s.Save(ctx, after, receipt(1, 11, true)), store.ErrFork)
	other := receipt(4, 1, false)
	other.Lease = rigRecord(2).Lease.ID
	wantError(t, s.Save(ctx, after, other), store.ErrFork)
	must(t, s.Save(ctx, r.Lease, receipt(1, 10, false))) // a draft that comes late

	want := []host.Receipt{receipt(1, 10, true), receipt(2, 20, false)}
	got, err := s.Receipts(ctx, id, 0)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("receipts: %v (-want +got):\n%s", err, diff)
	}
	got, err = s.Receipts(ctx, id, 1)
	if diff := cmp.Diff(want[1:], got); err != nil || diff != "" {
		t.Errorf("receipts after the first: %v (-want +got):\n%s", err, diff)
	}
	if kept, err := s.Record(ctx, id); err != nil || kept.Lease.Meter.BilledMs != 0 {
		t.Errorf("a refused change was kept in part: %v, %v", kept.Lease.Meter, err)
	}
}

func conformOutcome(t *testing.T, s host.Store, again func() host.Store) {
	ctx := t.Context()
	r := rigRecord(1)
	must(t, s.Create(ctx, r))
	if got, err := s.Record(ctx, r.Lease.ID); err != nil || got.Outcome != nil {
		t.Errorf("a fresh lease has the outcome %x, %v", got.Outcome, err)
	}
	r.Lease.Job, r.Lease.WipedAt = market.JobEnded, 7
	must(t, s.Conclude(ctx, r.Lease, []byte("first")))
	must(t, s.Save(ctx, r.Lease)) // which says nothing of it
	s = again()
	got, err := s.Record(ctx, r.Lease.ID)
	if err != nil || string(got.Outcome) != "first" || got.Lease.WipedAt != 7 {
		t.Errorf("the outcome is %q at %d, %v", got.Outcome, got.Lease.WipedAt, err)
	}
	must(t, s.Conclude(ctx, r.Lease, []byte("second")))
	if got, err := s.Record(ctx, r.Lease.ID); err != nil || string(got.Outcome) != "second" {
		t.Errorf("the outcome is %q, %v", got.Outcome, err)
	}
	if err := s.Conclude(ctx, rigRecord(2).Lease, []byte("x")); market.CodeOf(err) != market.CodeLeaseUnknown {
		t.Errorf("an unknown lease is concluded with %v", err)
	}
}

func conformSettings(t *testing.T, s host.Store, again func() host.Store) {
	ctx := t.Context()
	if got, err := s.Settings(ctx); err != nil || !cmp.Equal(got, host.Settings{}) {
		t.Errorf("fresh settings are %v, %v", got, err)
	}
	want := host.Settings{
		Paused: true, Draining: true, Prices: market.Prices{Currency: "EUR", Slot: 5}, OfferSeq: 1 << 41,
		Trusted: []host.Trusted{
			{Owner: market.Key{1}, Name: "ann", Since: 5},
			{Owner: market.Key{2}, Credit: new(int64(0)), Guarantor: true}, // no credit is not the rig's own rule
		},
		Seen:     host.Seen{Boot: market.Nonce{3}, BootMs: 4, Wall: 5},
		Withheld: []host.Withheld{{UUID: "GPU-1", Why: "taken back", Since: 6}},
	}
	must(t, s.SaveSettings(ctx, want))
	s = again()
	if got, err := s.Settings(ctx); err != nil || !cmp.Equal(got, want) {
		t.Errorf("settings are %v, %v, want %v", got, err, want)
	}
	must(t, s.SaveSettings(ctx, host.Settings{OfferSeq: 3}))
	if got, err := s.Settings(ctx); err != nil || !cmp.Equal(got, host.Settings{OfferSeq: 1 << 41}) {
		t.Errorf("settings are %v, %v, want defaults and the highest sequence number", got, err)
	}
}

func conformExtensions(t *testing.T, s host.Store, again func() host.Store) {
	ctx := t.Context()
	r := rigRecord(1)
	must(t, s.Create(ctx, r))
	id := r.Lease.ID
	sealed := func(seq uint32, add int64) (market.Extension, []byte) {
		e := market.Extension{Lease: id, Seq: seq, DurationMs: r.Lease.Terms.DurationMs + add, Budget: 3_000_000, Deadline: 1}
		return e, market.Consent(market.SealExtension(network, renterKey(), e), rigKey()).Encode()
	}
	if list, err := s.Extensions(ctx, id); err != nil || len(list) != 0 {
		t.Errorf("before any extension: got %x, %v", list, err)
	}
	var want [][]byte
	for seq := range uint32(11) { // as numbers, not as words
		e, raw := sealed(seq+1, int64(seq+1)*1000)
		r.Lease.Extension = &e
		must(t, s.Extend(ctx, r.Lease, e.Seq, raw))
		must(t, s.Extend(ctx, r.Lease, e.Seq, raw)) // a repetition
		want = append(want, raw)
	}
	forked := r.Lease
	forked.Meter.BilledMs = 99
	_, fork := sealed(3, 7)
	wantError(t, s.Extend(ctx, forked, 3, fork), store.ErrFork)
	s = again()
	got, err := s.Extensions(ctx, id)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("extensions: %v (-want +got):\n%s", err, diff)
	}
	kept, err := s.Record(ctx, id)
	if diff := cmp.Diff(r, kept); err != nil || diff != "" {
		t.Errorf("record: %v (-want +got):\n%s", err, diff)
	}
	other := rigRecord(2)
	_, err = s.Extensions(ctx, other.Lease.ID)
	wantError(t, err, unknownLease())
	wantError(t, s.Extend(ctx, other.Lease, 1, want[0]), unknownLease())
}

// conformKept: a lease whose disk is kept is as alive as one whose job runs.
func conformKept(t *testing.T, s host.Store, again func() host.Store) {
	ctx := t.Context()
	r := rigRecord(1)
	must(t, s.Create(ctx, r))
	r.Lease.Job, r.Lease.Attempt, r.Lease.Disk, r.Lease.PausedMs, r.Lease.Meter.KeptMs = market.JobPaused, 3, 2, 7, 9
	r.Lease.Exit, r.Lease.Base = &market.Exit{Reason: market.ReasonRenter, Code: 143}, market.Base{BilledMs: 1, In: 2, Out: 3}
	must(t, s.Save(ctx, r.Lease))
	s = again()
	open, err := s.Records(ctx, false)
	if diff := cmp.Diff([]host.Record{r}, open); err != nil || diff != "" {
		t.Errorf("records: %v (-want +got):\n%s", err, diff)
	}
}

func TestRigKeepsTheRulesOfAHostsStore(t *testing.T) {
	for name, conform := range map[string]func(*testing.T, host.Store, func() host.Store){
		"leases":         conformRig,
		"unknown leases": func(t *testing.T, s host.Store, _ func() host.Store) { conformUnknownRigLease(t, s) },
		"receipts":       func(t *testing.T, s host.Store, _ func() host.Store) { conformRigReceipts(t, s) },
		"settings":       conformSettings,
		"outcomes":       conformOutcome,
		"extensions":     conformExtensions,
		"kept disks":     conformKept,
	} {
		t.Run(name, func(t *testing.T) {
			p := path(t)
			r := openRig(t, p)
			conform(t, r, func() host.Store {
				must(t, r.Close())
				r = openRig(t, p)
				return r
			})
		})
	}
}

func TestManyGoroutinesMayUseARigsStore(t *testing.T) {
	s := openRig(t, path(t))
	var group sync.WaitGroup
	for n := range byte(16) {
		group.Go(func() {
			r := rigRecord(n)
			if err := s.Create(t.Context(), r); err != nil {
				t.Error(err)
			}
			for seq := range uint32(4) {
				err := s.Save(t.Context(), r.Lease, host.Receipt{Lease: r.Lease.ID, Seq: seq + 1, Sealed: sealReceipt(r.Lease.ID, seq+1, 1, false)})
				if err != nil {
					t.Error(err)
				}
				if _, err := s.Records(t.Context(), true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if list, err := s.Records(t.Context(), true); err != nil || len(list) != 16 {
		t.Errorf("got %d leases, %v, want 16", len(list), err)
	}
}

func TestAnEnvironmentLeavesTheFileWithItsJob(t *testing.T) {
	p := path(t)
	s := openRig(t, p)
	r := rigRecord(1)
	r.Env = market.Env{"TOKEN=" + strings.Repeat("secret-token ", 1000)} // more than a page, so that whole pages come free
	must(t, s.Create(t.Context(), r))
	r.Lease.Job = market.JobEnded
	must(t, s.Save(t.Context(), r.Lease))
	for _, name := range []string{p, p + "-wal"} {
		data, err := os.ReadFile(name)
		must(t, err)
		if strings.Contains(string(data), "secret-token") {
			t.Errorf("%s still holds the environment's value", name)
		}
	}
}
