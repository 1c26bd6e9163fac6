package market

// lookup returns the first row of an offer.
func (t *Table) lookup(rig Key, id string) (uint32, bool) {
	for _, head := range t.headsOf(rig) {
		if t.idOf(head) == id {
			return head, true
		}
	}
	return 0, false
}

// headsOf returns the first rows of a rig's offers.
func (t *Table) headsOf(rig Key) []uint32 {
	code, known := t.keys.lookup(&value{key: rig})
	if !known || int(code/chunkRows) >= len(t.firstOf.chunks) {
		return nil
	}
	var heads []uint32
	for next := *t.firstOf.at(code); next != 0; next = *t.nextOf.at(next - 1) {
		heads = append(heads, next-1)
	}
	return heads
}

func (t *Table) offersOf(rig Key) int { return len(t.headsOf(rig)) }

func (t *Table) rigOf(head uint32) Key {
	code, _ := t.rigs.get(head)
	return *t.keys.keys.at(uint32(code))
}

func (t *Table) idOf(head uint32) string {
	v := t.cols[fieldOfferID].get(head)
	return v.text
}

func (t *Table) isHead(row uint32) bool {
	g := &t.groups[row/chunkRows]
	return g.used.has(row%chunkRows) && !g.others.has(row%chunkRows)
}

// rowsOf returns all rows of an offer, the first one first.
func (t *Table) rowsOf(head uint32) []uint32 {
	return append([]uint32{head}, t.more[head]...)
}

// headOf returns the first row of a row's offer.
func (t *Table) headOf(row uint32) uint32 {
	if t.groups[row/chunkRows].others.has(row % chunkRows) {
		return t.firstRow[row]
	}
	return row
}

// claim takes rows for a new offer and returns the first. The offer's key is written at once: its other offers are found by it.
func (t *Table) claim(o *Offer, rows int) uint32 {
	head := t.take()
	t.sealed.reach(head)
	t.nextOf.reach(head)
	for range rows - 1 {
		row := t.take()
		t.more[head] = append(t.more[head], row)
		t.firstRow[row] = head
	}
	if rows > 1 {
		for i, row := range t.rowsOf(head) {
			g := &t.groups[row/chunkRows]
			g.shared.add(row % chunkRows)
			if i > 0 {
				g.others.add(row % chunkRows)
			}
		}
	}
	code := t.keys.intern(&value{key: o.Rig})
	t.rigs.set(head, true, int64(code))
	first := t.firstOf.reach(code)
	*t.nextOf.at(head), *first = *first, head+1
	t.count++
	return head
}

func (t *Table) take() uint32 {
	row := t.high
	if n := len(t.unused); n > 0 {
		row, t.unused = t.unused[n-1], t.unused[:n-1]
	} else {
		t.high++
	}
	if int(row/chunkRows) == len(t.groups) {
		t.groups = append(t.groups, group{})
	}
	t.groups[row/chunkRows].used.add(row % chunkRows)
	t.free.reach(row)
	t.slots.reach(row)
	return row
}

// forget erases an offer and tells the views.
func (t *Table) forget(head uint32) {
	t.erase(head)
	for _, v := range t.views {
		v.settle()
	}
}

// erase empties an offer's rows.
func (t *Table) erase(head uint32) {
	rig, _ := t.rigs.get(head)
	for next := t.firstOf.at(uint32(rig)); *next != 0; next = t.nextOf.at(*next - 1) {
		if *next == head+1 {
			*next = *t.nextOf.at(head)
			break
		}
	}
	t.held -= len(*t.sealed.at(head))
	*t.sealed.at(head), *t.nextOf.at(head) = "", 0
	if code, known := t.standings.get(head); known {
		t.standing.release(uint32(code))
	}
	rows := t.rowsOf(head)
	delete(t.more, head)
	for _, row := range rows {
		delete(t.firstRow, row)
		for _, c := range t.cols {
			if c != nil {
				c.clear(row)
			}
		}
		t.claims.clear(row)
		g := &t.groups[row/chunkRows]
		g.used.drop(row % chunkRows)
		g.shared.drop(row % chunkRows)
		g.others.drop(row % chunkRows)
		*t.free.at(row), *t.slots.at(row) = 0, 0
		t.unused = append(t.unused, row)
	}
	t.keys.release(uint32(rig))
	t.count--
}

// write fills an offer's rows, one for each shape; fresh says that they have nothing yet.
func (t *Table) write(head uint32, o *Offer, shapes []shape, s *Standing, fresh bool) {
	r := Row{Offer: o, Standing: s}
	for i, row := range t.rowsOf(head) {
		for _, c := range t.cols {
			if c == nil {
				continue
			}
			v := c.subject.read(&r, shapes[i].slot)
			c.write(row, &v, fresh)
		}
		words := claimWords(o)
		t.claims.write(row, &words, fresh)
		t.issued.set(row, true, o.Issued)
		t.expires.set(row, true, o.Expires)
		*t.free.at(row), *t.slots.at(row) = shapes[i].free, shapes[i].slots
	}
	t.writeStanding(head, s, fresh)
}

// claimWords are the claims of an offer that are not registered, each as it is encoded.
func claimWords(o *Offer) value {
	var words []string
	for i := range o.Claims {
		if _, registered := claimNamed(o.Claims[i].Name); !registered {
			words = append(words, string(encode(o.Claims[i])))
		}
	}
	return value{known: len(words) > 0, words: words}
}

// claimOf reads a claim back.
func claimOf(words value, name string, k kind) value {
	var o Offer
	for _, w := range words.words {
		var c Claim
		if decodeOpen([]byte(w), &c) == nil {
			o.Claims = append(o.Claims, c)
		}
	}
	return o.claim(name, k)
}

// standings keeps each distinct standing once, but for its times.
type standings struct {
	codes map[string]uint32
	list  []heldStanding
	free  []uint32
	bytes int // about
}

type heldStanding struct {
	standing Standing
	text     string
	uses     int
}

func newStandings() *standings { return &standings{codes: map[string]uint32{}} }

// intern counts one more use of a standing.
func (s *standings) intern(x Standing) uint32 {
	x.FirstSeen, x.Heard = 0, 0
	text := string(encode(x))
	code, known := s.codes[text]
	if !known {
		if n := len(s.free); n > 0 {
			code, s.free = s.free[n-1], s.free[:n-1]
		} else {
			code = uint32(len(s.list))
			s.list = append(s.list, heldStanding{})
		}
		s.codes[text] = code
		s.list[code] = heldStanding{standing: x, text: text}
		s.bytes += 3 * len(text)
	}
	s.list[code].uses++
	return code
}

func (s *standings) release(code uint32) {
	h := &s.list[code]
	if h.uses--; h.uses == 0 {
		s.bytes -= 3 * len(h.text)
		delete(s.codes, h.text)
		*h = heldStanding{}
		s.free = append(s.free, code)
	}
}

func (t *Table) writeStanding(head uint32, s *Standing, fresh bool) {
	old, known := t.standings.get(head)
	t.standings.set(head, true, int64(t.standing.intern(*s)))
	if known && !fresh {
		t.standing.release(uint32(old))
	}
	t.seen.set(head, s.FirstSeen != 0, s.FirstSeen)
	t.heard.set(head, s.Heard != 0, s.Heard)
}

func (t *Table) standingOf(head uint32) Standing {
	code, known := t.standings.get(head)
	if !known {
		return Standing{}
	}
	s := t.standing.list[code].standing
	s.FirstSeen, _ = t.seen.get(head)
	s.Heard, _ = t.heard.get(head)
	return s
}

// decode returns an offer from its sealed bytes, which were verified before they were put.
func (t *Table) decode(head uint32) *Offer {
	var o Offer
	s, err := DecodeSealed(t.pack.unpack(t.rigOf(head), *t.sealed.at(head)))
	if err != nil || decodeOpen(s.Body, &o) != nil {
		return nil // the caller put bytes that are no offer
	}
	return &o
}
