package market_test

import (
	"strings"
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func TestAnOutcomeIsTheRigsWordWithinBounds(t *testing.T) {
	terms := markettest.Terms()
	open := func(o market.Outcome) error {
		_, _, err := market.OpenOutcome(markettest.Network, market.SealOutcome(markettest.Network, markettest.Rig(), o).Encode(), terms)
		return err
	}
	good := markettest.Outcome(market.LeaseID{1})
	if err := open(good); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(o *market.Outcome){
		"no time":           func(o *market.Outcome) { o.At = 0 },
		"a negative time":   func(o *market.Outcome) { o.DiskAt = -1 },
		"too many cards":    func(o *market.Outcome) { o.Cards = make([]market.CardWipe, market.MaxSlots+1) },
		"a negative memory": func(o *market.Outcome) { o.Cards = []market.CardWipe{{Bytes: -1}} },
		"a reason too long": func(o *market.Outcome) { o.Cards = []market.CardWipe{{Why: strings.Repeat("x", 201)}} },
	} {
		o := good
		if spoil(&o); market.CodeOf(open(o)) != market.CodeBadRecord {
			t.Errorf("%s: %v", name, open(o))
		}
	}
	other := market.SealOutcome(markettest.Network, markettest.Renter(), good).Encode()
	if _, _, err := market.OpenOutcome(markettest.Network, other, terms); market.CodeOf(err) != market.CodeBadSignature {
		t.Errorf("signed by the renter: %v", err)
	}
	if w := market.NotWiped(3, strings.Repeat("é", 150)+"\x1b"); len(w.Why) > 200 || strings.Trim(w.Why, "é") != "" {
		t.Errorf("a reason is cut to %q", w.Why)
	}
}

func TestALaterOutcomeTakesNothingBack(t *testing.T) {
	last := markettest.Outcome(market.LeaseID{1})
	first := last
	first.At, first.DiskAt = 5, 0
	if !last.Follows(first) || !last.Follows(last) || first.Follows(last) {
		t.Error("the order of outcomes is wrong")
	}
	for name, spoil := range map[string]func(o *market.Outcome){
		"another lease":       func(o *market.Outcome) { o.Lease[0] ^= 1 },
		"an earlier time":     func(o *market.Outcome) { o.At-- },
		"a disk that is back": func(o *market.Outcome) { o.DiskAt = 0 },
		"no cards":            func(o *market.Outcome) { o.Cards = nil },
	} {
		o := last
		if spoil(&o); o.Follows(last) {
			t.Errorf("%s follows", name)
		}
	}
}

func TestProtectionsAndBiddersAreAskedForByName(t *testing.T) {
	o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564))
	o.Host.Isolation, o.Host.Protections, o.Host.Weak = "runc-userns", []string{"user-namespace", "lan"}, []string{"disk-quota"}
	o.Rules.Bidders = market.BiddersTrusted
	for text, want := range map[string]bool{
		"isolation=runc-userns": true, "protections=lan": true, "protections=disk-quota": false, "protections=user-*": true,
		"protections in [x,lan]": true, "bidders=anyone": false, "bidders=trusted": true, "brings=true": false, "bring=false": true,
	} {
		if _, got := mustParse(t, text).Match(o); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	o.Host.Protections, o.Host.Weak = nil, nil // nothing was tried: unknown
	if _, fits := mustParse(t, "protections!=lan").Match(o); fits {
		t.Error("what is unknown fits")
	}
	for name, spoil := range map[string]func(o *market.Offer){
		"a protection that is no name": func(o *market.Offer) { o.Host.Weak = []string{"a b"} },
		"too many protections":         func(o *market.Offer) { o.Host.Protections = make([]string, 33) },
		"unknown bidders":              func(o *market.Offer) { o.Rules.Bidders = "friends" },
		"a long text about content":    func(o *market.Offer) { o.Rules.Content = strings.Repeat("x", 501) },
		"a negative bandwidth":         func(o *market.Offer) { o.Host.SlotDown = -1 },
	} {
		o := o
		if spoil(&o); market.CodeOf(o.Validate("main")) != market.CodeBadRecord {
			t.Errorf("%s: %v", name, o.Validate("main"))
		}
	}
}
