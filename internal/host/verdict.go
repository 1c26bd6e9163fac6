package host

import (
	"bytes"
	"context"
	"log/slog"

	"haggle/market"
)

// maxDisputes bounds the complaints about one lease that are kept of each side, so that none can silence another; and the accepted
// outcomes.
const maxDisputes = 16

// approved takes an outcome that the renter has accepted. The first of a lease goes to the end of this rig's chain.
func (d *Daemon) approved(l *lease, raw []byte) error {
	return l.call(func(ctx context.Context) error { return d.approve(ctx, l.state, raw) })
}

// approve is approved for a lease's state, which nobody else changes meanwhile.
func (d *Daemon) approve(ctx context.Context, s market.Lease, raw []byte) error {
	o, sealed, err := market.OpenOutcome(d.cfg.Network, raw, s.Terms)
	switch {
	case err != nil:
		return err
	case o.Lease != s.ID:
		return market.NewError(market.CodeLeaseUnknown, "lease", o.Lease.Short())
	case o.Result == "" || !sealed.SignedBy(market.RoleRenter):
		return nil // it accepts nothing
	}
	d.chaining.Lock()
	defer d.chaining.Unlock()
	kept, err := d.cfg.Store.Papers(ctx, s.ID, market.KindOutcome)
	if err != nil {
		return err
	}
	for _, p := range kept {
		if old, err := market.DecodeSealed(p.Sealed); err == nil && old.Hash() == sealed.Hash() {
			return nil // an echo
		}
	}
	if len(kept) >= maxDisputes {
		return market.NewError(market.CodeTooMany)
	}
	paper := market.Paper{Lease: s.ID, Kind: market.KindOutcome, Seq: uint32(len(kept)) + 1, Sealed: raw}
	if err := d.cfg.Store.File(context.WithoutCancel(ctx), s, nil, []market.Paper{paper}); err != nil {
		return err
	}
	if paper.Seq == 1 {
		d.mu.Lock()
		d.chain = d.chain.After(sealed.Hash())
		d.mu.Unlock()
		d.changed()
	}
	return nil
}

// chainEnd is the end of the rig's chain of accepted outcomes; nil before the first.
func (d *Daemon) chainEnd() *market.ChainEnd {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.chain.Count == 0 {
		return nil
	}
	end := d.chain
	return &end
}

// recallChain counts the outcomes that were accepted.
func (d *Daemon) recallChain(ctx context.Context) error {
	papers, err := d.cfg.Store.PapersOf(ctx, market.KindOutcome)
	if err != nil {
		return err
	}
	for _, p := range papers {
		if p.Seq != 1 {
			continue
		}
		sealed, err := market.DecodeSealed(p.Sealed)
		if err != nil {
			return err
		}
		d.chain = d.chain.After(sealed.Hash())
	}
	return nil
}

// disputed takes a signed complaint about the bill: the renter's is kept, the guarantor's decides.
func (d *Daemon) disputed(l *lease, raw []byte) error {
	return l.call(func(ctx context.Context) error {
		verdict, err := d.dispute(ctx, l.state, raw)
		if err == nil && verdict != nil {
			l.verdict = verdict
			l.publish()
		}
		return err
	})
}

// dispute is disputed for a lease's state, which nobody else changes meanwhile. It returns the total of a verdict.
func (d *Daemon) dispute(ctx context.Context, s market.Lease, raw []byte) (*market.Micro, error) {
	guarantor, err := d.guarantor(ctx, s)
	if err != nil {
		return nil, err
	}
	c, _, err := market.OpenDispute(d.cfg.Network, raw, s.Terms, guarantor)
	if err != nil {
		return nil, err
	}
	if c.Lease != s.ID {
		return nil, market.NewError(market.CodeLeaseUnknown, "lease", c.Lease.Short())
	}
	kept, err := d.cfg.Store.Papers(ctx, s.ID, market.KindDispute)
	if err != nil {
		return nil, err
	}
	said := 0
	for _, p := range kept {
		if bytes.Equal(p.Sealed, raw) {
			return nil, nil // an echo
		}
		if old, err := market.DecodeSealed(p.Sealed); err == nil && old.SignedBy(c.By) {
			said++
		}
	}
	if said >= maxDisputes {
		return nil, market.NewError(market.CodeTooMany)
	}
	paper := market.Paper{Lease: s.ID, Kind: market.KindDispute, Seq: uint32(len(kept)) + 1, Sealed: raw}
	if err := d.cfg.Store.File(context.WithoutCancel(ctx), s, nil, []market.Paper{paper}); err != nil {
		return nil, err
	}
	d.log.Warn("bill disputed", slog.String("lease", s.ID.Short()), slog.String("by", string(c.By)), slog.String("code", market.Printable(string(c.Code))))
	if c.By != market.RoleGuarantor {
		return nil, nil
	}
	return d.verdict(ctx, s)
}

// verdict reads the guarantor's word on a lease, the newest by its own clock if there are several, in whatever order they came; nil
// without one.
func (d *Daemon) verdict(ctx context.Context, s market.Lease) (*market.Micro, error) {
	guarantor, err := d.guarantor(ctx, s)
	if err != nil || guarantor.IsZero() {
		return nil, err
	}
	papers, err := d.cfg.Store.Papers(ctx, s.ID, market.KindDispute)
	if err != nil {
		return nil, err
	}
	var total *market.Micro
	var wall int64
	for _, p := range papers {
		c, _, err := market.OpenDispute(d.cfg.Network, p.Sealed, s.Terms, guarantor)
		if err == nil && c.By == market.RoleGuarantor && c.Wall > wall {
			c.Total = min(c.Total, s.Current().Budget) // nobody consented to more
			total, wall = &c.Total, c.Wall
		}
	}
	return total, nil
}
