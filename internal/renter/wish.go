package renter

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// wishTime is how long an order to pay waits for the rig's word how, and for the payment program.
const wishTime = 90 * time.Second

// PayLease pays for a lease beyond what its rig has asked for: what is owed, or ahead. Where a slice is asked for and was not paid, it
// is tried again. It returns once the money is on its way, a person must act, or the rig has signed for it.
func (a *Agent) PayLease(ctx context.Context, id string, w view.PayRequest) (view.Lease, error) {
	r, err := a.find(ctx, id)
	switch {
	case err != nil:
		return view.Lease{}, err
	case !r.State.Serves.IsZero():
		return view.Lease{}, market.NewError(market.CodeNotYours)
	case r.State.void() || w.AmountMicro < 0:
		return view.Lease{}, market.NewError(market.CodeNothingOwed, "what", "paid", "lease", r.Lease.Short())
	case a.cfg.Purse == nil:
		return view.Lease{}, market.NewError(market.CodePayMethod, "who", "this agent", "method", orNamed(w.Method), "methods", "none")
	}
	l := a.opened(r.Bid)
	if l == nil {
		l = newLease(r) // it is over: its rig must hear of the money all the same
	}
	before, _ := l.get()
	slice, err := a.wish(ctx, l, w, namesOf(a.methods(ctx)))
	if err != nil {
		return view.Lease{}, err
	}
	l.hurry()
	return a.awaitPaid(ctx, l, slice, before.State.PaidSeq)
}

func orNamed(method string) string {
	if method == "" {
		return "any program"
	}
	return market.Printable(clip(method))
}

// wish stores what the user wants to pay by one of this agent's methods, or has what was asked for tried again, and returns its number.
// Payment programs are not asked under the lease's lock: they may hang.
func (a *Agent) wish(ctx context.Context, l *lease, w view.PayRequest, mine []string) (uint32, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	r, _ := l.get()
	if p := r.State.Paying; p != nil && !p.Final {
		if w.Method != "" && w.Method != p.Method {
			return 0, badRequest("a payment by " + p.Method + " is on its way: try again when it has come")
		}
		l.change(func() { l.urged++ })
		return p.Slice.Seq, nil
	}
	p, err := a.wanted(ctx, r, w, mine)
	if err != nil {
		return 0, err
	}
	if err := a.commitLocked(ctx, l, func(r *Record) { r.State.wish(p) }); err != nil {
		return 0, err
	}
	if a.opened(r.Bid) != l {
		a.enter(l)
		if err := a.spawn(ctx, func(ctx context.Context) { a.tend(ctx, l, nil) }); err != nil {
			a.leave(l) // the next life takes it up
			return 0, err
		}
	}
	return p.Slice.Seq, nil
}

// wanted returns the payment that a request comes to.
func (a *Agent) wanted(ctx context.Context, r Record, w view.PayRequest, mine []string) (Paying, error) {
	t := r.terms()
	known := r.State.known()
	owed := max(0, r.cost()-known)
	if r.State.Job == market.JobEnded {
		owed = max(0, r.Head.Total-known)
	}
	if total := a.decided(ctx, r); total != nil {
		owed = max(0, *total-known)
	}
	amount := market.Micro(w.AmountMicro)
	if amount == 0 {
		amount = owed
	}
	most := owed
	if r.State.Job != market.JobEnded {
		most = max(owed, t.Budget-known)
	}
	switch {
	case amount == 0 || most == 0:
		return Paying{}, market.NewError(market.CodeNothingOwed, "what", "paid", "lease", r.Lease.Short())
	case amount > most:
		return Paying{}, badRequest("lease " + r.Lease.Short() + " can cost " + most.String() + " more at most")
	}
	method, err := a.methodFor(r, w.Method, mine)
	if err != nil {
		return Paying{}, err
	}
	return Paying{Slice: r.wishFor(amount, a.cfg.Clock().UnixMilli()), Method: method, Amount: amount, State: payWished}, nil
}

// methodFor chooses how a wish is paid: as the user says, as the lease says, or as both sides can.
func (a *Agent) methodFor(r Record, method string, mine []string) (string, error) {
	offer, _, err := market.OpenOffer(a.cfg.Network, r.Offer)
	if err != nil {
		return "", err
	}
	names := offer.PayNames()
	if method == "" {
		method = r.Terms.Pay
	}
	for _, name := range names {
		if method == "" && slices.Contains(mine, name) {
			method = name
		}
	}
	if !slices.Contains(names, method) || !slices.Contains(mine, method) {
		return "", market.NewError(market.CodePayMethod, "who", "this agent or the rig", "method", orNamed(method), "methods", listed(names))
	}
	return method, nil
}

// awaitPaid waits for what becomes of a payment.
func (a *Agent) awaitPaid(ctx context.Context, l *lease, slice, paid uint32) (view.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, wishTime)
	defer cancel()
	failures := l.attempts()
	for {
		change := l.watch()
		r, connected := l.get()
		p := r.State.Paying
		switch {
		case r.State.PaidSeq > paid, p == nil, p.Slice.Seq != slice, p.State == paySent, p.State == payWaiting:
			return a.leaseView(r, connected), nil
		case p.State == payFailed, p.State == payHeld:
			return view.Lease{}, a.unpaid(ctx, r, *p)
		case p.State == payWished && !connected && l.attempts() > failures:
			return view.Lease{}, unreachable(r.Terms.Rig)
		}
		select {
		case <-change:
		case <-a.stopped:
			return view.Lease{}, fmt.Errorf("lease %s: %w", r.Lease.Short(), errStopped)
		case <-ctx.Done():
			r, connected := l.get()
			return a.leaseView(r, connected), nil // it goes on
		}
	}
}

// unpaid says why a payment does not go on.
func (a *Agent) unpaid(ctx context.Context, r Record, p Paying) error {
	if p.State == payHeld {
		if _, over, err := a.room(ctx, r.Terms.Prices.Currency, p.Slice.Amount); err == nil && over != nil {
			return over
		}
	}
	return market.NewError(market.CodePayFailed, "method", p.Method, "why", p.Why)
}

// draw fills a nonce with random bytes.
func (a *Agent) draw(n *market.Nonce) error {
	if _, err := io.ReadFull(a.cfg.Random, n[:]); err != nil {
		return fmt.Errorf("read random bytes: %w", err)
	}
	return nil
}
