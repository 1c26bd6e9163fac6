package host_test

import (
	"strings"
	"testing"
	"time"

	"haggle/internal/host"
	"haggle/internal/view"
	"haggle/market"
	"haggle/runtime"
)

func TestARealCardIsRentedByOwnersThatAreTrustedAndByNobodyElse(t *testing.T) {
	var engine *giving
	inBubbleOf(t, func(r *rig) {
		_, engine = realRig(r, 2)
		r.config.Egress = runtime.NetworkInternet
		r.config.Machine.SlotUp, r.config.Machine.SlotDown = 10_000_000, 50_000_000
	}, func(t *testing.T, r *rig) {
		o, _, _ := r.offer()
		if o.State != market.OfferOpen || o.Simulated || o.Rules.Bidders != market.BiddersTrusted || o.Rules.Credit != int64(host.DefaultCredit) || !o.Rules.Egress {
			t.Errorf("offer %+v", o)
		}
		a := newRenter(r, "ann")
		a.order([]string{"probe", "polite"}, nil)
		err := a.send()
		wantCode(t, err, market.CodeNotTrusted)
		if words := market.Explain(err); !strings.Contains(words.Message, a.self().String()) || !strings.Contains(words.Hint, "`haggle status`") {
			t.Errorf("a stranger reads %+v", words)
		}
		if err := r.Trust(t.Context(), a.self(), named("Ann next door")); err != nil {
			t.Fatal(err)
		}
		r.stop()
		r.start()
		a.rent("probe", "polite")
		a.wantState(market.JobRunning, "")
		if !a.terms.Egress || a.terms.Resources.UpBits != 10_000_000 || a.terms.Resources.DiskMB != market.DefaultDiskMB {
			t.Errorf("terms %+v", a.terms)
		}
		spec := engine.specs[len(engine.specs)-1]
		want := runtime.Network{Mode: runtime.NetworkInternet, UpBits: 10_000_000, DownBits: 50_000_000}
		if spec.Network != want || spec.DiskBytes != 10e9 || len(spec.Devices) != 1 || spec.Devices[0] != engine.about.Devices[0] {
			t.Errorf("spec %+v", spec)
		}
		list, err := r.TrustedOwners(t.Context())
		if err != nil || len(list) != 1 || list[0].Name != "Ann next door" || list[0].Key != a.self().String() {
			t.Errorf("trusted are %+v, %v", list, err)
		}
		if err := r.Distrust(t.Context(), a.self()); err != nil {
			t.Fatal(err)
		}
		wantCode(t, r.Distrust(t.Context(), a.self()), market.CodeOwnerUnknown)
		pass(20 * time.Second)
		a.wantState(market.JobRunning, "") // what is signed goes on
		b := newRenter(r, "ann")
		b.order([]string{"probe", "count", "5"}, func(b *market.Bid, _ *market.BidMessage) { b.Nonce = market.Nonce{9} })
		wantCode(t, b.send(), market.CodeNotTrusted)
	})
}

func TestACardThatTheEngineCannotGiveAwayIsShownAndNotRented(t *testing.T) {
	inBubbleOf(t, func(r *rig) { realRig(r, 1) }, func(t *testing.T, r *rig) {
		if o, _, _ := r.offer(); o.State != market.OfferOpen || len(o.Slots) != 1 {
			t.Errorf("offer is %s with %d slots", o.State, len(o.Slots))
		}
		cards, err := r.Cards(t.Context())
		if err != nil || len(cards) != 2 || !cards[0].Passable || cards[0].Why != "" || cards[1].Passable || cards[1].Why == "" {
			t.Errorf("cards %+v, %v", cards, err)
		}
	})
	inBubbleOf(t, func(r *rig) { realRig(r, 0) }, func(t *testing.T, r *rig) {
		if o, _, _ := r.offer(); o.State != market.OfferListed || len(o.Slots) != 2 {
			t.Errorf("offer is %s with %d slots", o.State, len(o.Slots))
		}
		a := newRenter(r, "ann")
		if err := r.Trust(t.Context(), a.self(), named("")); err != nil {
			t.Fatal(err)
		}
		a.order([]string{"probe", "polite"}, nil)
		wantCode(t, a.send(), market.CodeNotRentable)
	})
}

func TestAnOwnerOwesNoMoreThanItsCreditOverAllItsLeases(t *testing.T) {
	inBubbleOf(t, func(r *rig) {
		realRig(r, 2)
		r.config.Credit = 30_000 // 300 s of one card
	}, func(t *testing.T, r *rig) {
		a, b := newRenter(r, "ann"), newRenter(r, "ann")
		if err := r.Trust(t.Context(), a.self(), named("ann")); err != nil {
			t.Fatal(err)
		}
		a.rent("probe", "polite")
		pass(time.Minute)
		b.order([]string{"probe", "polite"}, func(bid *market.Bid, _ *market.BidMessage) { bid.Nonce = market.Nonce{9} })
		if err := b.send(); err != nil {
			t.Fatal(err)
		}
		b.accept()
		pass(119 * time.Second)
		a.wantState(market.JobRunning, "")
		b.wantState(market.JobRunning, "")
		pass(5 * time.Second)
		a.wantState(market.JobEnded, market.ReasonCredit)
		b.wantState(market.JobEnded, market.ReasonCredit)
		owners, err := r.TrustedOwners(t.Context())
		if err != nil || owners[0].Owes.Micro < 30_000 || owners[0].Owes.Micro > 30_400 {
			t.Errorf("ann owes %+v, %v", owners, err)
		}
		c := newRenter(r, "ann")
		c.order([]string{"probe", "polite"}, func(bid *market.Bid, _ *market.BidMessage) { bid.Nonce = market.Nonce{10} })
		wantCode(t, c.send(), market.CodeNoCredit)
		pass(25 * time.Hour) // the leases are over, and the debt is not
		c.order([]string{"probe", "polite"}, func(bid *market.Bid, _ *market.BidMessage) { bid.Nonce = market.Nonce{11} })
		wantCode(t, c.send(), market.CodeNoCredit)
		r.stop()
		r.start()
		c.order([]string{"probe", "polite"}, func(bid *market.Bid, _ *market.BidMessage) { bid.Nonce = market.Nonce{12} })
		wantCode(t, c.send(), market.CodeNoCredit)
		if _, err := r.Confirm(t.Context(), a.id.String(), view.Confirm{}); err != nil {
			t.Fatal(err)
		}
		if err := c.send(); err != nil {
			t.Error(err)
		}
	})
}

func TestImagesThatTheOwnerDoesNotAllowAreNotOfferedAndRefusedWithTheReason(t *testing.T) {
	for name, c := range map[string]struct {
		rules   host.ImageRules
		refused string // empty: it runs
	}{
		"no rules":          {host.ImageRules{}, ""},
		"an allowed name":   {host.ImageRules{Allow: []string{"l*"}}, ""},
		"another name":      {host.ImageRules{Allow: []string{"train-*"}}, "allowed: train-*"},
		"a denied pattern":  {host.ImageRules{Allow: []string{"l*"}, Deny: []string{"?ab"}}, "allowed: l*"},
		"a denied digest":   {host.ImageRules{Deny: []string{"DIGEST"}}, "allowed: all but"},
		"an allowed digest": {host.ImageRules{Allow: []string{"DIGEST"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleOf(t, func(r *rig) {
				for _, list := range [][]string{c.rules.Allow, c.rules.Deny} {
					for i := range list {
						list[i] = strings.Replace(list[i], "DIGEST", r.image.Digest, 1)
					}
				}
				r.config.Images, r.config.Content = c.rules, "research only"
			}, func(t *testing.T, r *rig) {
				o, _, _ := r.offer()
				if o.Rules.Content != "research only" || (len(o.Host.Images) == 1) != (c.refused == "") {
					t.Errorf("the offer has %v and %q", o.Host.Images, o.Rules.Content)
				}
				a := newRenter(r, "ann")
				a.order([]string{"probe", "polite"}, nil)
				err := a.send()
				if c.refused == "" {
					if err != nil {
						t.Error(err)
					}
					return
				}
				wantCode(t, err, market.CodeImageRefused)
				if hint := market.Explain(err).Hint; !strings.HasPrefix(hint, c.refused) {
					t.Errorf("the renter reads %q", hint)
				}
			})
		})
	}
}
