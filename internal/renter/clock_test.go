package renter_test

import (
	"strings"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// ahead has a rig sign its offers by a clock that is off.
func ahead(r *testRig, by time.Duration) {
	r.update(func(o *market.Offer) {
		o.Issued += by.Milliseconds()
		o.Expires += by.Milliseconds()
	})
}

func TestARigWhoseClockIsAnHourOffIsNotListedAndTheSentenceNamesTheSkew(t *testing.T) {
	for name, c := range map[string]struct {
		by   time.Duration
		says string
	}{
		"ahead":  {time.Hour, "ahead of this machine's"},
		"behind": {-time.Hour, "behind this machine's"},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
				ahead(h.rig(0), c.by)
				pass(30 * time.Second)
				_, err := h.agent.Offers(t.Context(), view.OfferQuery{})
				wantCode(t, err, market.CodeClockSkew)
				if said := market.Explain(err).Message; !strings.Contains(said, "attic") || !strings.Contains(said, "differ by 1h0m") && !strings.Contains(said, "differ by 59m") {
					t.Errorf("it says %q", said)
				}
				_, err = h.bid(nil)
				wantCode(t, err, market.CodeClockSkew)
				if w := h.agent.Warnings(); len(w) != 1 || !strings.Contains(w[0], c.says) || !strings.Contains(w[0], "attic") {
					t.Errorf("the agent warns of %q", w)
				}
				h.rig(0).update(func(*market.Offer) {})
				pass(30 * time.Second)
				if list, err := h.agent.Offers(t.Context(), view.OfferQuery{}); err != nil || len(list.Offers) != 1 || list.Reason != "" {
					t.Errorf("with the clock set right: %+v, %v", list, err)
				}
				if w := h.agent.Warnings(); len(w) != 0 {
					t.Errorf("with the clock set right the agent warns of %q", w)
				}
			})
		})
	}
}

func TestAClockThatIsOffByLittleIsNoMatter(t *testing.T) {
	inHouse(t, oneRig(nil), func(t *testing.T, h *house) {
		ahead(h.rig(0), market.MaxClockSkew-time.Minute)
		pass(time.Minute)
		if list, err := h.agent.Offers(t.Context(), view.OfferQuery{}); err != nil || len(list.Offers) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
		if w := h.agent.Warnings(); len(w) != 0 {
			t.Errorf("the agent warns of %q", w)
		}
	})
}

func TestOfTwoRigsTheOneWithTheWrongClockIsNamed(t *testing.T) {
	two := rigs(func() *testRig { return newRig(1, "attic", 400_000) }, func() *testRig { return newRig(2, "cellar", 500_000) })
	inHouse(t, two, func(t *testing.T, h *house) {
		ahead(h.rig(1), 3*time.Hour)
		pass(30 * time.Second)
		list, err := h.agent.Offers(t.Context(), view.OfferQuery{})
		if err != nil || len(list.Offers) != 1 || list.Offers[0].Rig != "attic" || !strings.Contains(list.Reason, "the clock of cellar") {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestAHelloTellsOfAClockThatOffersHide(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.run = time.Minute; r.wrong = 5 * time.Minute }), func(t *testing.T, h *house) {
		h.mustBid(nil)
		if w := h.agent.Warnings(); len(w) != 1 || !strings.Contains(w[0], "is 5m0s ahead of this machine's") {
			t.Errorf("the agent warns of %q", w)
		}
	})
}
