package market_test

import (
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func TestAnExtensionOnlyAdds(t *testing.T) {
	lease := market.LeaseID{1}
	first := markettest.Extension(lease, nil)
	for name, c := range map[string]struct {
		last   *market.Extension
		change func(*market.Extension)
		fits   bool
	}{
		"the first":                     {nil, func(*market.Extension) {}, true},
		"the second":                    {&first, func(*market.Extension) {}, true},
		"money alone":                   {nil, func(e *market.Extension) { e.DurationMs, e.Deadline = e.DurationMs-600_000, e.Deadline-600_000 }, true},
		"time alone":                    {&first, func(e *market.Extension) { e.Budget -= 500_000 }, true},
		"nothing":                       {nil, func(e *market.Extension) { *e = markettest.Terms().Extend(lease, nil, 0, 0, 1) }, false},
		"of another lease":              {nil, func(e *market.Extension) { e.Lease[0] ^= 1 }, false},
		"a number that is left out":     {nil, func(e *market.Extension) { e.Seq++ }, false},
		"a number once more":            {&first, func(e *market.Extension) { e.Seq-- }, false},
		"a budget below the last":       {&first, func(e *market.Extension) { e.Budget = first.Budget - 1 }, false},
		"a time below the last":         {&first, func(e *market.Extension) { e.DurationMs, e.Deadline = first.DurationMs-1, first.Deadline-1 }, false},
		"a deadline that moves further": {nil, func(e *market.Extension) { e.Deadline++ }, false},
		"a deadline that stays":         {nil, func(e *market.Extension) { e.Deadline -= 600_000 }, false},
		"more than a year":              {nil, func(e *market.Extension) { *e = markettest.Terms().Extend(lease, nil, 366*24*3_600_000, 0, 1) }, false},
		"an absurd budget":              {nil, func(e *market.Extension) { e.Budget = 1e15 + 1 }, false},
		"one too many":                  {&market.Extension{Seq: market.MaxExtensions}, func(*market.Extension) {}, false},
	} {
		e := markettest.Extension(lease, c.last)
		c.change(&e)
		if err := market.CheckExtension(lease, markettest.Terms(), c.last, e); (err == nil) != c.fits || err != nil && market.CodeOf(err) != market.CodeBadRecord {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARigConsentsToTimeAtItsPresentPriceOnly(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*market.Offer, *market.Extension)
		code   market.Code
	}{
		"as it was":                        {func(*market.Offer, *market.Extension) {}, ""},
		"it is cheaper now":                {func(o *market.Offer, _ *market.Extension) { o.Prices.Slot-- }, ""},
		"it is dearer now":                 {func(o *market.Offer, _ *market.Extension) { o.Prices.Slot++ }, market.CodePriceRose},
		"its disk is dearer now":           {func(o *market.Offer, _ *market.Extension) { o.Prices.Disk++ }, market.CodePriceRose},
		"its traffic is dearer now":        {func(o *market.Offer, _ *market.Extension) { o.Prices.Out++ }, market.CodePriceRose},
		"another currency":                 {func(o *market.Offer, _ *market.Extension) { o.Prices.Currency = "EUR" }, market.CodePriceRose},
		"money alone, though it is dearer": {func(o *market.Offer, e *market.Extension) { o.Prices.Slot++; e.DurationMs = 600_000 }, ""},
		"longer than it leases":            {func(o *market.Offer, _ *market.Extension) { o.Rules.MaxMs = 1_199_999 }, market.CodeBadDuration},
		"it takes no leases now":           {func(o *market.Offer, _ *market.Extension) { o.State = market.OfferWithdrawn }, market.CodePaused},
		"the card is not offered any more": {func(o *market.Offer, _ *market.Extension) { o.Slots = o.Slots[1:] }, market.CodeSlotTaken},
	} {
		o, e := markettest.Offer(), markettest.Extension(market.LeaseID{1}, nil)
		c.change(&o, &e)
		if err := market.ConsentTo(o, markettest.Terms(), e); market.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnExtensionIsTheRentersAndTheRigConsents(t *testing.T) {
	terms, e := markettest.Terms(), markettest.Extension(market.LeaseID{1}, nil)
	asked := market.SealExtension(markettest.Network, markettest.Renter(), e)
	if got, s, err := market.OpenExtension(markettest.Network, asked.Encode(), terms); err != nil || got != e || s.SignedBy(market.RoleRig) {
		t.Errorf("as the renter signed it: %+v (%v)", got, err)
	}
	agreed := market.Consent(asked, markettest.Rig())
	if got, s, err := market.OpenExtension(markettest.Network, agreed.Encode(), terms); err != nil || got != e || !s.SignedBy(market.RoleRig) {
		t.Errorf("as both signed it: %+v (%v)", got, err)
	}
	if again := market.Consent(agreed, markettest.Rig()); string(again.Encode()) != string(agreed.Encode()) {
		t.Error("consenting twice changes the bytes")
	}
	for name, raw := range map[string][]byte{
		"signed by the rig alone":         market.SealExtension(markettest.Network, markettest.Rig(), e).Encode(),
		"consented to by another rig":     market.Consent(asked, markettest.Private("other")).Encode(),
		"made for another network":        market.SealExtension("lab-other", markettest.Renter(), e).Encode(),
		"a receipt":                       markettest.Evidence().Receipts[0],
		"nothing":                         nil,
		"consented to by the renter, too": market.Consent(asked, markettest.Renter()).Encode(),
	} {
		if _, _, err := market.OpenExtension(markettest.Network, raw, terms); err == nil {
			t.Errorf("%s: it was opened", name)
		}
	}
}
