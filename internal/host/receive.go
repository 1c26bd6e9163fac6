package host

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"haggle/market"
)

// income is money that has come for a lease.
type income struct {
	amount    market.Micro
	method    string
	reference string
	slice     uint32 // that it answers; 0 none
}

// payment puts money that has come into the lease's next payment, signed.
func (d *Daemon) payment(s market.Lease, r income) (market.Payment, []byte, error) {
	t := s.Terms
	p := market.Payment{
		Lease: s.ID, Seq: s.PaidSeq + 1, Payee: t.RigOwner, Payer: t.RenterOwner, Currency: t.Prices.Currency, Amount: r.amount,
		Total: s.Paid + r.amount, Method: r.method, Reference: reference(r.reference), Wall: d.cfg.Clock().Wall, Slice: r.slice,
	}
	raw := market.SealPayment(d.cfg.Network, d.cfg.Key, p).Encode()
	_, _, err := market.OpenPayment(d.cfg.Network, raw, t) // an amount beyond bounds is never sent
	return p, raw, err
}

// reference makes a foreign reference fit for a payment.
func reference(s string) string {
	s = market.Printable(s)
	if len(s) > maxReference {
		s = strings.ToValidUTF8(s[:maxReference], "")
	}
	return s
}

// errUnsure says that the store was put back from a copy, and the renter has not told yet what it has.
var errUnsure = errors.New("nothing is signed before it is known what the renter has")

// receive signs for money that has come, stores that together with what follows from it, and tells everybody.
func (l *lease) receive(ctx context.Context, r income) error {
	switch {
	case r.slice != 0 && l.settled[r.slice]:
		return nil // it was signed for already
	case !l.state.MaySign():
		return errUnsure
	}
	p, raw, err := l.d.payment(l.state, r)
	if err != nil {
		return err
	}
	return l.paid(ctx, p, raw)
}

// paid takes a payment that this rig has signed, now or in a life that its store has forgotten.
func (l *lease) paid(ctx context.Context, p market.Payment, raw []byte) error {
	if err := l.step(ctx, market.Paid{Payment: p}, l.filed(market.KindPayment, p.Seq, raw)); err != nil {
		return err
	}
	l.count(p)
	l.publish()
	l.d.log.Info("paid", slog.String("lease", l.id.Short()), slog.String("amount", p.Amount.String()+" "+p.Currency),
		slog.String("method", p.Method), slog.Uint64("slice", uint64(p.Slice)))
	l.say(market.PaymentMessage{Payment: raw}, nil)
	l.statusAll()
	return nil
}

// count takes a payment into what the lease remembers of its payments.
func (l *lease) count(p market.Payment) {
	if p.Slice != 0 {
		l.settled[p.Slice] = true
	}
	if p.Method == market.PayBalance {
		l.moved += p.Amount
	}
}

// drawBalance pays a slice that nobody was asked for yet from what the owner has paid before and not used, if that is enough.
func (l *lease) drawBalance(ctx context.Context, s market.Slice) {
	if !l.state.MaySign() || l.d.account(accountOf(l.state)).left() < s.Amount {
		return
	}
	l.d.purse.Lock()
	defer l.d.purse.Unlock()
	if l.d.account(accountOf(l.state)).left() < s.Amount {
		return // another lease was first
	}
	if err := l.receive(ctx, income{s.Amount, market.PayBalance, "", s.Seq}); err != nil {
		l.complain(err)
	}
}

// toldPaid takes the renter's word that it has paid: the payment program is asked at once. It proves nothing.
func (l *lease) toldPaid(ctx context.Context, k *link, m market.PaidMessage) error {
	if l.settled[m.Slice] {
		l.repeatPayment(ctx, k, m.Slice)
		return nil
	}
	l.review() // right after a start the slice that is asked for is not waited for yet
	q := l.due(m.Slice)
	if q == nil && asksFor(l.state, m.Slice) {
		// A wish, or a slice that was asked for and then not needed, of which an earlier life of this program knew.
		q = l.wish(market.Slice{Seq: m.Slice, Amount: m.Amount, AskedAt: l.d.cfg.Clock().Wall}, l.d.usualMethod(l.state.Terms))
	}
	if q != nil {
		q.told = true
		q.next = q.asked + tillOften
		l.collect(ctx)
	}
	return nil
}

// maxPayments bounds the payments of one lease that the renter makes of its own accord: each is kept.
const maxPayments = uint32(1) << 15

// asksFor reports whether a sum of a number can have been asked for, or wished. Money without a number would count again and again.
func asksFor(s market.Lease, slice uint32) bool {
	return slice >= firstWish && s.PaidSeq < maxPayments || 0 < slice && slice <= s.Slices
}

// repeatPayment sends the payment of a slice again.
func (l *lease) repeatPayment(ctx context.Context, k *link, slice uint32) {
	papers, err := l.d.cfg.Store.Papers(ctx, l.id, market.KindPayment)
	if err != nil {
		l.complain(err)
		return
	}
	for _, paper := range papers {
		if p, _, err := market.OpenPayment(l.d.cfg.Network, paper.Sealed, l.state.Terms); err == nil && p.Slice == slice {
			k.send(market.PaymentMessage{Payment: paper.Sealed})
		}
	}
}

// sayPayments sends the payments with a number above after.
func (l *lease) sayPayments(ctx context.Context, k *link, after uint32) {
	papers, err := l.d.payments(ctx, l.state, after)
	if err != nil {
		l.complain(err)
		return
	}
	for _, p := range papers {
		k.send(market.PaymentMessage{Payment: p.Sealed})
	}
}

// payments returns the payments of a lease with a number above after, in order.
func (d *Daemon) payments(ctx context.Context, s market.Lease, after uint32) ([]market.Paper, error) {
	if s.PaidSeq <= after {
		return nil, nil
	}
	papers, err := d.cfg.Store.Papers(ctx, s.ID, market.KindPayment)
	if err != nil {
		return nil, err
	}
	for i, p := range papers {
		if p.Seq > after {
			return papers[i:], nil
		}
	}
	return nil, nil
}

// allPayments returns the payments of all leases, each lease's in order.
func (d *Daemon) allPayments(ctx context.Context) (map[market.LeaseID][]market.Paper, error) {
	papers, err := d.cfg.Store.PapersOf(ctx, market.KindPayment)
	if err != nil {
		return nil, err
	}
	paid := map[market.LeaseID][]market.Paper{}
	for _, p := range papers {
		paid[p.Lease] = append(paid[p.Lease], p)
	}
	return paid, nil
}

// reminded takes a payment that this rig has signed and its store has forgotten.
func (d *Daemon) reminded(l *lease, raw []byte) error {
	p, _, err := market.OpenPayment(d.cfg.Network, raw, l.snapshot().Terms)
	if err != nil {
		return err
	}
	if p.Lease != l.id {
		return market.NewError(market.CodeLeaseUnknown, "lease", p.Lease.Short())
	}
	return l.call(func(ctx context.Context) error {
		if p.Seq <= l.state.PaidSeq {
			return nil // an echo
		}
		d.log.Warn("payment came back from the renter", slog.String("lease", l.id.Short()), slog.Uint64("seq", uint64(p.Seq)))
		return l.paid(ctx, p, raw)
	})
}
