package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"time"

	"haggle/internal/pay"
	"haggle/market"
)

// How often a payment program is asked, one second apart, when a renter says that it has paid for a lease of which nothing else is
// left to do.
const closedLooks = 20

// serveClosed answers for a lease of which nothing is left to do: it repeats what was agreed, and takes what is still owed.
func (d *Daemon) serveClosed(ctx context.Context, s Stream, theirs market.Hello) error {
	record, err := d.cfg.Store.Record(ctx, theirs.Lease)
	if err != nil {
		return err
	}
	if err := mayTalk(record.Lease, s.Peer()); err != nil {
		return err
	}
	if _, err := d.resync(ctx, s, record.Lease, theirs); err != nil {
		return clean(err)
	}
	if record.Outcome != nil {
		if err := s.Send(ctx, market.OutcomeMessage{Outcome: record.Outcome}); err != nil {
			return clean(err)
		}
	}
	if err := d.sayDisputes(ctx, s, record.Lease.ID); err != nil {
		return clean(err)
	}
	c := closed{d: d, s: s, state: record.Lease, wishes: map[uint32]pay.Order{}}
	for limit := newLimiter(); ; {
		m, err := s.Receive(ctx)
		if err != nil {
			return clean(err)
		}
		if !limit.Allow() {
			return market.NewError(market.CodeTooMany)
		}
		if err := c.hear(ctx, m); err != nil {
			return clean(err)
		}
	}
}

// closed is a conversation about a lease that is over.
type closed struct {
	d      *Daemon
	s      Stream
	state  market.Lease // as it was when the conversation began
	wishes map[uint32]pay.Order
}

func (c *closed) hear(ctx context.Context, m market.Message) error {
	switch m := m.(type) {
	case market.ReceiptMessage:
		seq, err := c.d.echoed(ctx, c.state, m.Receipt)
		if err != nil {
			return err
		}
		return c.s.Send(ctx, market.AckMessage{Seq: seq})
	case market.OutcomeMessage:
		return c.d.change(ctx, c.state.ID, func(ctx context.Context, s market.Lease) error { return c.d.approve(ctx, s, m.Outcome) })
	case market.DisputeMessage:
		err := heard(c.d.change(ctx, c.state.ID, func(ctx context.Context, s market.Lease) error {
			_, err := c.d.dispute(ctx, s, m.Dispute)
			return err
		}))
		if err != nil {
			return err
		}
		return c.s.Send(ctx, m) // it has come
	case market.AskMessage:
		return c.ask(ctx, m)
	case market.PaidMessage:
		return c.paid(ctx, m)
	case market.PaymentMessage:
		return nil // a lease that is over is not restored
	case market.ExtendMessage:
		if _, sealed, err := market.OpenExtension(c.d.cfg.Network, m.Extension, c.state.Terms); err == nil && sealed.SignedBy(market.RoleRig) {
			return nil // nor is this
		}
	}
	return market.NewError(market.CodeLeaseEnded, "reason", string(c.state.Reason))
}

// ask answers a wish to pay with what the rig's payment program asks for.
func (c *closed) ask(ctx context.Context, m market.AskMessage) error {
	err := c.d.checkWish(c.state, m)
	if err == nil && len(c.wishes) >= tillDues {
		err = market.NewError(market.CodeTooMany)
	}
	if err != nil {
		return c.s.Send(ctx, market.DeclineMessage{What: "pay", Err: *market.Public(err)})
	}
	o := c.d.payOrder(c.state, m.Slice.Seq, m.Method, m.Slice.Amount)
	soon, cancel := context.WithTimeout(ctx, tillAnswer)
	defer cancel()
	a, err := c.d.consult(soon, o, true)
	if err != nil {
		return c.failed(ctx, o, err)
	}
	c.wishes[m.Slice.Seq] = o
	m.Text = a.Request
	return c.s.Send(ctx, m)
}

func (c *closed) failed(ctx context.Context, o pay.Order, err error) error {
	c.d.log.Warn("payment program", slog.String("lease", c.state.ID.Short()), slog.String("method", o.Method), slog.Any("err", err))
	return c.s.Send(ctx, market.DeclineMessage{What: "pay", Err: *market.Public(market.NewError(market.CodePayProgram, "method", o.Method, "why", "it does not answer on the rig"))})
}

// paid asks the payment program whether what the renter says is so.
func (c *closed) paid(ctx context.Context, m market.PaidMessage) error {
	if m.Amount <= 0 || !asksFor(c.state, m.Slice) {
		return nil
	}
	o, found := c.wishes[m.Slice]
	if !found {
		o = c.d.payOrder(c.state, m.Slice, c.d.usualMethod(c.state.Terms), m.Amount)
	}
	for range closedLooks {
		soon, cancel := context.WithTimeout(ctx, tillAnswer)
		a, err := c.d.consult(soon, o, false)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return c.failed(ctx, o, err)
		case a.State == pay.Settled && a.Amount >= o.Amount && a.Amount > 0:
			raw, err := c.d.settle(ctx, c.state.ID, income{market.Micro(a.Amount), o.Method, a.Reference, m.Slice})
			if err != nil {
				return err
			}
			return c.s.Send(ctx, market.PaymentMessage{Payment: raw})
		}
		if !pause(ctx, time.Second) {
			return ctx.Err()
		}
	}
	return nil
}

// change does something to a lease that is over, one at a time.
func (d *Daemon) change(ctx context.Context, id market.LeaseID, do func(context.Context, market.Lease) error) error {
	d.purse.Lock()
	defer d.purse.Unlock()
	record, err := d.cfg.Store.Record(ctx, id)
	if err != nil {
		return err
	}
	if !d.over(record.Lease) {
		return errAlive
	}
	before, err := d.moneyNow(ctx, record.Lease)
	if err != nil {
		return err
	}
	if err := do(ctx, record.Lease); err != nil {
		return err
	}
	if record, err = d.cfg.Store.Record(ctx, id); err != nil {
		return err
	}
	after, err := d.moneyNow(ctx, record.Lease)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.recount(record.Lease, before, after)
	return nil
}

// errAlive says that a lease is not over: its own goroutine changes it.
var errAlive = errors.New("the lease is not over")

// settle signs for money that has come for a lease that is over, and returns the payment. The same slice is paid once.
func (d *Daemon) settle(ctx context.Context, id market.LeaseID, r income) (raw []byte, err error) {
	err = d.change(ctx, id, func(ctx context.Context, s market.Lease) error {
		papers, err := d.cfg.Store.Papers(ctx, id, market.KindPayment)
		if err != nil {
			return err
		}
		for _, p := range papers {
			if old, _, err := market.OpenPayment(d.cfg.Network, p.Sealed, s.Terms); err == nil && r.slice != 0 && old.Slice == r.slice {
				raw = p.Sealed
				return nil
			}
		}
		p, sealed, err := d.payment(s, r)
		if err != nil {
			return err
		}
		next, _, err := market.Step(s, d.cfg.Clock(), market.Paid{Payment: p})
		if err != nil {
			return err
		}
		raw = sealed
		return d.cfg.Store.File(context.WithoutCancel(ctx), next, nil, []market.Paper{{Lease: id, Kind: market.KindPayment, Seq: p.Seq, Sealed: sealed}})
	})
	return raw, err
}

// moneyNow counts a stored lease.
func (d *Daemon) moneyNow(ctx context.Context, s market.Lease) (money, error) {
	var moved market.Micro
	if s.PaidSeq > 0 {
		papers, err := d.cfg.Store.Papers(ctx, s.ID, market.KindPayment)
		if err != nil {
			return money{}, err
		}
		moved = d.movedOf(s.Terms, papers)
	}
	verdict, err := d.verdict(ctx, s)
	return moneyOf(s, moved, verdict), err
}

// movedOf is what of a lease's payments came from the owner's balance.
func (d *Daemon) movedOf(t market.Terms, papers []market.Paper) market.Micro {
	var moved market.Micro
	for _, paper := range papers {
		if !bytes.Contains(paper.Sealed, []byte(market.PayBalance)) {
			continue // most are not, and signatures take their time
		}
		if p, _, err := market.OpenPayment(d.cfg.Network, paper.Sealed, t); err == nil && p.Method == market.PayBalance {
			moved += p.Amount
		}
	}
	return moved
}
