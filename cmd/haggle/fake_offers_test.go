package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

func fakeOffers() []view.Offer {
	o := markettest.Offer()
	now := time.UnixMilli(markettest.Now)
	first := view.OfferOf(o, market.Hash{0x3f, 0x9a}, []uint8{0, 1}, now, true)
	second := first
	second.ID, second.Rig, second.Free, second.Country, second.Price = "aa00bb11", "at\x1b[31mtic", 1, "DE", view.MoneyOf(1_500_000, "USD")
	return []view.Offer{first, second}
}

// privateOffer is one that takes bids of trusted owners alone, with everything that an owner can say of a rig.
func privateOffer() view.Offer {
	o := markettest.Offer()
	o.Simulated, o.Name, o.Net.Reach = false, "attic", "direct"
	o.Rules.Bidders, o.Rules.Egress, o.Rules.Content = market.BiddersTrusted, true, "no mining\x1b[2J, please"
	o.Prices.Disk = 200
	o.Host.Isolation, o.Host.Protections, o.Host.Weak = "runc", []string{"seccomp", "device-cgroup"}, []string{"user-namespace"}
	o.Host.SlotUp, o.Host.SlotDown = 16_000_000, 0
	for i := range o.Slots {
		o.Slots[i].Vendor = "NVIDIA"
	}
	return view.OfferOf(o, market.Hash{0x7c, 0x01}, []uint8{0, 1}, time.UnixMilli(markettest.Now), true)
}

func (a *fakeAgent) Offers(_ context.Context, q view.OfferQuery) (view.OfferList, error) {
	list := view.OfferList{Offers: fakeOffers(), Known: 2, Rigs: 2}
	a.mu.Lock()
	a.asked += "-"
	err := os.WriteFile(filepath.Join(a.home, "asked"), []byte(a.asked), 0o600)
	a.mu.Unlock()
	if err != nil {
		return list, err
	}
	switch {
	case strings.Contains(q.Query, "bidders=trusted"):
		list.Offers = []view.Offer{privateOffer()}
	case strings.Contains(q.Query, "H100"):
		list.Offers = nil
	case strings.Contains(q.Query, "rig=nobody"):
		return view.OfferList{Reason: "no rig has answered yet"}, nil
	case strings.Contains(q.Query, "rig=nowhere"):
		return list, market.NewError(market.CodeNoPeers, "network", "main", "reason", "no bootstrap peer is configured")
	}
	for i := range list.Offers {
		list.Offers[i].SlotDetail, list.Offers[i].Host, list.Offers[i].Rules = nil, market.HostFacts{}, market.Rules{}
	}
	if q.Explain {
		list.Funnel = &view.Funnel{Known: 2, Steps: []view.FunnelStep{{Clause: "gpu_name=H100", Left: len(list.Offers)}}, Nearest: "3f9a0000 has gpu_name RTX_4090"}
	}
	return list, nil
}

func (a *fakeAgent) Offer(_ context.Context, id string) (view.Offer, error) {
	for _, o := range append(fakeOffers(), privateOffer()) {
		if strings.HasPrefix(o.Hash, id) {
			return o, nil
		}
	}
	return view.Offer{}, market.NewError(market.CodeOfferUnknown, "offer", id)
}
