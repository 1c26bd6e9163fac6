package market

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// value is what one slot of an offer has in one field. Which part holds it follows from the field's kind. It is not
// known where the offer is silent, and then no clause on it holds.
type value struct {
	known   bool
	num     int64 // in the base of its kind
	text    string
	version version
	key     Key
	images  []ImageName
	words   []string
}

const gib = int64(1) << 30

// read returns a field's value. It does not know num_gpus, which is counted and not read.
func (f fieldID) read(o *Offer, s *Slot) value {
	if f.perSlot() {
		return f.readSlot(s)
	}
	switch f {
	case fieldCPUThreads:
		return number(o.Host.SlotThreads)
	case fieldCPURAM:
		return number(asSold(o.Host.SlotMemory))
	case fieldDiskFree:
		return number(o.Host.DiskFree / 1_000_000)
	case fieldDriver:
		return versionValue(o.Host.Driver)
	case fieldCUDA:
		return versionValue(o.Host.CUDA)
	case fieldPrice:
		return number(int64(o.Prices.Slot))
	case fieldCurrency:
		return word(o.Prices.Currency)
	case fieldDiskPrice:
		return number(int64(o.Prices.Disk))
	case fieldGeolocation:
		return word(o.Net.Country)
	case fieldReach:
		return word(o.Net.Reach)
	case fieldIsolation:
		return word(o.Host.Isolation)
	case fieldImage:
		return value{known: true, images: o.Host.Images}
	case fieldMaxDuration:
		return number(o.Rules.MaxMs)
	case fieldMinDuration:
		return number(o.Rules.MinMs)
	case fieldRig:
		return word(o.Name)
	case fieldRigKey:
		return value{known: true, key: o.Rig}
	case fieldSimulated:
		return truth(&o.Simulated)
	case fieldEgress:
		return truth(&o.Rules.Egress)
	case fieldBidders:
		return word(o.Rules.Bidders)
	case fieldBrings:
		return truth(&o.Rules.Brings)
	case fieldPay:
		return value{known: true, words: payWords(o)}
	case fieldPayAuto:
		auto := slices.ContainsFunc(o.Pays, func(p PayMethod) bool { return p.Settles == SettlesInstantly })
		return truth(&auto)
	case fieldProtections:
		return value{known: len(o.Host.Protections)+len(o.Host.Weak) > 0, words: o.Host.Protections}
	}
	return value{}
}

// payWords are the names of an offer's payment methods, and none where a lease can be owed.
func payWords(o *Offer) []string {
	words := o.PayNames()
	if o.Rules.Credit != 0 {
		words = append(words, "none")
	}
	return words
}

func (f fieldID) readSlot(s *Slot) value {
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
	}
	return value{}
}

func number(n int64) value { return value{known: true, num: n} }

func word(s string) value { return value{known: s != "", text: s} }

func optional(n *int64) value {
	if n == nil {
		return value{}
	}
	return number(*n)
}

func truth(b *bool) value {
	switch {
	case b == nil:
		return value{}
	case *b:
		return number(1)
	}
	return number(0)
}

func versionValue(s string) value {
	v, rest := parseVersion(s) // what follows, such as -open, says nothing about its age; a number that is cut off would
	return value{known: v.n > 0 && (rest == "" || rest[0] < '0' || rest[0] > '9'), version: v}
}

// asSold turns bytes into thousandths of a GiB, rounded to whole GiB from one GiB on: a card that is sold with 24 GB has
// 24564 MiB, and a driver keeps a little of every card for itself.
func asSold(bytes int64) int64 {
	if bytes < gib {
		return bytes * 1000 / gib
	}
	return (bytes/gib + bytes%gib*2/gib) * 1000
}

// show writes a value for people, in the words that a query would use.
func (v value) show(k kind) string {
	if !v.known {
		return "unknown"
	}
	switch k {
	case kindWord:
		if v.text != "" {
			return Printable(v.text)
		}
		names := make([]string, len(v.images))
		for i, image := range v.images {
			names[i] = Printable(image.Name)
		}
		for _, w := range v.words {
			names = append(names, Printable(w))
		}
		return cmp.Or(strings.Join(names, ","), "none")
	default:
		return operand{num: v.num, version: v.version, key: v.key}.show(k)
	}
}

// compare orders two known values of a kind.
func (v value) compare(w value, k kind) int {
	switch k {
	case kindWord:
		return cmp.Compare(v.firstWord(), w.firstWord())
	case kindVersion:
		return v.version.compare(w.version, maxVersionParts)
	case kindKey:
		return bytes.Compare(v.key[:], w.key[:])
	default:
		return cmp.Compare(v.num, w.num)
	}
}

// firstWord returns the folded word by which a value is sorted: of a list, the first.
func (v value) firstWord() string {
	if len(v.images) > 0 {
		return foldWord(v.images[0].Name)
	}
	if len(v.words) > 0 {
		return foldWord(v.words[0])
	}
	return foldWord(v.text)
}
