package host

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// leastDigits is the shortest beginning of a lease's id that names it.
const leastDigits = 4

// find returns the lease of an id, or of the beginning of one.
func (d *Daemon) find(ctx context.Context, id string) (Record, error) {
	id = strings.ToLower(id)
	unknown := market.NewError(market.CodeLeaseUnknown, "lease", market.Printable(id[:min(len(id), 64)]))
	if len(id) < leastDigits || strings.Trim(id, "0123456789abcdef") != "" {
		return Record{}, unknown
	}
	records, err := d.cfg.Store.Records(ctx, true)
	if err != nil {
		return Record{}, err
	}
	var hits []Record
	for _, r := range records {
		if strings.HasPrefix(r.Lease.ID.String(), id) {
			hits = append(hits, r)
		}
	}
	switch len(hits) {
	case 0:
		return Record{}, unknown
	case 1:
		return hits[0], nil
	}
	return Record{}, market.NewError(market.CodeLeaseAmbiguous, "lease", id, "count", strconv.Itoa(len(hits)))
}

// Confirm takes the word of the rig's owner that money of a lease has come, and signs for it: for the slice that is asked for, or
// else for what the renter wishes to pay, or else for what the lease owes. What comes beyond that stays the payer's. The error has
// code CodeNothingOwed where nothing is open, and no amount is named.
func (d *Daemon) Confirm(ctx context.Context, id string, c view.Confirm) (view.Lease, error) {
	if err := d.await(ctx); err != nil {
		return view.Lease{}, err
	}
	if c.AmountMicro < 0 || len(c.Reference) > maxReference || market.Printable(c.Reference) != c.Reference {
		return view.Lease{}, market.NewError(market.CodeBadRequest, "why", "an amount is not negative, and a reference is a text of at most "+strconv.Itoa(maxReference)+" bytes")
	}
	r, err := d.find(ctx, id)
	if err != nil {
		return view.Lease{}, err
	}
	err = errClosed
	if l := d.lease(r.Lease.ID); l != nil {
		err = l.call(func(ctx context.Context) error { return l.confirm(ctx, c) })
	}
	if errors.Is(err, errClosed) {
		err = d.confirmClosed(ctx, r.Lease.ID, c)
	}
	if err != nil {
		return view.Lease{}, err
	}
	if r, err = d.cfg.Store.Record(ctx, r.Lease.ID); err != nil {
		return view.Lease{}, err
	}
	return d.leaseNow(r), nil
}

// confirm is Confirm on the lease's goroutine.
func (l *lease) confirm(ctx context.Context, c view.Confirm) error {
	if !l.state.MaySign() {
		return market.NewError(market.CodeBadRequest, "why", "this rig's state was put back from a copy, and the renter has not told yet what it has: wait until it connects")
	}
	var wish *due
	for _, q := range l.till.dues {
		if !q.wish() {
			continue
		}
		// How much a renter wishes to pay is its own word: the owner names what has come.
		if c.Slice == q.slice.Seq || c.Slice == 0 && l.state.Slice == nil && c.AmountMicro == int64(q.slice.Amount) {
			return l.receive(ctx, confirmedSlice(q.slice, q.method, c))
		}
		wish = q
	}
	r, err := confirmed(l.state, l.verdict, c)
	if market.CodeOf(err) == market.CodeNothingOwed && wish != nil && c.Slice == 0 {
		amount := wish.slice.Amount.String() + " " + l.state.Terms.Prices.Currency
		return market.NewError(market.CodeBadRequest, "why", "nothing is owed, and the renter wishes to pay "+amount+": name the amount that has come")
	}
	if err != nil {
		return err
	}
	return l.receive(ctx, r)
}

func (d *Daemon) confirmClosed(ctx context.Context, id market.LeaseID, c view.Confirm) error {
	record, err := d.cfg.Store.Record(ctx, id)
	if err != nil {
		return err
	}
	verdict, err := d.verdict(ctx, record.Lease)
	if err != nil {
		return err
	}
	r, err := confirmed(record.Lease, verdict, c)
	if err != nil {
		return err
	}
	_, err = d.settle(ctx, id, r)
	return err
}

// confirmed is the money that the owner's word means. What a guarantor decided is owed, in place of what was counted.
func confirmed(s market.Lease, verdict *market.Micro, c view.Confirm) (income, error) {
	method := s.Terms.Pay
	if method == "" {
		method = "hand"
	}
	if s.Slice != nil && (c.Slice == 0 || c.Slice == s.Slice.Seq) {
		return confirmedSlice(*s.Slice, method, c), nil
	}
	amount := market.Micro(c.AmountMicro)
	if amount == 0 {
		total := s.Total()
		if verdict != nil {
			total = *verdict
		}
		amount = max(0, total-s.Paid)
	}
	if c.Slice != 0 || amount == 0 || s.Job == market.JobGranted {
		return income{}, market.NewError(market.CodeNothingOwed, "what", "confirmed", "lease", s.ID.Short())
	}
	return income{amount: amount, method: method, reference: c.Reference}, nil
}

// confirmedSlice is the money of a slice; less than the slice answers none.
func confirmedSlice(s market.Slice, method string, c view.Confirm) income {
	r := income{amount: s.Amount, method: method, reference: c.Reference, slice: s.Seq}
	if c.AmountMicro > 0 {
		r.amount = market.Micro(c.AmountMicro)
	}
	if r.amount < s.Amount {
		r.slice = 0
	}
	return r
}
