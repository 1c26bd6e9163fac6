package market

import (
	"math"
	"math/bits"
	"slices"
)

// read returns a field's value. It knows neither num_gpus, which is counted and not read, nor claims: see subject.read. It allocates
// nothing, but for fieldPay.
func (f fieldID) read(r *Row, s *Slot) value {
	switch f.scope() {
	case scopeSlot:
		return f.readSlot(r.Offer, s)
	case scopeStanding:
		return f.readStanding(r)
	case scopeJob:
		return f.readJob(r)
	case scopeCount:
		return value{}
	}
	switch {
	case f <= fieldSlotDown:
		return f.readHost(&r.Offer.Host)
	case f >= fieldMaxDuration && f <= fieldCredit:
		return f.readRules(&r.Offer.Rules)
	case f >= fieldPrice && f <= fieldOutPrice:
		return f.readPrices(&r.Offer.Prices)
	}
	return f.readOffer(r)
}

func (f fieldID) readSlot(o *Offer, s *Slot) value {
	switch f {
	case fieldGPUName:
		return word(s.Model)
	case fieldGPUVendor:
		return word(s.Vendor)
	case fieldGPURAM:
		return value{known: s.Memory > 0, num: asSold(s.Memory)}
	case fieldComputeCap:
		return optional(s.Compute)
	case fieldPCIeGen:
		return optional(s.PCIeGen)
	case fieldGPUPower:
		return optional(s.PowerLimit)
	case fieldECC:
		return truth(s.ECC)
	case fieldDisplay:
		return truth(s.Display)
	case fieldRawModel:
		return word(s.RawModel)
	case fieldUsable:
		return value{known: s.Usable > 0, num: thousandths(s.Usable)}
	case fieldPCIeWidth:
		return optional(s.PCIeWidth)
	case fieldSlotKind:
		return word(string(s.Kind))
	case fieldHealth:
		return word(s.Health)
	case fieldTFLOPS:
		return o.flops(s)
	case fieldPricePerTFLOP:
		return perTFLOP(o.Prices.Slot, o.flops(s))
	case fieldTFLOPPerPrice:
		return perMoney(o.flops(s), o.Prices.Slot)
	}
	return value{}
}

func (f fieldID) readHost(h *HostFacts) value {
	switch f {
	case fieldCPUThreads:
		return number(h.SlotThreads)
	case fieldCPURAM:
		return number(asSold(h.SlotMemory))
	case fieldDiskFree:
		return number(h.DiskFree / 1_000_000)
	case fieldCPUName:
		return word(h.CPU)
	case fieldKernel:
		return versionValue(h.Kernel)
	case fieldDriver:
		return versionValue(h.Driver)
	case fieldCUDA:
		return versionValue(h.CUDA)
	case fieldSlotUp:
		return number(h.SlotUp)
	case fieldSlotDown:
		return number(h.SlotDown)
	}
	return value{}
}

func (f fieldID) readPrices(p *Prices) value {
	switch f {
	case fieldPrice:
		return number(int64(p.Slot))
	case fieldCurrency:
		return word(p.Currency)
	case fieldDiskPrice:
		return number(int64(p.Disk))
	case fieldStorageCost:
		return value{known: int64(p.Disk) <= math.MaxInt64/hoursPerMonth, num: int64(p.Disk) * hoursPerMonth}
	case fieldInPrice:
		return number(int64(p.In))
	case fieldOutPrice:
		return number(int64(p.Out))
	}
	return value{}
}

// hoursPerMonth is that of the other markets' price lists: a twelfth of 365 days.
const hoursPerMonth = 730

func (f fieldID) readRules(r *Rules) value {
	switch f {
	case fieldMaxDuration:
		return number(r.MaxMs)
	case fieldMinDuration:
		return number(r.MinMs)
	case fieldInterval:
		return number(r.IntervalMs)
	case fieldFirst:
		return number(r.FirstMs)
	case fieldGrace:
		return number(r.GraceMs)
	case fieldNotice:
		return number(r.NoticeMs)
	case fieldUnattended:
		return limited(r.MaxUnattended)
	case fieldCredit:
		return limited(r.Credit)
	}
	return value{}
}

func (f fieldID) readOffer(r *Row) value {
	o := r.Offer
	switch f {
	case fieldGeolocation:
		return word(o.Net.Country)
	case fieldReach:
		return word(o.Net.Reach)
	case fieldInetUp:
		return optional(o.Net.Up)
	case fieldInetDown:
		return optional(o.Net.Down)
	case fieldIsolation:
		return word(o.Host.Isolation)
	case fieldImage:
		return value{known: true, images: o.Host.Images}
	case fieldImageDigest:
		return value{known: true, images: o.Host.Images, digests: true}
	case fieldRig:
		return word(o.Name)
	case fieldRigKey:
		return value{known: true, key: o.Rig}
	case fieldOwnerKey:
		return value{known: true, key: o.Owner}
	case fieldOfferID:
		return word(o.ID)
	case fieldState:
		return word(string(o.State))
	case fieldSimulated:
		return truth(&o.Simulated)
	case fieldEgress:
		return truth(&o.Rules.Egress)
	case fieldBidders:
		return word(o.Rules.Bidders)
	case fieldContent:
		return word(o.Rules.Content)
	case fieldBrings:
		return truth(&o.Rules.Brings)
	}
	return f.readComputed(r)
}

// readComputed returns what an offer says in several places, or in lists.
func (f fieldID) readComputed(r *Row) value {
	o := r.Offer
	switch f {
	case fieldProtections:
		return value{known: len(o.Host.Protections)+len(o.Host.Weak) > 0, words: o.Host.Protections}
	case fieldWeak:
		return value{known: len(o.Host.Protections)+len(o.Host.Weak) > 0, words: o.Host.Weak}
	case fieldPay:
		return value{known: true, words: payWords(o)}
	case fieldPayAuto:
		return decided(o.paysByItself())
	case fieldOutcomes:
		if o.History == nil {
			return number(0)
		}
		return number(o.History.Count)
	case fieldSlotsTotal:
		return number(int64(len(o.Slots)))
	case fieldFreeSlots:
		return number(int64(o.freeCount()))
	case fieldTotalRAM:
		return o.sum(func(s *Slot) value { return fieldGPURAM.readSlot(o, s) })
	case fieldTotalFLOPS:
		return o.sum(o.flops)
	case fieldExpires:
		return value{known: r.Now > 0, num: max(0, o.Expires-r.Now)}
	}
	return value{}
}

func (f fieldID) readStanding(r *Row) value {
	s := r.Standing
	if s == nil {
		return value{}
	}
	switch f {
	case fieldChecked:
		return truth(&s.Checked)
	case fieldLeases:
		return number(s.Leases)
	case fieldSeen:
		return value{known: s.FirstSeen > 0 && r.Now > 0, num: max(0, r.Now-s.FirstSeen)}
	case fieldAge:
		return value{known: s.Heard > 0 && r.Now > 0, num: max(0, r.Now-s.Heard)}
	case fieldRTT:
		return optional(s.RTT)
	case fieldWithinKm:
		return s.within()
	case fieldSource:
		return word(s.Source)
	case fieldSources:
		return value{known: s.Sources > 0, num: s.Sources}
	case fieldGivenName:
		return word(s.Name)
	case fieldReached:
		return word(s.Reached)
	case fieldAddressCountry:
		return word(s.AddressCountry)
	case fieldResidency:
		return residencyValue(r)
	case fieldKeeps:
		return truth(&s.Keeps)
	case fieldLink:
		return optional(s.Link)
	}
	return value{}
}

func (f fieldID) readJob(r *Row) value {
	switch f {
	case fieldTotal:
		total, known := r.Total()
		return value{known: known, num: int64(total)}
	case fieldStartTime:
		ms, known := r.StartMs()
		return value{known: known, num: ms}
	case fieldHasImage:
		has := decided(r.HasImage())
		has.known = r.Job != nil && r.Job.Image != ""
		return has
	}
	return value{}
}

// sum adds a field up over all slots; unknown where any of them is.
func (o *Offer) sum(of func(*Slot) value) value {
	var sum int64
	for i := range o.Slots {
		v := of(&o.Slots[i])
		if !v.known || sum > math.MaxInt64-v.num {
			return value{}
		}
		sum += v.num
	}
	return number(sum)
}

// paysByItself reports whether a way of paying settles without a person.
func (o *Offer) paysByItself() bool {
	return slices.ContainsFunc(o.Pays, func(p PayMethod) bool { return p.Settles == SettlesInstantly })
}

// payWords are the names of an offer's payment methods, and none where a lease can be owed.
func payWords(o *Offer) []string {
	words := o.PayNames()
	if o.Rules.Credit != 0 {
		words = append(words, "none")
	}
	return words
}

// endless stands for a limit that is none: more than any number that can be written.
const endless = math.MaxInt64

func limited(n int64) value {
	if n == Unlimited {
		return number(endless)
	}
	return number(n)
}

func decided(b bool) value {
	if b {
		return number(1)
	}
	return number(0)
}

// thousandths turns bytes into thousandths of a GiB.
func thousandths(bytes int64) int64 { return bytes/gib*1000 + bytes%gib*1000/gib }

// perTFLOP divides a price by a speed in thousandths of a TFLOPS, rounded up: no card is cheaper than it says.
func perTFLOP(price Rate, flops value) value {
	if !flops.known || flops.num <= 0 || price < 0 {
		return value{}
	}
	n, ok := mulDiv(int64(price), 1000, flops.num, true)
	return value{known: ok, num: n}
}

// perMoney divides a speed by a price, in thousandths of a TFLOPS for one unit of money an hour, rounded down.
func perMoney(flops value, price Rate) value {
	if !flops.known || price <= 0 {
		return value{}
	}
	n, ok := mulDiv(flops.num, 1_000_000, int64(price), false)
	return value{known: ok, num: n}
}

// mulDiv computes a × b ÷ by in 128 bits for numbers that are not negative, rounded up or down.
func mulDiv(a, b, by int64, up bool) (int64, bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(by) {
		return 0, false
	}
	n, rest := bits.Div64(hi, lo, uint64(by))
	if up && rest > 0 {
		n++
	}
	return int64(n), n < math.MaxInt64
}
