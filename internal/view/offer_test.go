package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

func TestAnOfferOfSeveralModelsCountsEachForItself(t *testing.T) {
	o := markettest.Offer()
	other := o.Slots[1]
	other.Index, other.Model = 2, "A100_SXM"
	o.Slots = append(o.Slots, other)
	v := view.OfferOf(o, market.Hash{1}, []uint8{1, 2}, time.UnixMilli(markettest.Now), false)
	if v.Model != "RTX_4090" || v.Slots != 2 || v.Free != 1 || !cmp.Equal(v.Also, []string{"A100_SXM"}) {
		t.Errorf("%s: %d of %d free, also %v", v.Model, v.Free, v.Slots, v.Also)
	}
	v = view.OfferOf(o, market.Hash{1}, []uint8{2}, time.UnixMilli(markettest.Now), false)
	if v.Model != "A100_SXM" || v.Slots != 1 || v.Free != 1 || v.Also != nil {
		t.Errorf("%s: %d of %d free, also %v", v.Model, v.Free, v.Slots, v.Also)
	}
}

func TestForeignTextIsMadeFitForATerminal(t *testing.T) {
	p := view.ProblemOf(market.NewError(market.CodeOfferUnknown, "offer", "\x1b[2Jabc\u202e"))
	if p.Message != "there is no offer [2Jabc" {
		t.Errorf("message %q", p.Message)
	}
}
