package market

import (
	"cmp"
	"crypto/ed25519"
	"slices"
	"strconv"
	"strings"
	"time"
)

// OfferState says whether bids are taken.
type OfferState string

// States of an offer.
const (
	OfferOpen      OfferState = "open"
	OfferListed    OfferState = "listed" // to be seen; bids are not taken yet
	OfferWithdrawn OfferState = "withdrawn"
)

// SlotKind says what a slot is made of.
type SlotKind string

// Kinds of slots.
const (
	SlotCard SlotKind = "card" // a whole physical GPU
	SlotMIG  SlotKind = "mig"  // one MIG slice
	SlotHost SlotKind = "host" // a share of a rig without cards
)

// Bounds of an offer.
const (
	MaxSlots       = 32
	maxImages      = 32
	maxOfferText   = 96
	MaxOfferLife   = 10 * time.Minute
	MaxClockSkew   = 2 * time.Minute
	OfferRenewal   = 3 * time.Minute
	maxLeaseTime   = 366 * 24 * time.Hour
	maxIntervalMs  = int64(time.Hour / time.Millisecond)
	maxMoney       = Micro(1e15) // a thousand million units: above it a number is a mistake
	Unlimited      = int64(-1)   // a limit without a bound
	maxFactPercent = 1_000_000
	maxProtections = 32 // names in each of the two lists
)

// Offer is a rig's signed statement of what it rents, at what price and under which rules. All numbers are claimed by the
// rig. Times are Unix milliseconds. An optional number that is absent is unknown, never zero.
type Offer struct {
	Rig       Key        `cbor:"1,keyasint"`
	Owner     Key        `cbor:"2,keyasint"`
	Delegate  []byte     `cbor:"3,keyasint,omitempty"` // sealed delegate/1, where Owner is not Rig
	Name      string     `cbor:"4,keyasint"`
	ID        string     `cbor:"5,keyasint"` // the rig's own name for this offer; stable over renewals
	Seq       int64      `cbor:"6,keyasint"` // the newest wins; its issue time, never below one stored
	Issued    int64      `cbor:"7,keyasint"`
	Expires   int64      `cbor:"8,keyasint"`
	State     OfferState `cbor:"9,keyasint"`
	Slots     []Slot     `cbor:"10,keyasint"`
	Host      HostFacts  `cbor:"11,keyasint"`
	Net       NetFacts   `cbor:"12,keyasint"`
	Prices    Prices     `cbor:"13,keyasint"`
	Rules     Rules      `cbor:"14,keyasint"`
	Simulated bool       `cbor:"15,keyasint"`
	// Pays are the ways in which a lease can be paid ahead; none where all is owed.
	Pays []PayMethod `cbor:"18,keyasint,omitempty"`
	// Claims are what only the owner or a maker can state, ascending by name; at most MaxClaims.
	Claims []Claim `cbor:"19,keyasint,omitempty"`
	// History is the end of the chain of outcomes that renters accepted.
	History *ChainEnd `cbor:"21,keyasint,omitempty"`
}

// ChainEnd names the newest of a chain of accepted outcomes.
type ChainEnd struct {
	Count int64 `cbor:"1,keyasint" json:"count"`
	Hash  Hash  `cbor:"2,keyasint" json:"hash"`
}

// Slot is one thing that can be rented.
type Slot struct {
	Index       uint8    `cbor:"1,keyasint" json:"index"`
	Kind        SlotKind `cbor:"2,keyasint" json:"kind"`
	Card        Hash     `cbor:"3,keyasint" json:"card"`                    // salted hash of the card's UUID
	Vendor      string   `cbor:"4,keyasint" json:"vendor"`                  // NVIDIA, AMD, …, SIMULATED
	Model       string   `cbor:"5,keyasint" json:"model"`                   // normalised, such as RTX_4090
	RawModel    string   `cbor:"6,keyasint" json:"raw_model"`               // as the driver says it
	Memory      int64    `cbor:"7,keyasint" json:"memory_bytes"`            // bytes in all
	Usable      int64    `cbor:"8,keyasint" json:"usable_bytes"`            // bytes that a job can use
	Compute     *int64   `cbor:"9,keyasint,omitempty" json:"compute_cap"`   // compute capability times ten: 89 is 8.9
	PCIeGen     *int64   `cbor:"10,keyasint,omitempty" json:"pcie_gen"`     // at most
	PCIeWidth   *int64   `cbor:"11,keyasint,omitempty" json:"pcie_width"`   // lanes at most
	PowerLimit  *int64   `cbor:"12,keyasint,omitempty" json:"power_mw"`     // milliwatts
	ECC         *bool    `cbor:"13,keyasint,omitempty" json:"ecc"`          // error correction is on
	Display     *bool    `cbor:"14,keyasint,omitempty" json:"display"`      // a screen hangs on it
	Health      string   `cbor:"15,keyasint" json:"health"`                 // fit or watch; a fenced card is not offered
	LeasedUntil int64    `cbor:"16,keyasint,omitempty" json:"leased_until"` // Unix milliseconds, 0 is free now
}

// HostFacts is the machine around the cards.
type HostFacts struct {
	CPU         string      `cbor:"1,keyasint" json:"cpu"`
	SlotThreads int64       `cbor:"2,keyasint" json:"threads_per_slot"`
	SlotMemory  int64       `cbor:"3,keyasint" json:"memory_per_slot_bytes"`
	DiskFree    int64       `cbor:"4,keyasint" json:"disk_free_bytes"` // what leases hold is taken off
	Kernel      string      `cbor:"5,keyasint" json:"kernel"`
	Driver      string      `cbor:"6,keyasint,omitempty" json:"driver"`
	CUDA        string      `cbor:"7,keyasint,omitempty" json:"cuda"`
	Isolation   string      `cbor:"8,keyasint" json:"isolation"` // runc-userns, runc; none where jobs are plain processes
	Images      []ImageName `cbor:"9,keyasint,omitempty" json:"images"`
	// Protections are what stands between a job and the machine and was tried out; Weak are those that did not hold.
	Protections []string `cbor:"10,keyasint,omitempty" json:"protections,omitempty"`
	Weak        []string `cbor:"11,keyasint,omitempty" json:"weak,omitempty"`
	SlotUp      int64    `cbor:"12,keyasint,omitempty" json:"up_bps_per_slot,omitempty"`   // bits a second out of a job; 0 where none are promised
	SlotDown    int64    `cbor:"13,keyasint,omitempty" json:"down_bps_per_slot,omitempty"` // bits a second into a job
}

// ImageName is an image that the rig has and starts at once.
type ImageName struct {
	Name   string `cbor:"1,keyasint" json:"name"`
	Digest string `cbor:"2,keyasint" json:"digest"`
	Size   int64  `cbor:"3,keyasint" json:"size_bytes"`
}

// NetFacts is how the rig is reached, as it claims.
type NetFacts struct {
	Reach   string `cbor:"1,keyasint" json:"reach"`              // direct, punched, relayed or loopback
	Up      *int64 `cbor:"2,keyasint,omitempty" json:"up_bps"`   // bits a second out of the rig
	Down    *int64 `cbor:"3,keyasint,omitempty" json:"down_bps"` // bits a second into the rig
	Country string `cbor:"4,keyasint,omitempty" json:"country"`  // two capital letters
}

// isOfferName reports whether a text is 1 to 64 letters, digits, dots, dashes and underscores, a letter or digit first. A loop and no
// pattern: it is asked a dozen times of each offer that comes, and would cost a twentieth of the signature.
func isOfferName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}

// SealOffer signs an offer as its rig.
func SealOffer(network string, rig ed25519.PrivateKey, o Offer) Sealed {
	return seal(network, KindOffer, RoleRig, rig, o)
}

// OpenOffer verifies, decodes and validates a sealed offer's bytes. It does not judge its age: see Offer.CheckAge.
func OpenOffer(network string, raw []byte) (Offer, Sealed, error) {
	var o Offer
	if len(raw) > MaxOffer {
		return o, Sealed{}, NewError(CodeTooLarge, "limit", strconv.Itoa(MaxOffer))
	}
	s, err := DecodeSealed(raw)
	if err != nil {
		return o, s, err
	}
	signer, err := s.open(network, KindOffer, RoleRig, &o, decodeOpen)
	if err != nil {
		return o, s, err
	}
	if signer != o.Rig {
		return o, s, NewError(CodeBadSignature, "kind", string(KindOffer), "role", string(RoleRig))
	}
	if err := checkOwner(network, o.Owner, o.Rig, o.Delegate, DelegateRig, o.Issued); err != nil {
		return o, s, err
	}
	return o, s, o.Validate(network)
}

// Validate checks an offer's bounds and that its parts fit together.
func (o Offer) Validate(network string) error {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", string(KindOffer), "why", why) }
	switch {
	case !isOfferName(o.ID) || !isOfferName(o.Name):
		return bad("its name or id has other characters than letters, digits, dots and dashes")
	case o.State != OfferOpen && o.State != OfferListed && o.State != OfferWithdrawn:
		return bad("its state is unknown")
	case o.Issued <= 0 || o.Expires <= o.Issued || o.Expires-o.Issued > MaxOfferLife.Milliseconds():
		return bad("it is valid for more than 10 minutes or for no time")
	case len(o.Slots) == 0 || len(o.Slots) > MaxSlots:
		return bad("it has no slot or too many")
	case o.Simulated && !IsLab(network):
		return bad("simulated cards are offered on lab networks only")
	case len(o.Host.Images) > maxImages:
		return bad("it lists too many images")
	}
	for i, s := range o.Slots {
		if err := s.validate(); err != nil {
			return err
		}
		if i > 0 && s.Index <= o.Slots[i-1].Index {
			return bad("its slots are not in the order of their index")
		}
		if o.Simulated != (s.Vendor == VendorSimulated) {
			return bad("a simulated card is not marked, or a real one is")
		}
	}
	if err := o.boundTexts(); err != nil {
		return err
	}
	if why := cmp.Or(checkPays(network, o.Pays), checkClaims(o.Claims)); why != "" {
		return bad(why)
	}
	if o.History != nil && o.History.Count < 1 {
		return bad("its chain of outcomes has none")
	}
	if err := o.Prices.Validate(); err != nil {
		return err
	}
	return o.Rules.validate()
}

// VendorSimulated is the vendor of every simulated card.
const VendorSimulated = "SIMULATED"

func (s Slot) validate() error {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", string(KindOffer), "why", why) }
	switch {
	case s.Kind != SlotCard && s.Kind != SlotMIG && s.Kind != SlotHost:
		return bad("a slot's kind is unknown")
	case s.Memory < 0 || s.Usable < 0 || s.Usable > s.Memory || s.LeasedUntil < 0:
		return bad("a slot's numbers are out of range")
	case !isOfferName(s.Model) || len(s.RawModel) > maxOfferText || !isOfferName(s.Vendor) || len(s.Health) > 16:
		return bad("a slot's texts are out of bounds")
	}
	for _, n := range []*int64{s.Compute, s.PCIeGen, s.PCIeWidth, s.PowerLimit} {
		if n != nil && (*n < 0 || *n > maxFactPercent*1000) {
			return bad("a slot's numbers are out of range")
		}
	}
	return nil
}

func (o Offer) boundTexts() error {
	texts := []string{o.Host.CPU, o.Host.Kernel, o.Host.Driver, o.Host.CUDA, o.Host.Isolation, o.Net.Reach, o.Net.Country}
	for _, i := range o.Host.Images {
		if !isOfferName(i.Name) || i.Size < 0 {
			return NewError(CodeBadRecord, "kind", string(KindOffer), "why", "an image's name or size is out of bounds")
		}
		texts = append(texts, i.Digest)
	}
	if slices.ContainsFunc(texts, func(t string) bool { return len(t) > maxOfferText }) {
		return NewError(CodeBadRecord, "kind", string(KindOffer), "why", "a text is too long")
	}
	if _, named := regionBucket(o.Net.Country); o.Net.Country != "" && (!named || strings.ToUpper(o.Net.Country) != o.Net.Country) {
		return NewError(CodeBadRecord, "kind", string(KindOffer), "why", "its country is not two capital letters")
	}
	if len(o.Host.Protections) > maxProtections || len(o.Host.Weak) > maxProtections ||
		slices.ContainsFunc(slices.Concat(o.Host.Protections, o.Host.Weak), func(n string) bool { return !isOfferName(n) }) {
		return NewError(CodeBadRecord, "kind", string(KindOffer), "why", "its protections are too many or are not names")
	}
	if min(o.Host.SlotThreads, o.Host.SlotMemory, o.Host.DiskFree, o.Host.SlotUp, o.Host.SlotDown) < 0 {
		return NewError(CodeBadRecord, "kind", string(KindOffer), "why", "the host's numbers are out of range")
	}
	return nil
}

// CheckAge reports whether an offer is valid at a time in Unix milliseconds, allowing MaxClockSkew for clocks that differ.
// The error has code CodeOfferExpired or CodeOfferWithdrawn.
func (o Offer) CheckAge(now int64) error {
	skew := MaxClockSkew.Milliseconds()
	switch {
	case o.State == OfferWithdrawn:
		return NewError(CodeOfferWithdrawn)
	case o.Issued > now+skew:
		return NewError(CodeBadRecord, "kind", string(KindOffer), "why", "it was issued in the future")
	case now >= o.Expires:
		return NewError(CodeOfferExpired, "ago", span(now-o.Expires))
	}
	return nil
}

// Supersedes reports whether o replaces old: the same rig and id, and a higher sequence number.
func (o Offer) Supersedes(old Offer) bool {
	return o.Rig == old.Rig && o.ID == old.ID && o.Seq > old.Seq
}

// Free returns the indices of the slots that are free.
func (o Offer) Free() []uint8 {
	var free []uint8
	for _, s := range o.Slots {
		if s.LeasedUntil == 0 {
			free = append(free, s.Index)
		}
	}
	return free
}

// Image returns the image of a name that the rig lists.
func (o Offer) Image(name string) (ImageName, bool) {
	i := slices.IndexFunc(o.Host.Images, func(im ImageName) bool { return im.Name == name })
	if i < 0 {
		return ImageName{}, false
	}
	return o.Host.Images[i], true
}

// span writes milliseconds for people: short times exactly, long ones to the second, whole days as such.
func span(ms int64) string {
	const day = 24 * time.Hour
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d >= 2*day && d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	case d.Abs() >= 10*time.Second:
		d = d.Round(time.Second)
	}
	return d.String()
}
