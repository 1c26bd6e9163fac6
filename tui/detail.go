package tui

import (
	"strconv"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// facts tells what is known of an offer, in lines of a width. What is not known is not there.
func (o *offers) facts(v view.Offer, width int) []string {
	more := o.look.sign.more
	name := fit(model(v.Model)+" "+o.look.sign.times+" "+strconv.Itoa(v.Slots), min(width, 28), false, more)
	out := []string{o.look.strong.on(strings.TrimRight(name, " ")) + " " + o.look.warn.on(badges(v))}
	out = append(out, wrap("on "+rigName(&v), width)...)
	out = append(out, fit(strconv.Itoa(v.Free)+" of "+strconv.Itoa(v.Slots)+" free, "+strconv.FormatInt(v.MemoryGiB, 10)+" GiB each", width, false, more))
	out = append(out, o.worst(v, width)...)
	out = append(out, "")
	add := func(label, text string) {
		if text == "" {
			return
		}
		for i, l := range wrap(text, max(1, width-11)) {
			if i > 0 {
				label = ""
			}
			out = append(out, o.look.faint.on(fit(label, 10, false, more))+" "+l)
		}
	}
	o.mine(v, add)
	o.prices(v, add)
	o.lived(v, add)
	out = append(out, "")
	out = append(out, o.why(v, width)...)
	out = append(out, "")
	o.machine(v, add)
	add("id", v.ID)
	add("key", middle(v.RigKey, max(8, width-11), more))
	return out
}

// prices tells every price that there is: nothing is ever charged that has no line here.
func (o *offers) prices(v view.Offer, add func(label, text string)) {
	unit := " " + v.Price.Currency
	add("card", v.Price.Text+unit+" per card-hour")
	add("disk", orFree(v.DiskPrice, " per GB-hour"))
	if v.InPrice == v.OutPrice {
		add("traffic", orFree(v.InPrice, " per GB"))
	} else {
		add("traffic", orFree(v.InPrice, " per GB")+" in, "+orFree(v.OutPrice, " per GB")+" out")
	}
	if q, err := priceJob(v, 1, 0, market.FirstMinute); err == nil && v.SlotDetail != nil {
		add("a minute", q.Total.String()+unit+" for one card with its disk")
	}
	add("pay", ways(v))
}

// orFree writes a price. A price of nothing is a promise too.
func orFree(m view.Money, per string) string {
	if m.Micro == 0 {
		return "free"
	}
	return money(m) + per
}

// machine tells what the rig is.
func (o *offers) machine(v view.Offer, add func(label, text string)) {
	h := v.Host
	if h.SlotThreads > 0 {
		add("cpu", plural(int(h.SlotThreads), "thread", "threads")+", "+strconv.FormatInt(h.SlotMemory>>30, 10)+" GiB per card; "+h.CPU)
	}
	if h.DiskFree > 0 {
		add("disk free", strconv.FormatInt(h.DiskFree/1_000_000_000, 10)+" GB")
	}
	if h.Driver != "" {
		add("driver", h.Driver+", CUDA "+orUnknown(h.CUDA))
	}
	add("reach", v.Reach+stands(v))
	add("isolation", isolation(v))
	if len(v.Weak) > 0 {
		add("weak", o.look.sign.warn+" "+strings.Join(v.Weak, ", "))
	}
	add("images", strings.Join(v.Images, ", "))
	if r := v.Rules; r.MaxMs > 0 {
		add("lease", lasting(r.MinMs)+" to "+lasting(r.MaxMs)+", a receipt every "+lasting(r.IntervalMs))
		add("internet", internet(v))
	}
	if trustedOnly(v) {
		add("bids", "trusted owners only: send the rig's owner your key, which 4 shows")
	}
	add("content", v.Content)
	add("claims", claims(v))
}

// isolation says what keeps jobs apart, and how much of it was seen to hold.
func isolation(v view.Offer) string {
	switch tried := len(v.Protections) + len(v.Weak); {
	case unisolated(v):
		return "none: jobs are plain processes of the rig's owner"
	case tried > 0:
		return v.Isolation + ", " + strconv.Itoa(len(v.Protections)) + " of " + plural(tried, "protection holds", "protections hold")
	}
	return v.Isolation
}

// internet says whether jobs reach it, and how fast.
func internet(v view.Offer) string {
	if !v.Egress {
		return "jobs do not reach it"
	}
	text := "jobs reach it"
	for _, way := range []struct {
		bits int64
		name string
	}{{v.Host.SlotUp, " up"}, {v.Host.SlotDown, " down"}} {
		if way.bits > 0 {
			text += ", " + thousands(way.bits, "bit/s") + way.name
		}
	}
	return text
}
