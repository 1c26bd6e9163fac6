package market_test

import (
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func TestABidIsPaidInAWayThatTheOfferTakes(t *testing.T) {
	strict := func(o *market.Offer) { o.Rules.Credit = 0 } // an offer that gives nothing on credit
	tests := []struct {
		name   string
		change func(*market.Offer, *market.Bid)
		code   market.Code
	}{
		{"ahead, by one of its methods", func(o *market.Offer, _ *market.Bid) { strict(o) }, ""},
		{"ahead, by another", func(o *market.Offer, b *market.Bid) { b.Pay = "hand" }, market.CodePayMethod},
		{"ahead, where no method is taken", func(o *market.Offer, _ *market.Bid) { o.Pays = nil }, market.CodePayMethod},
		{"later, where no credit is given", func(o *market.Offer, b *market.Bid) { strict(o); b.Pay = "" }, market.CodePayAhead},
		{"later, on credit", func(o *market.Offer, b *market.Bid) { o.Rules.Credit, b.Limits.Credit, b.Pay = 9000, 9000, "" }, ""},
		{"later, on no credit", func(o *market.Offer, b *market.Bid) { o.Rules.Credit, b.Limits.Credit, b.Pay = 9000, 0, "" }, market.CodeBudgetTooSmall},
		{"ahead, with credit beside it", func(o *market.Offer, b *market.Bid) { o.Rules.Credit, b.Limits.Credit = 9000, 9000 }, ""},
		{"ahead, with more credit than is given", func(o *market.Offer, b *market.Bid) { o.Rules.Credit, b.Limits.Credit = 9000, 9001 }, market.CodeBadLimits},
		{"later, with a guarantee for more credit", func(o *market.Offer, b *market.Bid) {
			strict(o)
			b.Pay, b.Guarantee, b.Limits.Credit = "", market.Hash{1}, 9001
		}, ""},
		{"later, with a guarantee for any credit", func(o *market.Offer, b *market.Bid) {
			strict(o)
			b.Pay, b.Guarantee, b.Limits.Credit = "", market.Hash{1}, market.Unlimited
		}, market.CodeBadLimits},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o, b := markettest.PaidOffer(), markettest.PaidBid()
			b.Limits.Credit, b.Guarantee = 0, market.Hash{}
			hash := b.Offer
			test.change(&o, &b)
			if err := market.Admit(o, hash, b, markettest.Now); market.CodeOf(err) != test.code {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnOfferNamesOnlyWaysOfPayingThatHoldOnItsNetwork(t *testing.T) {
	hand := market.PayMethod{Name: "hand", Settles: market.SettlesByHand}
	lab := market.PayMethod{Name: market.PayLab, Settles: market.SettlesInstantly}
	tests := []struct {
		name    string
		network string
		pays    []market.PayMethod
		code    market.Code
	}{
		{"none", "main", nil, ""},
		{"two", "lab-1", []market.PayMethod{lab, hand}, ""},
		{"play money in earnest", "main", []market.PayMethod{lab}, market.CodeBadRecord},
		{"a balance", "lab-1", []market.PayMethod{{Name: market.PayBalance, Settles: market.SettlesInstantly}}, market.CodeBadRecord},
		{"one twice", "main", []market.PayMethod{hand, hand}, market.CodeBadRecord},
		{"one that settles by a wonder", "main", []market.PayMethod{{Name: "hand", Settles: "wonder"}}, market.CodeBadRecord},
		{"one that is a path", "main", []market.PayMethod{{Name: "../hand", Settles: market.SettlesByHand}}, market.CodeBadRecord},
		{"too many", "main", make([]market.PayMethod, market.MaxPayMethods+1), market.CodeBadRecord},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564))
			o.Pays = test.pays
			if err := o.Validate(test.network); market.CodeOf(err) != test.code {
				t.Errorf("got %v", err)
			}
		})
	}
	o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564))
	o.History = &market.ChainEnd{}
	if market.CodeOf(o.Validate("main")) != market.CodeBadRecord {
		t.Error("a history of nothing is taken")
	}
}

func TestWhoSignsAndWhenAJobIsIdleHasBounds(t *testing.T) {
	key := func(n byte) market.Key { return market.KeyOf(markettest.Private(string(n))) }
	tests := []struct {
		name   string
		change func(*market.Bid)
		fits   bool
	}{
		{"four deputies", func(b *market.Bid) { b.Deputies = []market.Key{key(1), key(2), key(3), key(4)} }, true},
		{"five deputies", func(b *market.Bid) { b.Deputies = []market.Key{key(1), key(2), key(3), key(4), key(5)} }, false},
		{"a deputy twice", func(b *market.Bid) { b.Deputies = []market.Key{key(1), key(1)} }, false},
		{"the renter as its deputy", func(b *market.Bid) { b.Deputies = []market.Key{b.Renter} }, false},
		{"nobody as deputy", func(b *market.Bid) { b.Deputies = []market.Key{{}} }, false},
		{"an idle stop", func(b *market.Bid) { b.Idle = &market.IdleStop{Permille: 1000, ForMs: 60_000} }, true},
		{"an idle stop after no time", func(b *market.Bid) { b.Idle = &market.IdleStop{Permille: 50, ForMs: 59_999} }, false},
		{"an idle stop after more than a week", func(b *market.Bid) { b.Idle = &market.IdleStop{Permille: 50, ForMs: 7*24*3_600_000 + 1} }, false},
		{"an idle stop at no use", func(b *market.Bid) { b.Idle = &market.IdleStop{ForMs: 60_000} }, false},
		{"an idle stop above all use", func(b *market.Bid) { b.Idle = &market.IdleStop{Permille: 1001, ForMs: 60_000} }, false},
		{"a method that is a path", func(b *market.Bid) { b.Pay = "a/b" }, false},
		{"a balance as method", func(b *market.Bid) { b.Pay = market.PayBalance }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := markettest.Bid()
			test.change(&b)
			if err := b.Validate(); (err == nil) != test.fits {
				t.Errorf("bid: %v", err)
			}
			terms := markettest.Terms()
			terms.Pay, terms.Idle, terms.Deputies = b.Pay, b.Idle, b.Deputies
			raw := market.SealTerms(markettest.Network, markettest.Rig(), terms).Encode()
			if _, _, err := market.OpenGrant(markettest.Network, raw); (err == nil) != test.fits {
				t.Errorf("terms: %v", err)
			}
		})
	}
}

func TestTermsEchoHowABidIsPaidAndWhoSigns(t *testing.T) {
	o, b := markettest.PaidOffer(), markettest.PaidBid()
	b.Idle = &market.IdleStop{Permille: 50, ForMs: 600_000}
	b.Deputies = []market.Key{market.KeyOf(markettest.Deputy())}
	slots, err := market.Pick(o, b)
	if err != nil {
		t.Fatal(err)
	}
	granted := market.Grant(o, b, market.Hash{5}, slots, markettest.Now, market.Nonce{9})
	if err := market.CheckGrant(granted, o, b, market.Hash{5}, markettest.Now); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*market.Terms){
		"payment method": func(t *market.Terms) { t.Pay = "hand" },
		"idle stop":      func(t *market.Terms) { t.Idle = &market.IdleStop{Permille: 51, ForMs: 600_000} },
		"no idle stop":   func(t *market.Terms) { t.Idle = nil },
		"deputies":       func(t *market.Terms) { t.Deputies = []market.Key{market.KeyOf(markettest.Guarantor())} },
		"no deputies":    func(t *market.Terms) { t.Deputies = nil },
		"guarantee":      func(t *market.Terms) { t.Guarantee = market.Hash{7} },
	} {
		terms := granted
		spoil(&terms)
		if err := market.CheckGrant(terms, o, b, market.Hash{5}, markettest.Now); market.CodeOf(err) != market.CodeGrantMismatch {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWaysOfPayingAreAskedForByName(t *testing.T) {
	o := marketOffer("attic", marketSlot(0, "RTX_4090", 24564))
	o.Pays = []market.PayMethod{{Name: "hand", Settles: market.SettlesByHand}, {Name: "lightning", Settles: market.SettlesInstantly}}
	o.Rules.Credit = 0
	for text, want := range map[string]bool{
		"pay=hand": true, "pay=lab": false, "pay in [lab,hand]": true, "pay=none": false, "pay!=lab": true, "pay=light*": true,
		"pay_auto=true": true, "pay_auto=false": false,
	} {
		if _, got := mustParse(t, text).Match(o); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	o.Pays, o.Rules.Credit = o.Pays[:1], 5
	for text, want := range map[string]bool{"pay=none": true, "pay_auto=true": false, "payment=hand": true} {
		if _, got := mustParse(t, text).Match(o); got != want {
			t.Errorf("%s with credit: %t", text, got)
		}
	}
}
