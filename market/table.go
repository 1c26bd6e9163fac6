package market

import (
	"hash/maphash"
	"slices"
)

// Bounds of a table, where its configuration leaves them open.
const (
	DefaultTableOffers = 1 << 20
	DefaultTablePerRig = 32
	// tableShare is the room in bytes for an offer's own words and its signed bytes. A usual offer takes about 400, one of eight cards 600.
	tableShare = 1024
	// modestOffer is the packed size in bytes up to which an offer of equal cards always finds room.
	modestOffer = tableShare / 2
)

// TableConfig bounds a table. What is zero is the default.
type TableConfig struct {
	Offers int // at most
	PerRig int // offers of one rig at most
}

// Table holds all offers that a renter knows, in columns, so that a question about a million of them is answered at once and each
// takes some hundred bytes. A row is one distinct slot of an offer: a rig of eight equal cards takes one. Each field's values are
// kept once and its rows hold short codes, so a clause is asked once of each value and not of each offer; the table answers as
// Query.MatchRow answers, whatever the field.
//
// It reads no clock and starts nothing. It is like a map: readers may work together while nobody writes. Put, Note, Drop, DropRig,
// Expire, Watch and View.Stop write; all others read. What it returns is the caller's.
//
// An offer that says what no other says takes more room. What goes beyond a usual offer is taken until three
// quarters of the room are used, so that a few who flood it do not keep others out. In all a table takes at most about 2 KiB for each offer of
// its bound.
type Table struct {
	cfg    TableConfig
	pack   packer
	cols   []*column // by fieldID; nil where the value changes with the time or the job
	claims *column   // those that are not registered, each as it is encoded
	keys   *dict

	// By row. A row that is the second or a later one of an offer names the first in firstRow.
	groups   []group
	high     uint32
	unused   []uint32
	free     list[uint8] // free slots of a withdrawn offer are none
	slots    list[uint8]
	issued   packed
	expires  packed
	more     map[uint32][]uint32 // further rows of an offer, by its first
	firstRow map[uint32]uint32

	// By an offer's first row.
	rigs      packed // codes of keys
	sealed    list[string]
	seen      packed       // Standing.FirstSeen
	heard     packed       // Standing.Heard
	standings packed       // codes of standing
	nextOf    list[uint32] // the next offer of the same rig, plus 1
	firstOf   list[uint32] // by code of a rig's key: its first offer, plus 1

	standing *standings
	count    int
	held     int // bytes of sealed
	views    []*View
}

// group is what a chunk of rows is made of.
type group struct {
	used   selection // the first rows and the others
	shared selection // rows of offers that have several
	others selection // rows that are not the first of their offer
}

// NewTable returns an empty table.
func NewTable(cfg TableConfig) *Table {
	if cfg.Offers <= 0 {
		cfg.Offers = DefaultTableOffers
	}
	if cfg.PerRig <= 0 {
		cfg.PerRig = DefaultTablePerRig
	}
	t := &Table{cfg: cfg, more: map[uint32][]uint32{}, firstRow: map[uint32]uint32{}}
	seed := maphash.MakeSeed()
	t.keys = newDict(kindKey, seed)
	t.standing = newStandings()
	t.claims = &column{subject: subject{field: fieldClaim, kind: kindWord}, dict: newDict(kindWord, seed)}
	for _, s := range subjects() {
		if !s.field.stored() {
			t.cols = append(t.cols, nil)
			continue
		}
		d := t.keys
		switch {
		case s.field == fieldImageDigest:
			d = t.cols[fieldImage].dict
		case s.kind != kindKey:
			d = newDict(s.kind, seed)
		}
		t.cols = append(t.cols, &column{subject: s, dict: d})
	}
	return t
}

// subjects returns all fields in the order of their numbers.
func subjects() []subject {
	list := make([]subject, 0, 128)
	for i, row := range fieldTable() {
		list = append(list, subject{field: fieldID(i), name: row.name, kind: row.kind})
	}
	list = append(list, subject{field: fieldClaim})
	for i, c := range claimTable() {
		list = append(list, c.subject(i))
	}
	return list
}

// stored reports whether a field has a column: its value stays until the offer or the standing is set again.
func (f fieldID) stored() bool {
	s := f.scope()
	return s != scopeCount && s != scopeJob && f != fieldClaim && !f.moves()
}

// Len is the number of offers.
func (t *Table) Len() int { return t.count }

// Put takes an offer, as OpenOffer gave it, with its sealed bytes and what the renter knows of it. It takes the place of the one of
// the same rig and id, whichever is newer: that is for the caller to judge. False says that there is no room for it; the old one is gone
// then, too.
func (t *Table) Put(raw []byte, o *Offer, s Standing) bool {
	form, fresh := t.pack.pack(o.Rig, raw)
	shapes := shapesOf(o)
	head, known := t.lookup(o.Rig, o.ID)
	if known {
		t.before(head)
	}
	if !t.fits(o, head, known, len(form), len(shapes)) {
		if known {
			t.forget(head)
		}
		return false
	}
	if known && 1+len(t.more[head]) != len(shapes) {
		t.erase(head)
		known = false
	}
	if !known {
		head = t.claim(o, len(shapes))
	}
	if fresh >= newPerOffer+newPerSlot*len(o.Slots)+leastNew {
		t.pack.learn(raw)
	}
	t.held += len(form) - len(*t.sealed.at(head))
	*t.sealed.at(head) = string(form)
	t.write(head, o, shapes, &s, !known)
	t.after(head)
	return true
}

// fits reports whether there is room for an offer.
func (t *Table) fits(o *Offer, head uint32, known bool, size, rows int) bool {
	if len(o.Slots) == 0 || len(o.Slots) > MaxSlots {
		return false
	}
	offers, held, used := t.count, t.Bytes(), int(t.high)-len(t.unused)
	if known {
		offers, held, used = offers-1, held-len(*t.sealed.at(head)), used-1-len(t.more[head])
	} else if t.offersOf(o.Rig) >= t.cfg.PerRig {
		return false
	}
	room := t.cfg.Offers * tableShare
	modest := size <= modestOffer && rows == 1
	return offers < t.cfg.Offers && (modest || held < room/4*3 && used+rows <= t.cfg.Offers)
}

// Bytes is about the room that the offers' own words and their signed bytes take: what an offer alone decides.
func (t *Table) Bytes() int {
	sum := t.held + t.claims.dict.size() + t.standing.bytes
	for _, c := range t.cols {
		if c != nil && c.dict != nil && c.subject.field != fieldImageDigest { // it shares the dict of fieldImage
			sum += c.dict.size()
		}
	}
	return sum
}

// shape is one distinct slot of an offer.
type shape struct {
	slot        *Slot
	slots, free uint8
}

// shapesOf returns the distinct slots of an offer, as far as a query can tell.
func shapesOf(o *Offer) []shape {
	var shapes []shape
	for i := range o.Slots[:min(len(o.Slots), MaxSlots)] {
		s := &o.Slots[i]
		at := slices.IndexFunc(shapes, func(x shape) bool { return x.slot.alike(s) })
		if at < 0 {
			at = len(shapes)
			shapes = append(shapes, shape{slot: s})
		}
		shapes[at].slots++
		if s.LeasedUntil == 0 && o.State != OfferWithdrawn {
			shapes[at].free++
		}
	}
	return shapes
}

// alike reports whether no query can tell two slots of one offer apart, but for one being free.
func (s *Slot) alike(other *Slot) bool {
	a, b := *s, *other
	a.Index, a.Card, a.LeasedUntil = b.Index, b.Card, b.LeasedUntil
	optional := [][2]*int64{{a.Compute, b.Compute}, {a.PCIeGen, b.PCIeGen}, {a.PCIeWidth, b.PCIeWidth}, {a.PowerLimit, b.PowerLimit}}
	for _, p := range optional {
		if !sameValue(p[0], p[1]) {
			return false
		}
	}
	if !sameValue(a.ECC, b.ECC) || !sameValue(a.Display, b.Display) {
		return false
	}
	a.Compute, a.PCIeGen, a.PCIeWidth, a.PowerLimit, a.ECC, a.Display = b.Compute, b.PCIeGen, b.PCIeWidth, b.PowerLimit, b.ECC, b.Display
	return a == b
}

func sameValue[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// Drop forgets an offer; false says that it was not known.
func (t *Table) Drop(rig Key, id string) bool {
	head, known := t.lookup(rig, id)
	if known {
		t.before(head)
		t.forget(head)
	}
	return known
}

// DropRig forgets all offers of a rig and returns how many.
func (t *Table) DropRig(rig Key) int {
	heads := t.headsOf(rig)
	for _, head := range heads {
		t.before(head)
		t.forget(head)
	}
	return len(heads)
}

// Note sets what the renter knows of an offer; false says that the offer is not known.
func (t *Table) Note(rig Key, id string, s Standing) bool {
	head, known := t.lookup(rig, id)
	if !known {
		return false
	}
	t.before(head)
	thin := t.thin(head, 0, nil)
	thin.standing = s
	for _, row := range t.rowsOf(head) {
		for _, c := range t.cols {
			if c != nil && c.subject.field.scope() == scopeStanding {
				v := c.subject.read(&thin.row, nil)
				c.change(row, &v)
			}
		}
	}
	t.writeStanding(head, &s, false)
	t.after(head)
	return true
}

// Expire forgets the offers that are no longer valid at a time in Unix milliseconds, and asks again the views whose answer changes with the
// time. It returns the number of offers that it forgot. Call it about once a second.
func (t *Table) Expire(now int64) int {
	var dead []uint32
	for k := range t.groups {
		heads := t.groups[k].used
		for w := range heads {
			heads[w] &^= t.groups[k].others[w]
		}
		expired := &asker{column: &column{rows: t.expires}, ranged: true, lo: -endless, hi: now}
		late := expired.chunk(k, &heads)
		for w, word := range late {
			for ; word != 0; word &= word - 1 {
				dead = append(dead, uint32(k*chunkRows+w*64+lowest(word)))
			}
		}
	}
	for _, head := range dead {
		t.before(head)
		t.forget(head)
	}
	for _, v := range t.views {
		v.turn(now)
	}
	return len(dead)
}

// Get returns an offer as it was put.
func (t *Table) Get(rig Key, id string) (o *Offer, s Standing, raw []byte, known bool) {
	head, known := t.lookup(rig, id)
	if !known {
		return nil, Standing{}, nil, false
	}
	raw = t.pack.unpack(t.rigOf(head), *t.sealed.at(head))
	return t.decode(head), t.standingOf(head), raw, true
}

// Each visits all offers with their sealed bytes, in no order, until visit returns false.
func (t *Table) Each(visit func(rig Key, id string, raw []byte) bool) {
	for head := range t.high {
		if !t.isHead(head) {
			continue
		}
		if !visit(t.rigOf(head), t.idOf(head), t.pack.unpack(t.rigOf(head), *t.sealed.at(head))) {
			return
		}
	}
}
