package market

import (
	"cmp"
	"crypto/ed25519"
	"slices"
)

// Times that the protocol fixes. The lease's terms carry the ones that were agreed.
const (
	HoldMs    = int64(30_000)  // a grant's hold
	PrepareMs = int64(180_000) // free preparation before the slots are freed again, where nothing is sent: see PrepareFor
	StartMs   = int64(60_000)  // from the order to start until the job must run
)

// GrantedSlot is a slot as the lease names it: a physical card.
type GrantedSlot struct {
	Index uint8  `cbor:"1,keyasint" json:"index"`
	Card  Hash   `cbor:"2,keyasint" json:"card"`
	Model string `cbor:"3,keyasint" json:"model"`
}

// Terms is everything that both sides will ever argue about. The rig signs first, with a hold of HoldMs; the renter
// signs second, after CheckGrant; the hash of the body is the lease's id. Times are milliseconds, wall times Unix
// milliseconds by the rig's clock.
type Terms struct {
	Offer       Hash          `cbor:"1,keyasint"`
	Bid         Hash          `cbor:"2,keyasint"`
	Rig         Key           `cbor:"3,keyasint"`
	RigOwner    Key           `cbor:"4,keyasint"`
	Renter      Key           `cbor:"5,keyasint"`
	RenterOwner Key           `cbor:"6,keyasint"`
	Slots       []GrantedSlot `cbor:"7,keyasint"`
	Resources   Resources     `cbor:"8,keyasint"`
	Mode        Mode          `cbor:"9,keyasint"`
	Prices      Prices        `cbor:"10,keyasint"`
	Budget      Micro         `cbor:"11,keyasint"`
	DurationMs  int64         `cbor:"12,keyasint"` // running time, at most
	Issued      int64         `cbor:"13,keyasint"` // wall time of the grant
	Deadline    int64         `cbor:"14,keyasint"` // wall time after which the job must not run
	HoldMs      int64         `cbor:"15,keyasint"`
	PrepareMs   int64         `cbor:"16,keyasint"`
	NoticeMs    int64         `cbor:"17,keyasint"` // from SIGTERM to SIGKILL
	FirstMs     int64         `cbor:"18,keyasint"`
	IntervalMs  int64         `cbor:"19,keyasint"`
	GraceMs     int64         `cbor:"20,keyasint"`
	Limits      Limits        `cbor:"21,keyasint"`
	Job         Hash          `cbor:"22,keyasint"`
	Simulated   bool          `cbor:"23,keyasint"`
	Nonce       Nonce         `cbor:"24,keyasint"`
	Egress      bool          `cbor:"25,keyasint"` // the job reaches the internet
	// Upload is the bytes that the renter sends before the start; above 0 the job waits for the renter's word to begin.
	Upload    int64     `cbor:"26,keyasint,omitempty"`
	Pay       string    `cbor:"27,keyasint,omitempty"` // as in the bid
	Idle      *IdleStop `cbor:"28,keyasint,omitempty"` // as in the bid
	Deputies  []Key     `cbor:"29,keyasint,omitempty"` // as in the bid
	Guarantee Hash      `cbor:"30,keyasint,omitzero"`  // as in the bid
	// Residency is that of the bid: the rig signs that it stands in one of the countries.
	Residency *Residency `cbor:"31,keyasint,omitempty"`
}

// Grant fills in the terms for a bid that Admit and Pick have let pass.
func Grant(o Offer, b Bid, bid Hash, slots []Slot, now int64, nonce Nonce) Terms {
	t := Terms{
		Offer: b.Offer, Bid: bid, Rig: o.Rig, RigOwner: o.Owner, Renter: b.Renter, RenterOwner: b.Owner,
		Resources: o.Share(len(slots)), Mode: b.Mode, Prices: o.Prices, Budget: b.Budget, DurationMs: b.DurationMs,
		Issued: now, HoldMs: HoldMs, NoticeMs: o.Rules.NoticeMs,
		FirstMs: o.Rules.FirstMs, IntervalMs: b.IntervalMs, GraceMs: o.Rules.GraceMs, Limits: b.Limits, Job: b.Job,
		Simulated: o.Simulated, Nonce: nonce, Egress: o.Rules.Egress, Upload: b.Upload,
		Pay: b.Pay, Idle: b.Idle, Deputies: b.Deputies, Guarantee: b.Guarantee, Residency: b.Residency,
	}
	t.PrepareMs = PrepareFor(o, len(slots), b.Upload)
	t.Resources.DiskMB = o.DiskMB(len(slots), b.Resources.DiskMB)
	t.Deadline = now + t.HoldMs + t.PrepareMs + StartMs + t.DurationMs
	if t.PaysAhead() {
		t.Deadline += FirstPayMs
	}
	for _, s := range slots {
		t.Slots = append(t.Slots, GrantedSlot{Index: s.Index, Card: s.Card, Model: s.Model})
	}
	return t
}

// SealTerms signs terms as their rig.
func SealTerms(network string, rig ed25519.PrivateKey, t Terms) Sealed {
	return seal(network, KindLease, RoleRig, rig, t)
}

// OpenGrant verifies the rig's signature under terms, decodes and validates them.
func OpenGrant(network string, raw []byte) (Terms, Sealed, error) {
	var t Terms
	s, err := DecodeSealed(raw)
	if err != nil {
		return t, s, err
	}
	signer, err := s.open(network, KindLease, RoleRig, &t, decodeStrict)
	if err != nil {
		return t, s, err
	}
	if signer != t.Rig {
		return t, s, NewError(CodeBadSignature, "kind", string(KindLease), "role", string(RoleRig))
	}
	return t, s, t.validate()
}

// OpenLease is OpenGrant for terms that both sides have signed.
func OpenLease(network string, raw []byte) (Terms, Sealed, error) {
	t, s, err := OpenGrant(network, raw)
	if err != nil {
		return t, s, err
	}
	signer, err := s.Verify(RoleRenter)
	if err == nil && signer != t.Renter {
		err = NewError(CodeBadSignature, "kind", string(KindLease), "role", string(RoleRenter))
	}
	return t, s, err
}

// ID returns the id of the lease whose terms were sealed.
func (s Sealed) ID() LeaseID { return LeaseID(s.Hash()) }

// Most returns what the lease can cost at most: its budget, or its credit where that is less and nothing is paid ahead. At any
// moment it is the Ceiling.
func (t Terms) Most() Micro {
	if t.Pay != "" {
		return t.Budget
	}
	return t.Ceiling(0)
}

// UsageAt returns the usage that a running time comes to under the terms.
func (t Terms) UsageAt(billedMs, in, out int64) Usage {
	return UsageAt(billedMs, len(t.Slots), t.Resources.DiskMB, in, out)
}

// UsedBy returns the usage that a running time, and a time for which only the disk was kept, come to under the terms.
func (t Terms) UsedBy(billedMs, keptMs, in, out int64) Usage {
	u := t.UsageAt(billedMs, in, out)
	u.DiskMBMs += keptMs * t.Resources.DiskMB
	return u
}

// UsageAt returns the usage that a running time with slots, disk and traffic comes to.
func UsageAt(billedMs int64, slots int, diskMB, in, out int64) Usage {
	return Usage{SlotMs: billedMs * int64(slots), DiskMBMs: billedMs * diskMB, InBytes: in, OutBytes: out}
}

func (t Terms) validate() error {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", string(KindLease), "why", why) }
	switch {
	case len(t.Slots) == 0 || len(t.Slots) > MaxSlots:
		return bad("it grants no slot or too many")
	case t.Mode != ModeFirm:
		return bad("its mode is unknown")
	case t.Budget <= 0 || t.Budget > maxMoney || t.DurationMs <= 0 || t.DurationMs > maxLeaseTime.Milliseconds():
		return bad("its budget or duration is out of range")
	case t.Issued <= 0 || t.Deadline < t.Issued || t.Deadline-t.Issued > 2*maxLeaseTime.Milliseconds():
		return bad("its window is out of range")
	case t.Resources.outOfRange():
		return bad("its resources are out of range")
	case t.Upload < 0 || t.Upload > maxUpload:
		return bad("its upload is out of range")
	case t.Limits.UnsignedMs <= 0 || t.Limits.UnattendedMs < Unlimited || t.Limits.Credit < Unlimited:
		return bad("its limits are out of range")
	}
	if why := cmp.Or(checkParties(t.Pay, t.Idle, t.Deputies, t.Renter), t.Residency.validate()); why != "" {
		return bad(why)
	}
	for _, ms := range []int64{t.HoldMs, t.PrepareMs, t.NoticeMs, t.FirstMs, t.IntervalMs, t.GraceMs} {
		if ms < 0 || ms > maxLeaseTime.Milliseconds() {
			return bad("a time is out of range")
		}
	}
	return t.Prices.Validate()
}

// CheckGrant is what a renter asks before it signs: do the terms echo its bid and the offer it saw, field by field? The
// error has code CodeGrantMismatch and names the field.
func CheckGrant(t Terms, o Offer, b Bid, bid Hash, now int64) error {
	share := o.Share(int(b.Count))
	share.DiskMB = 0 // disk is granted as asked for
	checks := []struct {
		field string
		ok    bool
	}{
		{"bid", t.Bid == bid},
		{"offer", t.Offer == b.Offer},
		{"rig", t.Rig == b.Rig && t.RigOwner == o.Owner},
		{"renter", t.Renter == b.Renter && t.RenterOwner == b.Owner},
		{"slots", grantsSlots(t, o, b)},
		{"resources", t.Resources.covers(b.Resources) && t.Resources.covers(share)},
		{"disk", t.Prices.Disk == 0 || t.Resources.DiskMB <= o.DiskMB(int(b.Count), b.Resources.DiskMB)}, // it is paid by the GB
		{"mode", t.Mode == b.Mode},
		{"prices", t.Prices.Currency == b.Prices.Currency && t.Prices.Slot <= b.Prices.Slot &&
			t.Prices.Disk <= b.Prices.Disk && t.Prices.In <= b.Prices.In && t.Prices.Out <= b.Prices.Out},
		{"budget", t.Budget == b.Budget},
		{"duration", t.DurationMs == b.DurationMs},
		{"deadline", t.Deadline >= t.Issued+t.DurationMs},
		{"receipt interval", t.IntervalMs == b.IntervalMs && t.FirstMs <= o.Rules.FirstMs && t.GraceMs >= o.Rules.GraceMs},
		{"notice", t.NoticeMs >= o.Rules.NoticeMs},
		{"limits", t.Limits == b.Limits},
		{"job", t.Job == b.Job},
		{"payment method", t.Pay == b.Pay},
		{"idle stop", sameIdle(t.Idle, b.Idle)},
		{"deputies", slices.Equal(t.Deputies, b.Deputies)},
		{"guarantee", t.Guarantee == b.Guarantee},
		{"residency", t.Residency.equal(b.Residency)},
		{"simulated", t.Simulated == o.Simulated},
		{"egress", t.Egress == o.Rules.Egress},
		{"upload", t.Upload == b.Upload},
		{"preparation", t.PrepareMs >= PrepareFor(o, int(b.Count), b.Upload)},
		{"hold", now-t.Issued < t.HoldMs+MaxClockSkew.Milliseconds()},
	}
	for _, c := range checks {
		if !c.ok {
			return NewError(CodeGrantMismatch, "field", c.field)
		}
	}
	return nil
}

func grantsSlots(t Terms, o Offer, b Bid) bool {
	if len(t.Slots) != int(b.Count) {
		return false
	}
	seen := map[uint8]bool{}
	for _, g := range t.Slots {
		i := slices.IndexFunc(o.Slots, func(s Slot) bool { return s.Index == g.Index })
		if i < 0 || seen[g.Index] || o.Slots[i].Card != g.Card || o.Slots[i].Model != b.Model || g.Model != b.Model {
			return false
		}
		if len(b.Slots) > 0 && !slices.Contains(b.Slots, g.Index) {
			return false
		}
		seen[g.Index] = true
	}
	return true
}
