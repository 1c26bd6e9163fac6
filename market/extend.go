package market

import (
	"crypto/ed25519"
	"slices"
	"strconv"
)

// MaxExtensions is the most extensions of one lease.
const MaxExtensions = 1000

// Extension changes what a lease may use at most. It holds totals, not differences: the newest that both signed is the whole
// truth. The renter signs first, and the rig's signature is its consent. Times are milliseconds, wall times Unix milliseconds.
type Extension struct {
	Lease      LeaseID `cbor:"1,keyasint"`
	Seq        uint32  `cbor:"2,keyasint"` // 1, 2, 3, …
	DurationMs int64   `cbor:"3,keyasint"` // running time at most, in all
	Budget     Micro   `cbor:"4,keyasint"` // in all
	Deadline   int64   `cbor:"5,keyasint"` // moved by the time that is added to the duration
	Wall       int64   `cbor:"6,keyasint"` // the renter's wall clock; information, no rule reads it
}

// SealExtension signs an extension as its renter.
func SealExtension(network string, renter ed25519.PrivateKey, e Extension) Sealed {
	return seal(network, KindExtend, RoleRenter, renter, e)
}

// Consent adds the rig's signature to an extension. The caller has opened and checked it.
func Consent(s Sealed, rig ed25519.PrivateKey) Sealed { return s.Sign(RoleRig, rig) }

// OpenExtension verifies the renter's signature under an extension, and the rig's where there is one (see Sealed.SignedBy), and
// decodes it. It does not check whether it follows: see CheckExtension.
func OpenExtension(network string, raw []byte, t Terms) (Extension, Sealed, error) {
	var e Extension
	s, err := DecodeSealed(raw)
	if err != nil {
		return e, s, err
	}
	signer, err := s.open(network, KindExtend, RoleRenter, &e, decodeStrict)
	if err == nil && signer != t.Renter {
		err = NewError(CodeBadSignature, "kind", string(KindExtend), "role", string(RoleRenter))
	}
	if err != nil || !s.SignedBy(RoleRig) {
		return e, s, err
	}
	signer, err = s.Verify(RoleRig)
	if err == nil && signer != t.Rig {
		err = NewError(CodeBadSignature, "kind", string(KindExtend), "role", string(RoleRig))
	}
	return e, s, err
}

// Extended returns the terms with an extension applied; nil leaves them as they are.
func (t Terms) Extended(e *Extension) Terms {
	if e != nil {
		t.DurationMs, t.Budget, t.Deadline = e.DurationMs, e.Budget, e.Deadline
	}
	return t
}

// Extend returns the extension that adds a time and an amount to a lease whose newest extension is last, or nil.
func (t Terms) Extend(lease LeaseID, last *Extension, addMs int64, add Micro, wall int64) Extension {
	now := t.Extended(last)
	e := Extension{
		Lease: lease, Seq: 1, DurationMs: now.DurationMs + addMs, Budget: now.Budget + add, Deadline: now.Deadline + addMs, Wall: wall,
	}
	if last != nil {
		e.Seq = last.Seq + 1
	}
	return e
}

// CheckExtension reports whether an extension follows the newest one that both signed, or nil, under the terms as they were
// signed: totals only grow, something does, and they stay in bounds.
func CheckExtension(lease LeaseID, t Terms, last *Extension, e Extension) error {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", string(KindExtend), "why", why) }
	now := t.Extended(last)
	seq := uint32(1)
	if last != nil {
		seq = last.Seq + 1
	}
	switch {
	case e.Lease != lease:
		return bad("it belongs to another lease")
	case e.Seq != seq:
		return bad("its number is not the next")
	case e.Seq > MaxExtensions:
		return bad("there are too many")
	case e.DurationMs < now.DurationMs || e.Budget < now.Budget:
		return bad("a total falls")
	case e.DurationMs == now.DurationMs && e.Budget == now.Budget:
		return bad("it changes nothing")
	case e.DurationMs > maxLeaseTime.Milliseconds() || e.Budget > maxMoney:
		return bad("a total is out of range")
	case e.Deadline-now.Deadline != e.DurationMs-now.DurationMs:
		return bad("its deadline is not moved by the time that is added")
	}
	return nil
}

// ConsentTo reports whether a rig whose present offer is o consents to an extension that CheckExtension has let pass, of a lease
// whose terms are t with the extensions before it. Money alone is always welcome. Time is given at the lease's own prices: not if
// the ask has risen since, the rig takes no new leases, or a card is no longer offered. It does not know who was promised a slot
// next.
func ConsentTo(o Offer, t Terms, e Extension) error {
	if e.DurationMs == t.DurationMs {
		return nil
	}
	switch ask, lease := o.Prices, t.Prices; {
	case o.State == OfferWithdrawn:
		return NewError(CodePaused)
	case ask.Currency != lease.Currency:
		return NewError(CodePriceRose, "now", ask.Slot.String()+" "+ask.Currency, "lease", lease.Slot.String()+" "+lease.Currency)
	case ask.Slot > lease.Slot:
		return NewError(CodePriceRose, "now", ask.Slot.String(), "lease", lease.Slot.String())
	case ask.Disk > lease.Disk:
		return NewError(CodePriceRose, "now", ask.Disk.String()+" per GB-hour", "lease", lease.Disk.String())
	case ask.In > lease.In || ask.Out > lease.Out:
		return NewError(CodePriceRose, "now", max(ask.In, ask.Out).String()+" per GB", "lease", max(lease.In, lease.Out).String())
	case e.DurationMs > o.Rules.MaxMs:
		return NewError(CodeBadDuration, "duration", span(e.DurationMs), "min", span(o.Rules.MinMs), "max", span(o.Rules.MaxMs))
	}
	still := 0
	for _, g := range t.Slots {
		if slices.ContainsFunc(o.Slots, func(s Slot) bool { return s.Card == g.Card }) {
			still++
		}
	}
	if still < len(t.Slots) {
		return NewError(CodeSlotTaken, "free", strconv.Itoa(still), "wanted", strconv.Itoa(len(t.Slots)))
	}
	return nil
}

// Current returns the terms as they stand now: with the newest extension, and the deadline moved by the pauses. Every limit goes
// by it.
func (l Lease) Current() Terms {
	t := l.Terms.Extended(l.Extension)
	t.Deadline += l.PausedMs
	return t
}

// extend takes an extension that both have signed. The one that it has already is an echo.
func (l Lease) extend(e Extend) (Lease, []Action, error) {
	if l.Extension != nil && *l.Extension == e.Extension {
		return l, nil, nil
	}
	switch {
	case l.MaySign() && (l.Job == JobEnded || l.Job == JobStopping && !l.Keeping): // else the receipts that come back may rest on it
		return l, nil, NewError(CodeLeaseEnded, "reason", string(l.Reason))
	case l.Job == JobGranted:
		return l, nil, l.misfit(e)
	}
	if err := CheckExtension(l.ID, l.Terms, l.Extension, e.Extension); err != nil {
		return l, nil, err
	}
	next := e.Extension
	l.Extension = &next
	return l, nil, nil
}
