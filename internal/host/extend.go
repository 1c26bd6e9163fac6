package host

import (
	"context"
	"fmt"

	"haggle/market"
)

// answerExtension takes a renter's signed extension and sends it back with both signatures, or a refusal.
func (d *Daemon) answerExtension(ctx context.Context, s Stream, l *lease, raw []byte) error {
	both, err := d.extend(l, raw)
	if err != nil {
		return orDecline(ctx, s, market.OrderExtend, err)
	}
	return s.Send(ctx, market.ExtendMessage{Extension: both})
}

// extend takes a renter's signed extension of its lease, and returns it with both signatures. The same extension again gets the
// same bytes. What the rig does not consent to changes nothing.
func (d *Daemon) extend(l *lease, raw []byte) ([]byte, error) {
	e, sealed, err := market.OpenExtension(d.cfg.Network, raw, l.snapshot().Terms)
	if err != nil {
		return nil, err
	}
	var both []byte
	err = l.call(func(ctx context.Context) (err error) {
		both, err = l.extended(ctx, e, sealed)
		return err
	})
	return both, err
}

// extended is extend on the lease's goroutine.
func (l *lease) extended(ctx context.Context, e market.Extension, sealed market.Sealed) ([]byte, error) {
	known, err := l.d.cfg.Store.Extensions(ctx, l.id)
	if err != nil {
		return nil, err
	}
	if seq := uint64(e.Seq); 0 < seq && seq <= uint64(len(known)) {
		return repeated(known[seq-1], sealed)
	}
	if err := market.CheckExtension(l.id, l.state.Terms, l.state.Extension, e); err != nil {
		return nil, err
	}
	if !sealed.SignedBy(market.RoleRig) { // else this rig has consented in a life that its store has forgotten
		if err := l.d.consent(l.state.Current(), e); err != nil {
			return nil, err
		}
	}
	if !l.state.Terms.Guarantee.IsZero() {
		l.d.pledging.Lock() // until the lease is counted with it
		defer l.d.pledging.Unlock()
		if err := l.widen(ctx, e); err != nil {
			return nil, err
		}
	}
	both := market.Consent(sealed, l.d.cfg.Key).Encode()
	err = l.step(ctx, market.Extend{Extension: e}, func(ctx context.Context, next market.Lease, _ filing) error {
		return l.d.cfg.Store.Extend(ctx, next, e.Seq, both)
	})
	if err != nil {
		return nil, err
	}
	l.d.changed() // the offer says until when the cards are held
	return both, nil
}

// consent reports whether the rig, as it is now, would let a lease have more.
func (d *Daemon) consent(t market.Terms, e market.Extension) error {
	offers := d.Offers()
	if len(offers) == 0 {
		return market.NewError(market.CodeEngineDown)
	}
	offer, _, err := market.OpenOffer(d.cfg.Network, offers[0])
	if err != nil {
		return fmt.Errorf("read own offer: %w", err)
	}
	return market.ConsentTo(offer, t, e)
}

// repeated answers an extension that both signed before.
func repeated(known []byte, sealed market.Sealed) ([]byte, error) {
	s, err := market.DecodeSealed(known)
	if err != nil {
		return nil, fmt.Errorf("read extension: %w", err)
	}
	if s.Hash() != sealed.Hash() {
		return nil, market.NewError(market.CodeBadRecord, "kind", string(market.KindExtend), "why", "another one of its number is signed")
	}
	return known, nil
}
