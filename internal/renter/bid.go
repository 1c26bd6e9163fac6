package renter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"haggle/internal/index"
	"haggle/internal/view"
	"haggle/market"
)

// Bounds of a bid.
const (
	maxRigsTried = 3
	grantTime    = 10 * time.Second       // from the dial to the grant
	confirmTime  = 5 * time.Second        // for the rig's first word after both signed
	busyPause    = 300 * time.Millisecond // a rig lets four lease streams a second of one key begin
)

// Bid orders slots at one offer, or at the best that a query finds, and returns once both sides have signed the lease. A
// rig that refuses is followed by the next best, three in all; the error is the last refusal. An order that no rig could
// take is refused before anything is sent. The operation goes on when ctx ends.
func (a *Agent) Bid(ctx context.Context, r view.BidRequest) (view.Lease, error) {
	var err error
	if r.Query, err = a.expand(ctx, r.Query); err != nil {
		return view.Lease{}, err
	}
	o, err := newOrder(r)
	if err != nil {
		return view.Lease{}, err
	}
	type answer struct {
		lease view.Lease
		err   error
	}
	done := make(chan answer, 1)
	a.bidding.Add(1)
	err = a.spawn(ctx, func(ctx context.Context) {
		defer a.bidding.Add(-1)
		lease, err := a.place(ctx, o)
		done <- answer{lease, err}
	})
	if err != nil {
		a.bidding.Add(-1)
		return view.Lease{}, fmt.Errorf("bid: %w", err)
	}
	select {
	case got := <-done:
		return got.lease, got.err
	case <-ctx.Done():
		return view.Lease{}, fmt.Errorf("bid: the agent goes on without its caller: %w", ctx.Err())
	}
}

// place tries the candidates of an order one after the other.
func (a *Agent) place(ctx context.Context, o order) (view.Lease, error) {
	if err := a.weigh(ctx, &o); err != nil {
		return view.Lease{}, err
	}
	if err := a.arrange(ctx, &o); err != nil {
		return view.Lease{}, err
	}
	f, err := a.search(ctx, o.query, o.shape())
	if err != nil {
		return view.Lease{}, err
	}
	if err := a.prove(ctx, o, &f); err != nil {
		return view.Lease{}, err
	}
	candidates, err := o.candidates(f)
	if err != nil {
		return view.Lease{}, err
	}
	var unfit, refused error
	tried := map[market.Key]bool{}
	for _, c := range candidates {
		if rig := c.offer.Offer.Rig; tried[rig] || len(tried) == maxRigsTried {
			continue
		}
		record, err := o.draft(a.cfg, c)
		if err != nil {
			if unfit == nil {
				unfit = err // the best offer's reason says most
			}
			continue
		}
		tried[c.offer.Offer.Rig] = true
		l, err := a.try(ctx, o, c, record)
		var theirs *market.Error
		switch {
		case err == nil:
			r, connected := l.get()
			return a.leaseView(r, connected), nil
		case !errors.As(err, &theirs):
			return view.Lease{}, err
		}
		refused = err
	}
	if refused == nil {
		refused = unfit
	}
	return view.Lease{}, refused
}

// try bids at one rig. An offer that the rig has renewed in the meantime is fetched again, once; a rig that gives this agent no credit
// is offered to be paid ahead.
func (a *Agent) try(ctx context.Context, o order, c candidate, record Record) (*lease, error) {
	for renewed := false; ; {
		l, err := a.send(ctx, record, o.secrets)
		switch code := market.CodeOf(err); {
		case (code == market.CodeOfferExpired || code == market.CodeOfferUnknown) && !renewed:
			if c.offer, renewed = a.renewed(ctx, c.offer); !renewed {
				return nil, err
			}
		case code == market.CodePayAhead && o.pay == "" && !o.ahead && o.guaranteed == nil:
			o.ahead = true
		default:
			return l, err
		}
		if record, err = o.draft(a.cfg, c); err != nil {
			return nil, err
		}
	}
}

// renewed asks a rig for the newest statement of an offer.
func (a *Agent) renewed(ctx context.Context, old *index.Known) (*index.Known, bool) {
	a.index.Ask(ctx, old.Offer.Rig)
	for _, k := range a.index.Of(old.Offer.Rig, a.cfg.Clock()) {
		if k.Offer.Supersedes(old.Offer) {
			return k, true
		}
	}
	return nil, false
}

// send stores a bid, sends it, signs the grant that echoes it and waits for the rig's first word.
func (a *Agent) send(ctx context.Context, record Record, secrets []market.Secret) (*lease, error) {
	l := newLease(record)
	l.secrets = secrets
	if err := a.begin(ctx, l, record); err != nil {
		return nil, err
	}
	a.changed(l)
	if err := a.negotiate(ctx, l); err != nil {
		return nil, a.refused(ctx, l, err)
	}
	return l, a.confirm(ctx, l)
}

// begin stores a bid, whose name must be free.
func (a *Agent) begin(ctx context.Context, l *lease, record Record) error {
	a.amending.Lock()
	defer a.amending.Unlock()
	if err := a.nameFree(ctx, record.Inside.Name, record.Bid); err != nil {
		return err
	}
	a.spending.Lock()
	defer a.spending.Unlock()
	if err := a.afford(ctx, record); err != nil {
		return err
	}
	if err := a.cfg.Store.Save(ctx, record); err != nil {
		return fmt.Errorf("save bid %s: %w", record.Bid, err)
	}
	a.enter(l)
	return nil
}

// refused keeps why a bid became no lease. A bid that only this agent's end interrupted stays open for its next life.
func (a *Agent) refused(ctx context.Context, l *lease, why error) error {
	if ctx.Err() != nil {
		return why
	}
	err := a.commit(ctx, l, func(r *Record) { r.State.Refused, r.Env = market.Public(why), nil })
	a.leave(l)
	return errors.Join(why, err)
}

// resumeBid sends a bid of the last life again, the same bytes: the rig gives the same answer.
func (a *Agent) resumeBid(ctx context.Context, l *lease) {
	r, _ := l.get()
	b, _, err := market.OpenBid(a.cfg.Network, r.SealedBid)
	if err == nil && r.Inside.Secrets {
		err = market.NewError(market.CodeSecretsLost) // they were kept in the last life's memory alone
	}
	if err == nil && a.cfg.Clock().UnixMilli() >= b.GoodTill {
		err = market.NewError(market.CodeHoldExpired)
	}
	if err == nil {
		err = a.negotiate(ctx, l)
	}
	if err != nil {
		err = a.refused(ctx, l, err)
		a.cfg.Log.Info("bid of the last run failed", "bid", r.Bid.String(), "err", err)
	}
}

// negotiate takes a stored bid to a lease that both signed, and hands the stream over to the lease's link.
func (a *Agent) negotiate(ctx context.Context, l *lease) error {
	r, _ := l.get()
	offer, _, err := market.OpenOffer(a.cfg.Network, r.Offer)
	if err != nil {
		return err
	}
	bid, sealedBid, err := market.OpenBid(a.cfg.Network, r.SealedBid)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, grantTime)
	defer cancel()
	s, grant, err := a.granted(limited, l, bid)
	if err != nil {
		return fault(ctx, err, bid.Rig)
	}
	terms, sealed, err := market.OpenGrant(a.cfg.Network, grant.Lease)
	signed := a.cfg.Clock()
	if err == nil {
		err = market.CheckGrant(terms, offer, bid, sealedBid.Hash(), signed.UnixMilli())
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	sealed = sealed.Sign(market.RoleRenter, a.cfg.Key)
	err = a.commit(ctx, l, func(r *Record) {
		r.Lease, r.Terms, r.Sealed = sealed.ID(), terms, sealed.Encode()
		r.State.Job, r.State.Since, r.State.SignedAt = market.JobGranted, signed.UnixMilli(), signed.UnixMilli()
		r.State.Seen, r.State.Measure = signed.UnixMilli(), a.measured()
	})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	a.handOver(ctx, l, s)
	return nil
}

// granted opens a stream to a rig and bids on it. A rig that serves as many requests of this key as it may is asked again until ctx
// ends: who starts many short jobs one after the other waits a moment, and loses no bid.
func (a *Agent) granted(ctx context.Context, l *lease, bid market.Bid) (Stream, market.GrantMessage, error) {
	for {
		s, err := a.cfg.Net.OpenLease(ctx, bid.Rig)
		if err != nil {
			return nil, market.GrantMessage{}, err
		}
		grant, err := a.ask(ctx, l, s, bid)
		if err == nil {
			return s, grant, nil
		}
		_ = s.Close() // the rig has ended it
		if market.CodeOf(err) != market.CodeTooMany || !rest(ctx, pauseOf(err)) {
			return nil, market.GrantMessage{}, err
		}
	}
}

// pauseOf is how long to wait for a rig that is asked too much: as long as it says, or a moment.
func pauseOf(err error) time.Duration {
	if d, e := time.ParseDuration(market.Public(err).Arg("after")); e == nil {
		return min(max(d, busyPause), grantTime)
	}
	return busyPause
}

// handOver gives a lease that this side has just signed to its link. From here on the lease is true for this side,
// whatever becomes of the stream: the link sends the signature again until the rig has it.
func (a *Agent) handOver(ctx context.Context, l *lease, s Stream) {
	r, _ := l.get()
	m, _ := l.acceptance(r)
	if err := s.Send(ctx, m); err != nil {
		_ = s.Close() // it is broken already
		s = nil
	}
	err := a.spawn(ctx, func(ctx context.Context) { a.tend(ctx, l, s) })
	if err != nil && s != nil {
		_ = s.Close() // the agent ends; its next life takes the lease up
	}
}

// ask sends a bid and waits for the grant.
func (a *Agent) ask(ctx context.Context, l *lease, s Stream, bid market.Bid) (market.GrantMessage, error) {
	theirs, err := a.greet(ctx, s, bid.Rig, Record{})
	if err != nil {
		return market.GrantMessage{}, err
	}
	l.change(func() { l.speaks = theirs.Speaks })
	r, _ := l.get()
	if err := s.Send(ctx, market.BidMessage{Bid: r.SealedBid, Offer: r.Offer, Job: r.Job, Guarantee: r.State.Guarantee}); err != nil {
		return market.GrantMessage{}, reasonOf(ctx, s, err)
	}
	m, err := s.Receive(ctx)
	if err != nil {
		return market.GrantMessage{}, err
	}
	grant, ok := m.(market.GrantMessage)
	if !ok {
		return market.GrantMessage{}, market.Unexpected(m)
	}
	return grant, nil
}

// confirm waits for the rig's word that it has both signatures, a short while. Silence is no refusal: the link goes on.
func (a *Agent) confirm(ctx context.Context, l *lease) error {
	timer := time.NewTimer(confirmTime)
	defer timer.Stop()
	for {
		change := l.watch()
		r, _ := l.get()
		switch {
		case r.State.Refused != nil:
			return r.State.Refused
		case r.State.Job != market.JobGranted:
			return nil
		}
		select {
		case <-change:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
