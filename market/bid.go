package market

import (
	"cmp"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Mode says how firmly slots are kept.
type Mode string

// ModeFirm keeps the slots until the lease's end. It is the only mode so far.
const ModeFirm Mode = "firm"

// Resources is what a job gets of the rig beside its slots, in all.
type Resources struct {
	Threads int64 `cbor:"1,keyasint" json:"threads"`
	Memory  int64 `cbor:"2,keyasint" json:"memory_bytes"`
	DiskMB  int64 `cbor:"3,keyasint" json:"disk_mb"`
	// UpBits and DownBits are bits a second out of the job and into it: what the rig lets through, and no more. 0 where nothing
	// is promised.
	UpBits   int64 `cbor:"4,keyasint,omitempty" json:"up_bps,omitempty"`
	DownBits int64 `cbor:"5,keyasint,omitempty" json:"down_bps,omitempty"`
}

// DefaultDiskMB is the disk of a bid that names none, unless its share is smaller.
const DefaultDiskMB = int64(10_000)

// maxDiskMB bounds the disk of a lease: a year of it still counts in 64 bits.
const maxDiskMB = int64(100_000_000)

// outOfRange reports whether any of the resources is below nothing, or its disk too large to be counted.
func (r Resources) outOfRange() bool {
	return min(r.Threads, r.Memory, r.DiskMB, r.UpBits, r.DownBits) < 0 || r.DiskMB > maxDiskMB
}

// covers reports whether r is at least what is asked for.
func (r Resources) covers(asked Resources) bool {
	return r.Threads >= asked.Threads && r.Memory >= asked.Memory && r.DiskMB >= asked.DiskMB &&
		r.UpBits >= asked.UpBits && r.DownBits >= asked.DownBits
}

// Limits bound what can be used before somebody agrees to it. They are three and never mixed.
type Limits struct {
	UnsignedMs   int64 `cbor:"1,keyasint" json:"unsigned_ms"`   // running time that nobody countersigned, while the renter answers
	UnattendedMs int64 `cbor:"2,keyasint" json:"unattended_ms"` // running time while the renter's agent is away; Unlimited is allowed
	Credit       int64 `cbor:"3,keyasint" json:"credit"`        // Micro of use not yet paid; Unlimited is allowed
}

// Bid is a renter's signed order for slots of an offer. Times are milliseconds, wall times Unix milliseconds.
type Bid struct {
	Offer      Hash      `cbor:"1,keyasint"` // the hash of the offer's body
	Rig        Key       `cbor:"2,keyasint"`
	Renter     Key       `cbor:"3,keyasint"`
	Owner      Key       `cbor:"4,keyasint"`
	Delegate   []byte    `cbor:"5,keyasint,omitempty"`
	Count      uint8     `cbor:"6,keyasint"`           // slots wanted
	Slots      []uint8   `cbor:"7,keyasint,omitempty"` // these slots and no others; any of the model where empty
	Model      string    `cbor:"8,keyasint"`           // the model that all slots must have
	Mode       Mode      `cbor:"9,keyasint"`
	Prices     Prices    `cbor:"10,keyasint"` // what the renter pays at most; the lease's prices
	GoodTill   int64     `cbor:"11,keyasint"` // wall time
	Job        Hash      `cbor:"12,keyasint"`
	Resources  Resources `cbor:"13,keyasint"` // at least; zero leaves it to the rig
	DurationMs int64     `cbor:"14,keyasint"` // running time, at most
	Budget     Micro     `cbor:"15,keyasint"`
	Limits     Limits    `cbor:"16,keyasint"`
	IntervalMs int64     `cbor:"17,keyasint"` // between receipts
	Nonce      Nonce     `cbor:"18,keyasint"`
	// Upload is the bytes that the renter will send before the start: the job's image, files, or both.
	Upload int64 `cbor:"19,keyasint,omitempty"`
	// Pay is the method by which the lease is paid ahead; "" where it is owed and settled later.
	Pay string `cbor:"20,keyasint,omitempty"`
	// Idle ends the job by itself when its cards do nothing; nil never.
	Idle *IdleStop `cbor:"21,keyasint,omitempty"`
	// Deputies may countersign, pay and collect as the renter does; at most MaxDeputies, none of them the renter's own key.
	Deputies []Key `cbor:"22,keyasint,omitempty"`
	// Guarantee is the hash of a guarantee for what the lease may owe; zero where there is none.
	Guarantee Hash `cbor:"23,keyasint,omitzero"`
	// Residency says where the job may run; nil anywhere.
	Residency *Residency `cbor:"24,keyasint,omitempty"`
}

// MaxDeputies is the most deputies of one lease.
const MaxDeputies = 4

// IdleStop says when a job that does nothing is ended: its cards' use was below a bound for a time without a break.
type IdleStop struct {
	Permille int64 `cbor:"1,keyasint" json:"permille"` // of use, on every card: 1 to 1000
	ForMs    int64 `cbor:"2,keyasint" json:"for_ms"`   // at least a minute
}

// SealBid signs a bid as its renter.
func SealBid(network string, renter ed25519.PrivateKey, b Bid) Sealed {
	return seal(network, KindBid, RoleRenter, renter, b)
}

// OpenBid verifies, decodes and validates a sealed bid's bytes.
func OpenBid(network string, raw []byte) (Bid, Sealed, error) {
	var b Bid
	s, err := DecodeSealed(raw)
	if err != nil {
		return b, s, err
	}
	signer, err := s.open(network, KindBid, RoleRenter, &b, decodeStrict)
	if err != nil {
		return b, s, err
	}
	if signer != b.Renter {
		return b, s, NewError(CodeBadSignature, "kind", string(KindBid), "role", string(RoleRenter))
	}
	if err := b.Validate(); err != nil {
		return b, s, err
	}
	return b, s, checkOwner(network, b.Owner, b.Renter, b.Delegate, DelegateAgent, b.GoodTill)
}

// Validate checks a bid's bounds, without looking at an offer.
func (b Bid) Validate() error {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", string(KindBid), "why", why) }
	switch {
	case b.Mode != ModeFirm:
		return NewError(CodeUnsupported, "what", "mode "+clip(string(b.Mode), 16), "instead", "bid firm")
	case b.Count == 0 || b.Count > MaxSlots || len(b.Slots) != 0 && len(b.Slots) != int(b.Count):
		return bad("it asks for no slot or too many")
	case !slices.IsSorted(b.Slots) || len(slices.Compact(slices.Clone(b.Slots))) != len(b.Slots):
		return bad("its slots are not in order")
	case !isOfferName(b.Model):
		return bad("its model is not a name")
	case b.DurationMs <= 0 || b.DurationMs > maxLeaseTime.Milliseconds():
		return bad("its duration is out of range")
	case b.Budget <= 0 || b.Budget > maxMoney:
		return bad("its budget is out of range")
	case b.IntervalMs < 1000 || b.IntervalMs > maxIntervalMs:
		return bad("its receipt interval is out of range")
	case b.Limits.UnsignedMs <= 0 || b.Limits.UnattendedMs < Unlimited || b.Limits.Credit < Unlimited:
		return bad("its limits are out of range")
	case b.Resources.outOfRange():
		return bad("its resources are out of range")
	case b.Upload < 0 || b.Upload > maxUpload:
		return bad("its upload is out of range")
	}
	if why := cmp.Or(checkParties(b.Pay, b.Idle, b.Deputies, b.Renter), b.Residency.validate()); why != "" {
		return bad(why)
	}
	return b.Prices.Validate()
}

// Admit reports whether a bid fits an offer at a wall time: the rig answers a bid with it, and a renter asks itself the
// same before it sends one. It does not know whether the slots are free: see Pick; nor whom the rig's owner trusts, or whether a
// guarantee covers the credit that a bid asks for.
func Admit(o Offer, offer Hash, b Bid, now int64) error {
	if err := o.CheckAge(now); err != nil {
		return err
	}
	switch {
	case o.State == OfferListed:
		return NewError(CodeNotRentable)
	case b.Offer != offer || b.Rig != o.Rig:
		return NewError(CodeOfferUnknown, "offer", b.Offer.String()[:8])
	case now >= b.GoodTill:
		return NewError(CodeOfferExpired, "ago", span(now-b.GoodTill))
	case !b.Residency.Admits(o):
		return NewError(CodeResidency, "rig", o.Name, "country", cmp.Or(o.Net.Country, "no country"), "countries", strings.Join(b.Residency.Countries, ", "))
	case b.Prices.Currency != o.Prices.Currency:
		return NewError(CodePriceTooLow, "price", b.Prices.Currency, "ask", o.Prices.Currency)
	case b.Prices.Slot < o.Prices.Slot || b.Prices.Disk < o.Prices.Disk || b.Prices.In < o.Prices.In || b.Prices.Out < o.Prices.Out:
		return NewError(CodePriceTooLow, "price", b.Prices.Slot.String(), "ask", o.Prices.Slot.String())
	case b.DurationMs < o.Rules.MinMs || b.DurationMs > o.Rules.MaxMs:
		return NewError(CodeBadDuration, "duration", span(b.DurationMs), "min", span(o.Rules.MinMs), "max", span(o.Rules.MaxMs))
	}
	if err := admitLimits(o.Rules, b); err != nil {
		return err
	}
	if err := admitPay(o, b); err != nil {
		return err
	}
	if err := admitResources(o, b); err != nil {
		return err
	}
	if err := admitUpload(o, b); err != nil {
		return err
	}
	return admitBudget(o, b)
}

func admitLimits(r Rules, b Bid) error {
	most := r.IntervalMs + r.GraceMs
	switch {
	case b.Limits.UnsignedMs > most:
		return NewError(CodeBadLimits, "limit", "unsigned use of "+span(b.Limits.UnsignedMs), "most", span(most))
	case exceeds(b.Limits.UnattendedMs, r.MaxUnattended):
		return NewError(CodeBadLimits, "limit", "an unattended time of "+span(b.Limits.UnattendedMs), "most", span(r.MaxUnattended))
	case exceeds(b.Limits.Credit, r.Credit) && (b.Guarantee == Hash{} || b.Limits.Credit == Unlimited):
		return NewError(CodeBadLimits, "limit", "a credit of "+Micro(b.Limits.Credit).String(), "most", Micro(r.Credit).String())
	case b.IntervalMs != r.IntervalMs:
		return NewError(CodeBadLimits, "limit", "a receipt interval of "+span(b.IntervalMs), "most", span(r.IntervalMs))
	}
	return nil
}

// exceeds compares two limits of which either may be Unlimited.
func exceeds(asked, allowed int64) bool {
	return allowed != Unlimited && (asked == Unlimited || asked > allowed)
}

func admitResources(o Offer, b Bid) error {
	have := o.Share(int(b.Count))
	if !have.covers(b.Resources) {
		return NewError(CodeBadLimits, "limit", "more threads, memory, disk or bandwidth than the slots come with", "most",
			fmt.Sprintf("%d threads, %d MiB, %d MB of disk, %d kbit/s up and %d down", have.Threads, have.Memory>>20, have.DiskMB,
				have.UpBits/1000, have.DownBits/1000))
	}
	return nil
}

// FirstMinute is the time that a budget must cover at least, unless the whole lease is shorter. Milliseconds.
const FirstMinute = int64(60_000)

func admitBudget(o Offer, b Bid) error {
	disk := o.DiskMB(int(b.Count), b.Resources.DiskMB)
	minute, err := b.Prices.Bill(UsageAt(min(FirstMinute, b.DurationMs), int(b.Count), disk, 0, 0))
	switch {
	case err != nil:
		return err
	case minute.Total > b.Budget:
		return NewError(CodeBudgetTooSmall, "budget", b.Budget.String(), "minute", minute.Total.String())
	case b.Pay == "" && b.Limits.Credit != Unlimited && minute.Total > Micro(b.Limits.Credit):
		return NewError(CodeBudgetTooSmall, "budget", Micro(b.Limits.Credit).String(), "minute", minute.Total.String())
	}
	return nil
}

// DiskMB returns the disk that a number of slots is granted where a bid asks for so much, or for none: 0.
func (o Offer) DiskMB(slots int, asked int64) int64 {
	if asked > 0 {
		return asked
	}
	return min(DefaultDiskMB, o.Share(slots).DiskMB)
}

// Share returns the host resources that come with a number of the offer's slots. The disk that is left is divided among the slots
// that are free.
func (o Offer) Share(slots int) Resources {
	return Resources{
		Threads: o.Host.SlotThreads * int64(slots),
		Memory:  o.Host.SlotMemory * int64(slots),
		DiskMB:  o.Host.DiskFree / 1_000_000 * int64(slots) / int64(max(1, o.freeCount())),
		UpBits:  o.Host.SlotUp * int64(slots), DownBits: o.Host.SlotDown * int64(slots),
	}
}

// Pick chooses the slots that a bid gets: those it names, or the first free ones of its model. The error has code
// CodeTooFewSlots if the offer could never serve the bid, CodeSlotTaken if only others' leases stand in the way.
func Pick(o Offer, b Bid) ([]Slot, error) {
	var free []Slot
	have := 0
	for _, s := range o.Slots {
		if s.Model != b.Model || len(b.Slots) > 0 && !slices.Contains(b.Slots, s.Index) {
			continue
		}
		have++
		if s.LeasedUntil == 0 {
			free = append(free, s)
		}
	}
	switch {
	case have < int(b.Count):
		return nil, NewError(CodeTooFewSlots, "has", strconv.Itoa(have), "wanted", strconv.Itoa(int(b.Count)))
	case len(free) < int(b.Count):
		return nil, NewError(CodeSlotTaken, "free", strconv.Itoa(len(free)), "wanted", strconv.Itoa(int(b.Count)))
	}
	return free[:b.Count], nil
}
