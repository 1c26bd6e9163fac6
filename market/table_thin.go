package market

// thinRow is an offer with as much of it as its computed fields, its price and its order are made of: read from columns, which takes no
// longer than reading one field of a whole offer. It is used for one offer after another.
type thinRow struct {
	row      Row
	offer    Offer
	standing Standing
	slots    [MaxSlots]Slot
	pays     [1]PayMethod
	down     int64
}

// thin reads an offer from the columns.
func (t *Table) thin(head uint32, now int64, job *JobShape) *thinRow {
	r := &thinRow{}
	t.refill(r, head, now, job)
	return r
}

func (t *Table) refill(r *thinRow, head uint32, now int64, job *JobShape) {
	o := &r.offer
	o.Rig, o.Name, o.ID = t.rigOf(head), t.text(fieldRig, head), t.text(fieldOfferID, head)
	o.State, o.Simulated = OfferState(t.text(fieldState, head)), t.must(fieldSimulated, head) == 1
	o.Issued, _ = t.issued.get(head)
	o.Expires, _ = t.expires.get(head)
	o.Prices = Prices{
		Currency: t.text(fieldCurrency, head),
		Slot:     Rate(t.must(fieldPrice, head)), Disk: Rate(t.must(fieldDiskPrice, head)),
		In: Rate(t.must(fieldInPrice, head)), Out: Rate(t.must(fieldOutPrice, head)),
	}
	o.Rules = Rules{Brings: t.must(fieldBrings, head) == 1, Credit: t.must(fieldCredit, head)}
	if o.Rules.Credit == endless {
		o.Rules.Credit = Unlimited
	}
	o.Host = HostFacts{
		SlotThreads: t.must(fieldCPUThreads, head), DiskFree: t.must(fieldDiskFree, head) * bytesPerMB,
		SlotUp: t.must(fieldSlotUp, head), SlotDown: t.must(fieldSlotDown, head),
	}
	if job != nil && job.Image != "" {
		images := t.cols[fieldImage].get(head)
		o.Host.Images = images.images
	}
	o.Net = NetFacts{Reach: t.text(fieldReach, head), Country: t.text(fieldGeolocation, head)}
	if down, known := t.number(fieldInetDown, head); known {
		r.down = down
		o.Net.Down = &r.down
	}
	o.Pays = nil
	if t.must(fieldPayAuto, head) == 1 {
		r.pays[0] = PayMethod{Settles: SettlesInstantly}
		o.Pays = r.pays[:]
	}
	slots, free := t.must(fieldSlotsTotal, head), t.must(fieldFreeSlots, head)
	for i := range slots {
		r.slots[i] = Slot{Index: uint8(i), LeasedUntil: 1}
		if i < free {
			r.slots[i].LeasedUntil = 0
		}
	}
	o.Slots = r.slots[:slots]
	r.standing = t.standingOf(head)
	r.row = Row{Offer: o, Standing: &r.standing, Job: job, Now: now}
}

// number returns the number that a row has in a field of numbers.
func (t *Table) number(f fieldID, row uint32) (int64, bool) {
	c := t.cols[f]
	n, known := c.rows.get(row)
	if known && c.dict != nil && c.dict.kind.isNumber() {
		n = *c.dict.nums.at(uint32(n))
	}
	return n, known
}

// must is number of a field that every offer has, and 0 of any other.
func (t *Table) must(f fieldID, row uint32) int64 {
	n, known := t.number(f, row)
	if !known {
		return 0
	}
	return n
}

// text returns the word that a row has in a field of single words; "" is unknown.
func (t *Table) text(f fieldID, row uint32) string {
	c := t.cols[f]
	code, known := c.rows.get(row)
	if !known {
		return ""
	}
	return plainText(*c.dict.texts.at(uint32(code)))
}
