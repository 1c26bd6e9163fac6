package market_test

import (
	"testing"

	"haggle/market"
	"haggle/market/markettest"
)

func TestABidThatDoesNotFitTheOfferIsRefusedWithItsReason(t *testing.T) {
	tests := []struct {
		name   string
		change func(*market.Offer, *market.Bid, *int64)
		code   market.Code
	}{
		{"as it should be", func(*market.Offer, *market.Bid, *int64) {}, ""},
		{"the offer is old", func(_ *market.Offer, _ *market.Bid, now *int64) { *now += 600_000 }, market.CodeOfferExpired},
		{"the bid is old", func(_ *market.Offer, _ *market.Bid, now *int64) { *now += 30_000 }, market.CodeOfferExpired},
		{"the offer is from the future", func(_ *market.Offer, _ *market.Bid, now *int64) { *now -= 121_000 }, market.CodeBadRecord},
		{"the offer is withdrawn", func(o *market.Offer, _ *market.Bid, _ *int64) { o.State = market.OfferWithdrawn }, market.CodeOfferWithdrawn},
		{"the offer is only listed", func(o *market.Offer, _ *market.Bid, _ *int64) { o.State = market.OfferListed }, market.CodeNotRentable},
		{"another offer", func(_ *market.Offer, b *market.Bid, _ *int64) { b.Offer[0] ^= 1 }, market.CodeOfferUnknown},
		{"another rig", func(_ *market.Offer, b *market.Bid, _ *int64) { b.Rig[0] ^= 1 }, market.CodeOfferUnknown},
		{"below the ask", func(_ *market.Offer, b *market.Bid, _ *int64) { b.Prices.Slot-- }, market.CodePriceTooLow},
		{"another currency", func(_ *market.Offer, b *market.Bid, _ *int64) { b.Prices.Currency = "EUR" }, market.CodePriceTooLow},
		{"too long", func(_ *market.Offer, b *market.Bid, _ *int64) { b.DurationMs = 8 * 24 * 3_600_000 }, market.CodeBadDuration},
		{"too short", func(_ *market.Offer, b *market.Bid, _ *int64) { b.DurationMs = 1 }, market.CodeBadDuration},
		{"a budget below the first minute", func(_ *market.Offer, b *market.Bid, _ *int64) { b.Budget = 5_999 }, market.CodeBudgetTooSmall},
		{"a budget for all of a lease shorter than a minute", func(_ *market.Offer, b *market.Bid, _ *int64) { b.DurationMs, b.Budget = 30_000, 3_000 }, ""},
		{"a budget below all of such a lease", func(_ *market.Offer, b *market.Bid, _ *int64) { b.DurationMs, b.Budget = 30_000, 2_999 }, market.CodeBudgetTooSmall},
		{"more unsigned time than the rig allows", func(_ *market.Offer, b *market.Bid, _ *int64) { b.Limits.UnsignedMs++ }, market.CodeBadLimits},
		{"more unattended time than the rig allows", func(o *market.Offer, b *market.Bid, _ *int64) {
			o.Rules.MaxUnattended, b.Limits.UnattendedMs = 1000, market.Unlimited
		}, market.CodeBadLimits},
		{"disk that costs more than the budget has for the first minute", func(o *market.Offer, b *market.Bid, _ *int64) {
			o.Prices.Disk, b.Prices.Disk, b.Budget = 3_600_000, 3_600_000, 500_000 // 10 GB for a minute are 0.60
		}, market.CodeBudgetTooSmall},
		{"a credit below the first minute", func(o *market.Offer, b *market.Bid, _ *int64) { o.Rules.Credit, b.Limits.Credit = 5_999, 5_999 }, market.CodeBudgetTooSmall},
		{"more credit than the rig gives", func(o *market.Offer, b *market.Bid, _ *int64) { o.Rules.Credit = 5_000_000 }, market.CodeBadLimits},
		{"more disk than the share", func(_ *market.Offer, b *market.Bid, _ *int64) { b.Resources.DiskMB = 50_001 }, market.CodeBadLimits},
		{"more bandwidth than is promised", func(_ *market.Offer, b *market.Bid, _ *int64) { b.Resources.UpBits = 1 }, market.CodeBadLimits},
		{"as much bandwidth as is promised", func(o *market.Offer, b *market.Bid, _ *int64) { o.Host.SlotUp, b.Resources.UpBits = 1e6, 1e6 }, ""},
		{"an upload for which there is no room", func(_ *market.Offer, b *market.Bid, _ *int64) { b.Upload = market.MaxArchive + 10_000_000_002 }, market.CodeBadLimits},
		{"an upload that fits", func(_ *market.Offer, b *market.Bid, _ *int64) { b.Upload = market.MaxArchive + 10_000_000_001 }, ""},
		{"more memory than comes with the slots", func(_ *market.Offer, b *market.Bid, _ *int64) { b.Resources.Memory = 1 << 40 }, market.CodeBadLimits},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o, b, now := markettest.Offer(), markettest.Bid(), markettest.Now
			hash := b.Offer
			test.change(&o, &b, &now)
			if err := market.Admit(o, hash, b, now); market.CodeOf(err) != test.code {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSlotsArePickedFreeAndOfOneModel(t *testing.T) {
	o, b := markettest.Offer(), markettest.Bid()
	if s, err := market.Pick(o, b); err != nil || len(s) != 1 || s[0].Index != 0 {
		t.Errorf("got %v (%v)", s, err)
	}
	o.Slots[0].LeasedUntil = markettest.Now
	if s, err := market.Pick(o, b); err != nil || s[0].Index != 1 {
		t.Errorf("a leased slot was not passed over: %v (%v)", s, err)
	}
	b.Slots = []uint8{0}
	if _, err := market.Pick(o, b); market.CodeOf(err) != market.CodeSlotTaken {
		t.Errorf("a leased slot asked for by number: %v", err)
	}
	b.Slots, b.Count = nil, 3
	if _, err := market.Pick(o, b); market.CodeOf(err) != market.CodeTooFewSlots {
		t.Errorf("more slots than there are: %v", err)
	}
	b.Count, b.Model = 1, "H100"
	if _, err := market.Pick(o, b); market.CodeOf(err) != market.CodeTooFewSlots {
		t.Errorf("a model that is not there: %v", err)
	}
}

func TestARenterSignsOnlyAGrantThatEchoesItsBid(t *testing.T) {
	tests := []struct {
		field  string
		change func(*market.Terms)
	}{
		{"", func(*market.Terms) {}},
		{"slots", func(t *market.Terms) { t.Slots = nil }},
		{"slots", func(t *market.Terms) { t.Slots[0].Model = "RTX_3090" }},
		{"slots", func(t *market.Terms) { t.Slots[0].Card[0] ^= 1 }},
		{"resources", func(t *market.Terms) { t.Resources.Memory-- }},
		{"resources", func(t *market.Terms) { t.Resources.DownBits-- }},
		{"disk", func(t *market.Terms) { t.Resources.DiskMB++ }},
		{"resources", func(t *market.Terms) { t.Resources.DiskMB = 4999 }},
		{"egress", func(t *market.Terms) { t.Egress = true }},
		{"prices", func(t *market.Terms) { t.Prices.Slot++ }},
		{"prices", func(t *market.Terms) { t.Prices.Disk++ }},
		{"budget", func(t *market.Terms) { t.Budget++ }},
		{"duration", func(t *market.Terms) { t.DurationMs-- }},
		{"deadline", func(t *market.Terms) { t.Deadline = t.Issued }},
		{"receipt interval", func(t *market.Terms) { t.GraceMs-- }},
		{"notice", func(t *market.Terms) { t.NoticeMs-- }},
		{"limits", func(t *market.Terms) { t.Limits.UnsignedMs-- }},
		{"job", func(t *market.Terms) { t.Job[0] ^= 1 }},
		{"simulated", func(t *market.Terms) { t.Simulated = false }},
		{"renter", func(t *market.Terms) { t.RenterOwner[0] ^= 1 }},
		{"bid", func(t *market.Terms) { t.Bid[0] ^= 1 }},
		{"upload", func(t *market.Terms) { t.Upload++ }},
		{"preparation", func(t *market.Terms) { t.PrepareMs-- }},
		{"hold", func(t *market.Terms) { t.Issued -= 200_000 }},
	}
	for _, test := range tests {
		t.Run(test.field, func(t *testing.T) {
			o, b := markettest.Offer(), markettest.Bid()
			o.Prices.Disk, b.Prices.Disk, b.Resources.DiskMB = 100, 100, 5000
			o.Host.SlotDown = 1e6
			slots, err := market.Pick(o, b)
			if err != nil {
				t.Fatal(err)
			}
			bid := market.Hash{5}
			terms := market.Grant(o, b, bid, slots, markettest.Now, market.Nonce{9})
			test.change(&terms)
			err = market.CheckGrant(terms, o, b, bid, markettest.Now)
			if test.field == "" && err != nil || test.field != "" && (market.CodeOf(err) != market.CodeGrantMismatch || market.Public(err).Arg("field") != test.field) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnEnvironmentIsBoundToItsJobAndWellFormed(t *testing.T) {
	env := market.Env{"TOKEN=secret"}
	if env.Hash(market.Nonce{1}) == env.Hash(market.Nonce{2}) || env.Hash(market.Nonce{1}) == (market.Env{}).Hash(market.Nonce{1}) {
		t.Error("the hash does not depend on salt and content")
	}
	for _, bad := range []market.Env{{"NOVALUE"}, {"1A=b"}, {"A B=c"}, {"A=\x00"}} {
		if bad.Validate() == nil {
			t.Errorf("%q is well formed", bad)
		}
	}
}

func TestADiskThatIsNotAskedForIsSmallAndNeverMoreThanPaidFor(t *testing.T) {
	o, b := markettest.Offer(), markettest.Bid()
	o.Prices.Disk, b.Prices.Disk = 100, 100
	slots, err := market.Pick(o, b)
	if err != nil {
		t.Fatal(err)
	}
	terms := market.Grant(o, b, hashOf(b), slots, markettest.Now, market.Nonce{9})
	if terms.Resources.DiskMB != market.DefaultDiskMB {
		t.Errorf("%d MB are granted", terms.Resources.DiskMB)
	}
	terms.Resources.DiskMB++
	if err := market.CheckGrant(terms, o, b, hashOf(b), markettest.Now); market.CodeOf(err) != market.CodeGrantMismatch {
		t.Errorf("a megabyte more, which costs: %v", err)
	}
	o.Prices.Disk, b.Prices.Disk, terms.Prices.Disk = 0, 0, 0
	terms.Bid = hashOf(b)
	if err := market.CheckGrant(terms, o, b, hashOf(b), markettest.Now); err != nil {
		t.Errorf("a megabyte more that is free: %v", err)
	}
	o.Host.DiskFree = 8e9
	if got := o.DiskMB(1, 0); got != 4000 {
		t.Errorf("of a share of 4000 MB, %d are granted", got)
	}
}

// hashOf is the hash of a bid.
func hashOf(b market.Bid) market.Hash {
	return market.SealBid(markettest.Network, markettest.Renter(), b).Hash()
}
