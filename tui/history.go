package tui

import (
	"strconv"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// ways says how a lease of an offer can be paid.
func ways(v view.Offer) string {
	var parts []string
	for _, p := range v.Pays {
		how := " (at once)"
		if p.Settles == market.SettlesByHand {
			how = " (a person confirms it)"
		}
		parts = append(parts, clean(p.Name)+how)
	}
	switch {
	case len(parts) == 0 && v.OnCredit:
		return "on credit, settled later"
	case len(parts) == 0:
		return ""
	case v.OnCredit:
		return "on credit to whom its owner trusts; else ahead by " + strings.Join(parts, ", ")
	}
	return "ahead by " + strings.Join(parts, ", ")
}

// lived says what the user has lived through with the owner of a rig, and what the rig says of others.
func (o *offers) lived(v view.Offer, add func(label, text string)) {
	if o.past != nil && v.Owner != "" && o.past.Owner == v.Owner {
		add("with you", past(*o.past))
	}
	if v.Shown > 0 {
		add("others", "the rig counts "+plural(int(v.Shown), "lease", "leases")+" whose outcome both sides signed; you cannot know with whom")
	}
}

// past says in one line what was lived through with an owner: counts, and never one number for all.
func past(h view.History) string {
	if h.Leases == 0 {
		return "nothing yet"
	}
	parts := []string{plural(h.Leases, "lease", "leases"), h.Hours + " card-hours"}
	for _, m := range h.Paid {
		parts = append(parts, "paid "+money(m))
	}
	for _, n := range []struct {
		n    int
		text string
	}{
		{h.Completed, " completed"},
		{h.EndedByRig, " ended early by the rig"},
		{h.EndedByMe, " ended early by you"},
		{h.Unpaid, " ended unpaid"},
		{h.Disputed, " disputed"},
		{h.Void, " came to nothing"},
	} {
		if n.n > 0 {
			parts = append(parts, strconv.Itoa(n.n)+n.text)
		}
	}
	for _, f := range h.Faults {
		parts = append(parts, strconv.Itoa(f.Count)+" by "+clean(f.Name))
	}
	if h.StartMs > 0 {
		parts = append(parts, "starts within "+lasting(max(1000, h.StartMs)))
	}
	return strings.Join(parts, ", ")
}
