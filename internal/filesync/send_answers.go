package filesync

// read takes the receiver's answers until its result.
func (snd *sender) read() error {
	var buf []byte
	for {
		kind, n, err := snd.s.l.next()
		if err != nil {
			return err
		}
		if n > cap(buf) {
			buf = make([]byte, n)
		}
		buf = buf[:n]
		if err := snd.s.l.payload(buf); err != nil {
			return err
		}
		if kind == frameError {
			snd.s.said(decodeError(buf))
			return nil
		}
		if snd.s.dead() {
			continue // only the other side's word or end is waited for
		}
		if kind == frameResult {
			return snd.confirmed(buf)
		}
		if err := snd.answer(kind, buf); err != nil {
			snd.s.stop(err)
		}
	}
}

func (snd *sender) confirmed(buf []byte) error {
	res, err := decodeResult(buf)
	if err != nil {
		return err
	}
	snd.mu.Lock()
	defer snd.mu.Unlock()
	if !snd.over() {
		return badFrame("a result before the end")
	}
	snd.end = res
	return nil
}

func (snd *sender) answer(kind byte, buf []byte) error {
	d := decoder{b: buf}
	snd.mu.Lock()
	defer snd.mu.Unlock()
	switch kind {
	case frameNeed:
		return snd.need(&d)
	case frameHave:
		return snd.hashes(&d)
	case frameHaveEnd:
		id := d.size()
		if err := d.end(); err != nil {
			return err
		}
		e := snd.comparing(id)
		if e == nil {
			return badFrame("an end of hashes for entry %d", id)
		}
		snd.ask(int(id), true)
		return nil
	}
	return badFrame("a frame of type %#x to a sender", kind)
}

// need takes answers for entries in their order. snd.mu is held.
func (snd *sender) need(d *decoder) error {
	first, count := d.size(), d.size()
	answers := d.bytes(count)
	if err := d.end(); err != nil {
		return err
	}
	if snd.fresh || first != int64(snd.answers) || count > int64(len(snd.entries)-snd.answers) {
		return badFrame("answers out of turn")
	}
	for i, a := range answers {
		id := snd.answers + i
		e := snd.entries[id]
		if a > answerSkip || e.kind != kindFile && (a == answerFull || a == answerDelta) {
			return badFrame("an unknown answer")
		}
		switch a {
		case answerNone:
			e.state = sendSame
			if e.kind == kindFile {
				snd.s.m.did("", 1, e.size, 0)
			}
		case answerSkip:
			e.state = sendSkipped
		case answerFull:
			snd.pending++
			snd.ask(id, e.size > smallFile)
		case answerDelta:
			snd.pending++
			e.have = &haves{}
		}
	}
	snd.answers += len(answers)
	snd.wake.Broadcast()
	return nil
}

// comparing is the entry id if hashes for it are on their way. snd.mu is held.
func (snd *sender) comparing(id int64) *sendEntry {
	if id < 0 || id >= int64(snd.answers) {
		return nil
	}
	if e := snd.entries[id]; e.state == sendListed && e.have != nil {
		return e
	}
	return nil
}

func (snd *sender) ask(id int, delta bool) {
	snd.entries[id].state = sendAsked
	snd.wanted = append(snd.wanted, want{id: id, delta: delta})
	snd.wake.Broadcast()
}

// hashes takes hashes of what the receiver has. snd.mu is held.
func (snd *sender) hashes(d *decoder) error {
	id, from, first := d.size(), d.byte(), d.size()
	e := snd.comparing(id)
	if d.err != nil || e == nil || from > fromOld || len(d.b)%32 != 0 {
		return badFrame("hashes for entry %d", id)
	}
	list := e.have.at(from)
	n := int64(len(d.b) / 32)
	if first != int64(len(*list)) || first+n > chunks(e.size) {
		return badFrame("too many hashes for entry %d", id)
	}
	for range n {
		*list = append(*list, d.hash())
	}
	return d.end()
}
