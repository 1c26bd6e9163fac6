package renter

import (
	"bytes"
	"context"
	"fmt"

	"haggle/internal/view"
	"haggle/market"
)

// Extend adds to the running time and the budget of a lease. It returns once both sides have signed the extension, and with the
// rig's refusal otherwise. A rig that cannot be reached is asked as soon as it is back, and the error has code CodeUnreachable.
func (a *Agent) Extend(ctx context.Context, id string, e view.ExtendRequest) (view.Lease, error) {
	switch {
	case e.DurationMs < 0 || e.BudgetMicro < 0:
		return view.Lease{}, badRequest("a lease is extended by more time or more money, not by less")
	case e.DurationMs == 0 && e.BudgetMicro == 0:
		return view.Lease{}, badRequest("there is nothing to add: give a time or an amount")
	}
	r, err := a.find(ctx, id)
	if err != nil {
		return view.Lease{}, err
	}
	if !r.State.Serves.IsZero() {
		return view.Lease{}, market.NewError(market.CodeNotYours)
	}
	l := a.opened(r.Bid)
	if l == nil || r.State.Job == market.JobEnded {
		return view.Lease{}, market.NewError(market.CodeLeaseEnded, "reason", string(r.State.Reason))
	}
	seq, err := a.askExtension(ctx, l, e)
	if err != nil {
		return view.Lease{}, err
	}
	return a.perform(ctx, id, request{
		what: market.OrderExtend,
		give: func(l *lease) { l.hurry() },
		done: func(r Record) bool { return r.State.Extension != nil && r.State.Extension.Seq >= seq },
	})
}

// askExtension signs an extension and stores it, before the link sends it. It returns its number.
func (a *Agent) askExtension(ctx context.Context, l *lease, e view.ExtendRequest) (uint32, error) {
	r, _ := l.get()
	add := market.Micro(e.BudgetMicro)
	if add == 0 {
		more, err := costOf(r.Terms, e.DurationMs)
		if err != nil {
			return 0, err
		}
		add = more
	}
	next := r.Terms.Extend(r.Lease, r.State.Extension, e.DurationMs, add, a.cfg.Clock().UnixMilli())
	if err := market.CheckExtension(r.Lease, r.Terms, r.State.Extension, next); err != nil {
		return 0, err
	}
	sealed := market.SealExtension(a.cfg.Network, a.cfg.Key, next).Encode()
	l.forgive(market.OrderExtend)
	_, err := a.amend(ctx, r, func(in *Inside) error {
		if in.Asked != nil && !bytes.Equal(in.Asked, sealed) {
			return badRequest("the rig has not answered the last extension yet: try again when it is back")
		}
		in.Asked = sealed
		return nil
	})
	return next.Seq, err
}

// costOf returns what a time costs under a lease's terms, without traffic.
func costOf(t market.Terms, ms int64) (market.Micro, error) {
	bill, err := t.Prices.Bill(t.UsageAt(ms, 0, 0))
	return bill.Total, err
}

// extended takes an extension that came back with the rig's signature. The rig can send nothing else: it holds no other with
// this side's signature.
func (k *link) extended(ctx context.Context, raw []byte) error {
	k.l.writing.Lock()
	defer k.l.writing.Unlock()
	r, _ := k.l.get()
	e, s, err := market.OpenExtension(k.a.cfg.Network, raw, r.Terms)
	switch {
	case err != nil:
		return err
	case !s.SignedBy(market.RoleRig):
		return market.NewError(market.CodeUnexpected, "got", "an extension without the rig's signature")
	case r.State.Extension != nil && *r.State.Extension == e:
		return nil // an echo
	}
	if err := market.CheckExtension(r.Lease, r.Terms, r.State.Extension, e); err != nil {
		return err
	}
	r.State.Extension = &e
	if err := k.a.cfg.Store.Extend(ctx, r, e.Seq, raw); err != nil {
		return fmt.Errorf("extend lease %s: %w", k.id.Short(), err)
	}
	err = k.a.forgetAsked(ctx, k.l, r.Inside.Asked) // before the user, who sees the extension, can ask again
	k.a.show(k.l, r)
	return err
}

// forgetAsked notes that the rig has answered an extension that it was asked for. The user may have asked for another one since.
func (a *Agent) forgetAsked(ctx context.Context, l *lease, asked []byte) error {
	r, _ := l.get()
	if asked == nil || r.Inside.Asked == nil {
		return nil
	}
	_, err := a.amend(ctx, r, func(in *Inside) error {
		if bytes.Equal(in.Asked, asked) {
			in.Asked = nil
		}
		return nil
	})
	return err
}
