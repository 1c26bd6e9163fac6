package tui

import (
	"strconv"
	"strings"
)

// render shows the form: its fields, and the whole price below them.
func (f *form) render(width, height int) []string {
	o, at, err := f.order()
	head := " " + f.look.strong.on(fit(f.title(), min(span(f.title()), max(1, width-span(badges(f.offer))-3)), false, f.look.sign.more)) +
		" " + f.look.warn.on(badges(f.offer))
	below := f.quote(o, at, err, width-2, height >= 16)
	room := max(1, height-1-len(below))
	if height >= 16 {
		room = max(1, room-2)
	}
	lines := []string{head}
	if height >= 16 {
		lines = append(lines, "")
	}
	from, to := around(f.at, fieldCount, room)
	for i := from; i < to; i++ {
		lines = append(lines, f.fields[i].render(f.look, i == f.at, f.ghost(i, o), width))
	}
	if height >= 16 {
		lines = append(lines, "")
	}
	for _, l := range below {
		lines = append(lines, " "+l)
	}
	return block(lines, width, height)
}

// around returns the window of a height over n lines that shows one of them.
func around(at, n, height int) (from, to int) {
	height = max(1, min(height, n))
	from = max(0, min(at-height/2, n-height))
	return from, from + height
}

// quote tells the whole price: how it comes about, what a minute costs, and what the money can at most be. In short form it
// keeps to the last.
func (f *form) quote(o order, at int, err error, width int, long bool) []string {
	put := func(p paint, text string) string { return p.on(fit(text, width, false, f.look.sign.more)) }
	if f.fault != "" || err != nil {
		why := f.fault
		if why == "" {
			why, _ = explainField(err)
			why = strings.ToLower(f.fields[at].label) + ": " + why
		}
		return []string{put(f.look.bad, f.look.sign.bad+" "+why)}
	}
	unit := " " + o.currency
	most := put(f.look.strong, "At most "+o.budget.String()+unit+": the rig ends the job there.")
	if !long {
		most = put(f.look.strong, "At most "+o.budget.String()+unit+" in all.")
	}
	if o.lasts < o.ms {
		most = put(f.look.warn, f.look.sign.warn+" At most "+o.budget.String()+unit+", which pays for "+lasting(o.lasts)+" of "+lasting(o.ms)+".")
	}
	if !long {
		return []string{put(f.look.faint, o.bill.Total.String()+unit+" for "+lasting(o.ms)+", a minute "+o.minute.String()), most}
	}
	times := " " + f.look.sign.times + " "
	rows := []string{f.amount("cards", strconv.Itoa(o.cards)+times+f.offer.Price.Text+unit+" an hour"+times+lasting(o.ms), o.bill.Slot.String()+unit, width)}
	if f.offer.DiskPrice.Micro > 0 {
		disk := strconv.FormatInt(diskOf(f.offer, o.cards, o.disk)/1000, 10) + " GB" + times + f.offer.DiskPrice.Text + unit + " an hour" + times + lasting(o.ms)
		if f.offer.SlotDetail == nil && o.disk == 0 {
			disk = "asking the rig" + f.look.sign.more
		}
		rows = append(rows, f.amount("disk", disk, o.bill.Disk.String()+unit, width))
	}
	rows = append(rows, f.look.strong.on(f.amount("whole price", "", o.bill.Total.String()+unit, width)),
		f.amount("a minute", "", o.minute.String()+unit, width))
	if f.offer.InPrice.Micro > 0 || f.offer.OutPrice.Micro > 0 {
		rows = append(rows, put(f.look.faint, "Traffic adds "+f.offer.InPrice.Text+" in and "+f.offer.OutPrice.Text+" out per GB, within the budget."))
	}
	rows = append(rows, most, put(f.look.faint, "Only running time is billed: not the start, not a fault of the rig."))
	hint := wrap(f.fields[f.at].label+": "+f.hint(o)+".", width)
	for _, text := range hint[:min(len(hint), 2)] {
		rows = append(rows, put(f.look.faint, text))
	}
	return rows
}

// amount is one line of the price.
func (f *form) amount(label, how, sum string, width int) string {
	columns := min(width, 72)
	left := fit(label, 12, false, f.look.sign.more) + fit(how, max(0, columns-12-1-span(sum)), false, f.look.sign.more)
	return spread(left, sum, columns)
}
