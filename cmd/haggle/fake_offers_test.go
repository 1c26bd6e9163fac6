package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

// fakeRow is an offer as the fake agent's user sees it, for a job.
func fakeRow(o *market.Offer, job view.JobShape, standing *market.Standing) market.Row {
	shape := &market.JobShape{
		Slots: max(job.GPUs, 1), DurationMs: cmp.Or(job.DurationMs, 3_600_000), DiskMB: job.DiskMB, InMB: job.InMB, OutMB: job.OutMB, Image: job.Image,
	}
	return market.Row{Offer: o, Job: shape, Now: markettest.Now, Standing: standing}
}

func fakeOffers(job view.JobShape) []view.Offer {
	o := markettest.Offer()
	rtt := int64(8000)
	first := view.OfferOfRow(fakeRow(&o, job, &market.Standing{
		Source: market.SourceOwner, Heard: markettest.Now - 3000, FirstSeen: markettest.Now - 9*24*3_600_000, Sources: 2, Reached: "loopback", RTT: &rtt, Leases: 3,
	}), market.Hash{0x3f, 0x9a}, []uint8{0, 1}, true)
	p := markettest.Offer()
	p.Name, p.Net.Country, p.Prices.Slot = "at\x1b[31mtic", "DE", 1_500_000
	raid := "raid1"
	p.Claims = []market.Claim{{Name: "raid", Text: &raid}}
	second := view.OfferOfRow(fakeRow(&p, job, &market.Standing{
		Source: market.SourceSnapshot, Heard: markettest.Now - 125_000, Name: "loft", AddressCountry: "DE",
	}), market.Hash{0xaa, 0x00, 0xbb, 0x11}, []uint8{1}, true)
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
	list := view.OfferList{Offers: fakeOffers(q.Job), Known: 2, Matches: 2, About: 2, Rigs: 2}
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
		list.Offers, list.Matches = nil, 0
	case strings.Contains(q.Query, "rig=large"):
		list.Known, list.About, list.Reading = 1280, 5000, len(a.asked) < 20
	case strings.Contains(q.Query, "rig=nobody"):
		return view.OfferList{Reason: "no rig has answered yet"}, nil
	case strings.Contains(q.Query, "rig=nowhere"):
		return list, market.NewError(market.CodeNoPeers, "network", "main", "reason", "no bootstrap peer is configured")
	}
	for i := range list.Offers {
		list.Offers[i].SlotDetail, list.Offers[i].Host, list.Offers[i].Rules = nil, market.HostFacts{}, market.Rules{}
	}
	if q.Facets != "" {
		list.Facets = []view.Facet{{Field: q.Facets, More: 2, Unknown: 1, Values: []market.FacetValue{
			{Clause: "gpu_name=RTX_4090", Value: "RTX_4090", Offers: 2, Slots: 3}, {Clause: "gpu_name=H100", Value: "H\x1b100", Offers: 1, Slots: 8},
		}}}
	}
	if q.Limit > 0 {
		list.Offers = list.Offers[:min(q.Limit, len(list.Offers))]
	}
	if q.Explain {
		list.Funnel = &view.Funnel{Known: 2, Steps: []view.FunnelStep{{Clause: "gpu_name=H100", Left: len(list.Offers)}}, Nearest: "3f9a0000 has gpu_name RTX_4090"}
	}
	return list, nil
}

func (a *fakeAgent) LookAt(_ context.Context, id string, job view.JobShape) (view.Offer, error) {
	for _, o := range append(fakeOffers(job), privateOffer()) {
		if strings.HasPrefix(o.Hash, id) {
			return o, nil
		}
	}
	return view.Offer{}, market.NewError(market.CodeOfferUnknown, "offer", id)
}

// Plan plans with the fake offers; a query of H100 finds none.
func (a *fakeAgent) Plan(_ context.Context, r view.PlanRequest) (view.Plan, error) {
	o, dear := markettest.Offer(), markettest.Offer()
	dear.Name, dear.Prices.Slot, dear.Net.Reach = "cellar", 1_500_000, "relayed"
	job := market.JobShape{Slots: max(r.GPUs, 1), DurationMs: r.DurationMs, Image: r.Image}
	rows := []market.Row{
		{Offer: &o, Now: markettest.Now, Job: &job},
		{Offer: &dear, Now: markettest.Now, Job: &job, Standing: &market.Standing{Checked: true, Leases: 2}},
	}
	text, err := market.ExpandQuery(r.Query, map[string]string{"cheap": "dph<1"})
	if err != nil {
		return view.Plan{}, err
	}
	q, err := market.ParseQuery(text)
	if err != nil {
		return view.Plan{}, err
	}
	hashes := []market.Hash{{0x3f, 0x9a}, {0xce, 0x11}}
	return view.PlanOf(market.PlanFor(q, rows, market.Micro(r.BudgetMicro), r.Currency, job), func(at int, slots []uint8) view.Offer {
		return view.OfferOfRow(rows[at], hashes[at], slots, false)
	}), nil
}

// WatchOffers tells of two offers, of one that goes and at last of one that becomes cheaper, and then nothing.
func (a *fakeAgent) WatchOffers(ctx context.Context, q view.OfferQuery) (<-chan view.OfferChange, error) {
	changes := make(chan view.OfferChange)
	list := fakeOffers(q.Job)
	was := view.MoneyOf(2_000_000, "USD")
	go func() {
		defer close(changes)
		for _, c := range []view.OfferChange{
			{Change: view.OfferHere, Offer: list[0]},
			{Change: view.OfferNew, Offer: list[1]},
			{Change: view.OfferGone, Offer: list[0]},
			{Change: view.OfferCheaper, Offer: list[1], Was: &was},
		} {
			c.AtMs = markettest.Now
			select {
			case changes <- c:
			case <-ctx.Done():
				return
			}
		}
		<-ctx.Done()
	}()
	return changes, nil
}

func (a *fakeAgent) SavedQueries(context.Context) ([]view.SavedQuery, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.saved), nil
}

func (a *fakeAgent) SaveQuery(_ context.Context, name, query string) (view.SavedQuery, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.saved = append(a.saved, view.SavedQuery{Name: name, Query: query})
	return a.saved[len(a.saved)-1], nil
}

func (a *fakeAgent) RemoveQuery(_ context.Context, name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, q := range a.saved {
		if q.Name == name {
			a.saved = slices.Delete(a.saved, i, i+1)
			return nil
		}
	}
	return market.NewError(market.CodeSavedUnknown, "name", name, "known", "none")
}
