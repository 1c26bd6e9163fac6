package tui

import (
	"slices"
	"strings"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// payChoice is a way to pay that the form offers.
type payChoice struct {
	word   string
	method string // of the bid: empty leaves it to the agent
}

// payChoices are the ways in which an offer's lease can be paid from this machine: the agent's own choice first where there are
// several.
func payChoices(o view.Offer, mine []string) []payChoice {
	var list []payChoice
	for _, p := range o.Pays {
		if slices.Contains(mine, p.Name) {
			list = append(list, payChoice{"ahead by " + clean(p.Name), p.Name})
		}
	}
	if o.OnCredit {
		list = append(list, payChoice{"on credit", view.PayNone})
	}
	switch len(list) {
	case 0:
		return []payChoice{{"as the rig wants", ""}}
	case 1:
		list[0].method = "" // the agent finds no other
		return list
	}
	return append([]payChoice{{"as the rig wants", ""}}, list...)
}

// payField makes the field. What was chosen stays chosen where it is still there.
func payField(choices []payChoice, chosen string) field {
	var words []string
	at := 0
	for i, c := range choices {
		words = append(words, c.word)
		if c.word == chosen {
			at = i
		}
	}
	return choiceField("Pay", words, at, "how the lease is paid")
}

// method returns the method by which the lease is paid ahead as far as the form can tell: view.PayNone for credit, empty where the
// rig decides.
func (f *form) method() string {
	c := f.ways[f.fields[fieldPay].at]
	if c.method != "" || len(f.ways) > 1 {
		return c.method
	}
	if c.word == "on credit" {
		return view.PayNone
	}
	return strings.TrimPrefix(c.word, "ahead by ")
}

// payHint says what a way to pay means in money.
func (f *form) payHint(o order) string {
	first := "the first 2 minutes"
	if b, err := priceJob(f.offer, o.cards, o.disk, market.FirstSliceMs); err == nil {
		first = min(b.Total, o.budget).String() + " " + o.currency
	}
	method := f.method()
	var names []string
	settles := market.SettlesInstantly
	for _, p := range f.offer.Pays {
		names = append(names, p.Name)
		if p.Name == method {
			settles = p.Settles
		}
	}
	switch {
	case method == view.PayNone:
		return "nothing is paid ahead: what both sign is owed, and settled later with p on page 2"
	case method == "as the rig wants" && len(f.offer.Pays) > 0 && !f.offer.OnCredit:
		return "the rig wants to be paid ahead by " + listed(names) + "; this machine has no program for it"
	case method == "", method == "as the rig wants":
		return "on credit where the rig's owner trusts you, else paid ahead in slices of at most an hour, " + first + " before the start"
	case settles == market.SettlesByHand:
		return "paid ahead in slices of at most an hour, " + first + " before the start: you are shown what to pay each time, and must be there"
	}
	return "paid ahead by itself in slices of at most an hour, " + first + " before the start; what is not used stays yours"
}

// awayHint says what it means in money that the job goes on without this machine.
func (f *form) awayHint(o order) string {
	away := 10 * time.Minute
	if text := f.fields[fieldAway].value(); text != "" {
		d, err := parseSpan(text)
		if err != nil {
			return "how long the job keeps running while this machine is off"
		}
		away = d
	}
	method := f.method()
	if method != view.PayNone {
		away += away / 4 // as the agent pays ahead: so that little is paid at a time
	}
	b, err := priceJob(f.offer, o.cards, o.disk, min(away.Milliseconds(), o.lasts))
	if err != nil {
		return "how long the job keeps running while this machine is off"
	}
	risk := min(b.Total, o.budget).String() + " " + o.currency
	text := "keeps running for so long while this machine is off: "
	switch method {
	case view.PayNone:
		return text + "up to " + risk + " that you did not watch can be owed then"
	case "", "as the rig wants":
		return text + "up to " + risk + " are paid ahead for it, or owed without your watching"
	}
	return text + "up to " + risk + " are paid ahead for it, which a rig that cheats could keep"
}

// hint says what the field under the cursor is for.
func (f *form) hint(o order) string {
	switch f.at {
	case fieldPay:
		return f.payHint(o)
	case fieldAway:
		return f.awayHint(o)
	}
	return f.fields[f.at].help
}

func listed(names []string) string {
	if len(names) == 0 {
		return "nothing it names"
	}
	return clean(strings.Join(names, ", "))
}
