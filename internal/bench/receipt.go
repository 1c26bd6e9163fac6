package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"haggle/internal/host"
	"haggle/internal/store"
	"haggle/market"
	"haggle/market/markettest"
)

// The shape of what is measured about receipts.
const (
	thousand       = 1000             // leases
	writers        = 64               // leases whose receipts are stored at once
	storing        = 2 * time.Second  // of each side of a comparison
	paced          = 10 * time.Second // of the thousand leases
	hoursOnDisk    = 10
	receiptsAnHour = 60
)

func receiptFigures() []figure {
	return []figure{
		{name: "receipts-checked", unit: "receipts/s", peer: "two bare ed25519 verifies", aim: 0.8, atLeast: true, measure: receiptsChecked},
		{name: "receipts-stored", unit: "receipts/s", peer: "bare append and fsync", aim: 1, atLeast: true, measure: receiptsStored},
		{name: "receipts-cpu", unit: "% for 1 000 leases", peer: "% of one core", aim: 0.03, measure: receiptsCPU},
		{name: "meters-cpu", unit: "% for 1 000 leases", peer: "% of one core", aim: 0.1, measure: metersCPU},
		{name: "receipts-disk", unit: "kB a lease-hour", peer: "the most that is allowed", aim: 1, measure: receiptsDisk},
	}
}

// receiptsChecked compares all that a renter or a judge does with a receipt of a chain (decode, verify both signatures, check the
// link, the arithmetic and the budget) with verifying two signatures of the same shape alone, on one core.
func receiptsChecked(ctx context.Context) (ours, theirs float64, err error) {
	terms := markettest.Terms()
	lease := market.SealTerms(markettest.Network, markettest.Rig(), terms).ID()
	_, head := chained(lease, market.Head{}, 60_000)
	raw, _ := chained(lease, head, 120_000)
	message := make([]byte, 64)
	rig, renter := market.KeyOf(markettest.Rig()), market.KeyOf(markettest.Renter())
	one, two := ed25519.Sign(markettest.Rig(), message), ed25519.Sign(markettest.Renter(), message)
	check := func() bool {
		r, _, err := market.OpenReceipt(markettest.Network, raw, terms)
		return err == nil && market.CheckReceipt(lease, terms, head, r, 130_000) == nil
	}
	verify := func() bool { return ed25519.Verify(rig[:], message, one) && ed25519.Verify(renter[:], message, two) }
	for range rounds {
		if ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
		ours, theirs = max(ours, perSecond(check)), max(theirs, perSecond(verify))
	}
	if ours == 0 {
		return 0, 0, errors.New("a sound receipt was refused")
	}
	return ours, theirs, nil
}

// chained makes the receipt after a head, signed by both, and the head that it makes.
func chained(lease market.LeaseID, head market.Head, billedMs int64) ([]byte, market.Head) {
	r := markettest.Receipt(lease, head, billedMs, market.ReceiptInterval)
	sealed := market.SealReceipt(markettest.Network, markettest.Rig(), r).Sign(market.RoleRenter, markettest.Renter())
	return sealed.Encode(), market.HeadOf(r, sealed.Hash())
}

// book is a rig's database in a folder of its own, with leases that run.
type book struct {
	*store.Rig
	dir    string
	key    ed25519.PrivateKey
	leases []*running
}

// running is one lease of a book. due is its next receipt, and next the same as the renter will have signed it.
type running struct {
	mu    sync.Mutex
	state market.Lease
	due   market.Receipt
	next  []byte
}

// expect makes the next receipt and has the renter sign it, which is not the rig's work.
func (l *running) expect() {
	billed := l.state.Head.BilledMs + 60_000
	l.due = markettest.Receipt(l.state.ID, l.state.Head, billed, market.ReceiptInterval)
	l.next, _ = chained(l.state.ID, l.state.Head, billed)
}

// openBook makes a book. The folder is where the user's own databases would be, not in memory.
func openBook(ctx context.Context, leases int) (*book, error) {
	dir, err := os.MkdirTemp("", "haggle-bench-")
	if err != nil {
		return nil, err
	}
	b := &book{dir: dir, key: markettest.Rig()}
	if b.Rig, err = store.OpenRig(ctx, filepath.Join(dir, "rig.db")); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	offer := market.SealOffer(markettest.Network, markettest.Rig(), markettest.Offer()).Encode()
	bid := market.SealBid(markettest.Network, markettest.Renter(), markettest.Bid()).Encode()
	errs := make([]error, leases)
	var group sync.WaitGroup
	for i := range leases {
		t := markettest.Terms()
		t.Bid, t.DurationMs, t.Budget = market.HashOf([]byte{byte(i), byte(i >> 8)}), (hoursOnDisk+2)*time.Hour.Milliseconds(), 1_000_000_000
		sealed := market.SealTerms(markettest.Network, markettest.Rig(), t).Sign(market.RoleRenter, markettest.Renter())
		l := market.NewLease(sealed.ID(), t, market.Instant{Mono: 1, Wall: t.Issued}, false)
		l.Job = market.JobRunning
		b.leases = append(b.leases, &running{state: l})
		b.leases[i].expect()
		group.Go(func() {
			errs[i] = b.Create(ctx, host.Record{Lease: l, Sealed: sealed.Encode(), Offer: offer, Bid: bid, Job: markettest.Job()})
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, b.remove())
	}
	return b, nil
}

func (b *book) remove() error { return errors.Join(b.Close(), os.RemoveAll(b.dir)) }

// tick saves a lease's meter, as a rig does between receipts.
func (b *book) tick(ctx context.Context, l *running) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Meter.BilledMs += 5000
	return b.Save(ctx, l.state)
}

// receipt does what a rig does for a receipt: seal and store the draft, check what comes back from the renter, store it.
func (b *book) receipt(ctx context.Context, l *running) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, head, r := l.state.ID, l.state.Head, l.due
	draft := market.SealReceipt(markettest.Network, b.key, r)
	if err := b.Save(ctx, l.state, host.Receipt{Lease: id, Seq: r.Seq, Sealed: draft.Encode()}); err != nil {
		return err
	}
	got, sealed, err := market.OpenReceipt(markettest.Network, l.next, l.state.Terms)
	if err != nil {
		return err
	}
	if err := market.CheckReceipt(id, l.state.Terms, head, got, market.Unlimited); err != nil {
		return err
	}
	l.state.Head = market.HeadOf(got, sealed.Hash())
	return b.Save(ctx, l.state, host.Receipt{Lease: id, Seq: r.Seq, Sealed: l.next, Agreed: true})
}
