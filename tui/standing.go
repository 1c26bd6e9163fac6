package tui

import (
	"slices"
	"strconv"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// Sources of an offer, as view.Offer names them.
const (
	fromOwner      = "owner"
	fromSnapshot   = "snapshot"
	fromRemembered = "remembered"
)

// rigName names a rig as its list row does: the name that the user gave first.
func rigName(v *view.Offer) string { return view.Named(v.GivenName, v.Rig) }

// remembered reports whether nothing but this machine's own disk speaks for an offer now.
func remembered(v *view.Offer) bool { return v.Source == fromRemembered }

// heard says in five columns whose word an offer is and how old: a full dot for its rig's own, an open one for the list of another rig,
// a small one for what this machine remembers.
func (o *offers) heard(v *view.Offer) string {
	sign := map[string]string{fromOwner: o.look.sign.now, fromSnapshot: o.look.sign.later, fromRemembered: o.look.sign.dot}[v.Source]
	switch {
	case sign == "":
		return "?"
	case v.AgeS == nil:
		return sign + " ?"
	case *v.AgeS < 60:
		return sign + " now"
	}
	return sign + " " + roughly(*v.AgeS)
}

// roughly writes a time of a minute or more in its largest unit.
func roughly(seconds int64) string {
	switch {
	case seconds < 3600:
		return strconv.FormatInt(seconds/60, 10) + "m"
	case seconds < 86400:
		return strconv.FormatInt(seconds/3600, 10) + "h"
	}
	return strconv.FormatInt(seconds/86400, 10) + "d"
}

// ago says how long ago something was. Seconds are not told: a screen on which nothing happens stays as it is.
func ago(seconds int64) string {
	if seconds < 60 {
		return "less than a minute ago"
	}
	return roughly(seconds) + " ago"
}

// word says whose word an offer is, how old that is, and whether the rig is asked again.
func (o *offers) word(v view.Offer) string {
	when := "at an unknown time"
	if v.AgeS != nil {
		age := *v.AgeS
		if v.Hash == o.detail.Hash && o.detail.AgeS != nil && !o.looked.at.IsZero() {
			age += max(0, int64(o.Clock().Sub(o.looked.at).Seconds()))
		}
		when = ago(age)
	}
	doubt := ""
	switch {
	case o.lookErr != nil && !away(o.lookErr):
		message, _ := explain(o.lookErr)
		doubt = "; asked again: " + message
	case v.Source == fromOwner:
	case o.fetching || v.Hash != o.detail.Hash:
		doubt = "; its rig is being asked"
	default:
		doubt = "; its rig was asked and keeps silent"
	}
	switch v.Source {
	case fromOwner:
		return "its rig said so " + when + doubt
	case fromSnapshot:
		text := "another rig's list"
		if v.Sources > 1 {
			text = "lists of " + strconv.FormatInt(v.Sources, 10) + " other rigs"
		}
		return text + ", " + when + doubt
	case fromRemembered:
		return "remembered, " + when + doubt
	}
	return ""
}

// jobWords names the job for which all is priced.
func jobWords(j view.JobShape) string {
	text := plural(max(1, j.GPUs), "card", "cards") + " for " + lasting(j.DurationMs)
	for _, more := range []struct {
		mb   int64
		what string
	}{{j.DiskMB, " of disk"}, {j.InMB, " in"}, {j.OutMB, " out"}} {
		if more.mb > 0 {
			text += ", " + thousands(more.mb*1_000_000, "B") + more.what
		}
	}
	return text
}

// total writes the whole price of the user's job.
func total(v *view.Offer) string {
	if v.Total == nil {
		return "?"
	}
	return money(*v.Total)
}

// start writes when the job would start.
func start(v *view.Offer) string {
	switch {
	case v.StartS == nil:
		return "?"
	case *v.StartS == 0:
		return "now"
	}
	return lasting(*v.StartS * 1000)
}

// worst writes the most that can be lost, and what the whole job costs.
func (o *offers) worst(v view.Offer, width int) []string {
	var out []string
	if v.Why != nil {
		for i, l := range wrap(v.Why.Worst.Text, max(1, width-2)) {
			sign := "  "
			if i == 0 {
				sign = o.look.sign.warn + " "
			}
			out = append(out, o.look.warn.on(sign+l))
		}
	}
	return out
}

// mine tells what the offer means for the user's own job, and how much it is worth to believe it.
func (o *offers) mine(v view.Offer, add func(label, text string)) {
	if v.Total != nil {
		text := money(*v.Total) + " for " + jobWords(o.job)
		if v.StartS != nil {
			text += "; starts " + map[bool]string{true: "at once", false: "in about " + lasting(*v.StartS*1000)}[*v.StartS == 0]
		}
		add("my job", text)
	}
	add("heard", o.word(v))
}

// why lists what was checked, what is only claimed and what nobody told.
func (o *offers) why(v view.Offer, width int) []string {
	if v.Why == nil {
		var out []string
		for _, l := range wrap("The rig claims all of this; nothing is measured by me.", width) {
			out = append(out, o.look.faint.on(l))
		}
		return out
	}
	var out []string
	part := func(title, sign string, color paint, facts []market.Fact) {
		if len(facts) == 0 {
			return
		}
		out = append(out, o.look.strong.on(fit(title, min(width, span(title)), false, o.look.sign.more)))
		for _, f := range facts {
			for i, l := range wrap(f.Text, max(1, width-2)) {
				mark := strings.Repeat(" ", span(sign)+1)
				if i == 0 {
					mark = color.on(sign) + " "
				}
				out = append(out, mark+l)
			}
		}
	}
	part("Checked by you", o.look.sign.ok, o.look.good, v.Why.Checked)
	part("Only claimed by the rig", o.look.sign.dot, o.look.faint, v.Why.Claimed)
	part("Not known", "?", o.look.warn, v.Why.Unknown)
	return out
}

// stands says where the rig stands, and what speaks for it.
func stands(v view.Offer) string {
	if v.Country == "" {
		return ""
	}
	return ", in " + v.Country + map[string]string{
		string(market.ResidencyClaimed): " as it claims", string(market.ResidencyAddress): ", where its address is",
		string(market.ResidencyRoundTrip): ", which its address and the round trip fit", string(market.ResidencyRefuted): ", but its address is elsewhere",
	}[v.Residency]
}

// claims names what only the owner or a maker can state, registered claims first.
func claims(v view.Offer) string {
	list := slices.Clone(v.Claims)
	slices.SortStableFunc(list, func(a, b view.Claim) int {
		switch {
		case a.Registered == b.Registered:
			return strings.Compare(a.Name, b.Name)
		case a.Registered:
			return -1
		}
		return 1
	})
	texts := make([]string, len(list))
	for i, c := range list {
		texts[i] = clean(c.Name) + " " + clean(c.Text)
		if !c.Registered {
			texts[i] += " (the owner's own word)"
		}
	}
	return strings.Join(texts, ", ")
}
