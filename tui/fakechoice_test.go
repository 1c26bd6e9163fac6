package tui_test

import (
	"context"
	"strings"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// fakeChoice is what the fake's user knows of the offers.
type fakeChoice struct {
	standing map[string]market.Standing // by the rig's own name; a rig that is not here was asked just now
	silent   map[string]bool            // rigs that do not answer
	looks    []string                   // rigs that were asked again
	saved    []view.SavedQuery
	names    map[string]string // by owner's key
	plans    []view.PlanRequest
	about    int // offers that there are; 0: all are read
	pinged   view.Ping
	// renewOnLook: a rig that is asked has another offer by then.
	renewOnLook bool
}

// rows are the offers as the fake's user sees them.
func (f *fakeMarket) rows(job view.JobShape) []market.Row {
	now := time.Now().UnixMilli()
	shape := market.JobShape{
		Slots: max(1, job.GPUs), DurationMs: job.DurationMs, DiskMB: job.DiskMB, InMB: job.InMB, OutMB: job.OutMB, Image: job.Image,
	}
	if shape.DurationMs == 0 {
		shape.DurationMs = time.Hour.Milliseconds()
	}
	rows := make([]market.Row, len(f.offers))
	for i := range f.offers {
		o := &f.offers[i]
		s, known := f.standing[o.Name]
		if !known {
			s = market.Standing{Source: "owner", Sources: 1, Heard: now}
		}
		s.Name = f.names[o.Owner.String()]
		rows[i] = market.Row{Offer: o, Standing: &s, Job: &shape, Now: now}
	}
	return rows
}

// LookAt asks the rig, which answers unless it is a silent one.
func (f *fakeMarket) LookAt(ctx context.Context, id string, job view.JobShape) (view.Offer, error) {
	if err := f.wait(ctx); err != nil {
		return view.Offer{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.offers {
		o := &f.offers[i]
		if !strings.HasPrefix(hashOf(*o).String(), id) {
			continue
		}
		f.looks = append(f.looks, o.Name)
		if s, known := f.standing[o.Name]; known && !f.silent[o.Name] {
			s.Source, s.Heard = "owner", time.Now().UnixMilli()
			f.standing[o.Name] = s
		}
		if f.renewOnLook {
			o.Seq++
			f.renewOnLook = false
		}
		return view.OfferOfRow(f.rows(job)[i], hashOf(*o), o.Free(), true), nil
	}
	return view.Offer{}, market.NewError(market.CodeOfferUnknown, "offer", id)
}

func (f *fakeMarket) Plan(ctx context.Context, r view.PlanRequest) (view.Plan, error) {
	if err := f.wait(ctx); err != nil {
		return view.Plan{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plans = append(f.plans, r)
	query, err := market.ParseQuery(r.Query)
	if err != nil {
		return view.Plan{}, err
	}
	job := market.JobShape{Slots: max(1, r.GPUs), DurationMs: r.DurationMs, DiskMB: r.DiskMB}
	rows := f.rows(view.JobShape{GPUs: r.GPUs, DurationMs: r.DurationMs})
	told := market.PlanFor(query, rows, market.Micro(r.BudgetMicro), r.Currency, job)
	return view.PlanOf(told, func(at int, slots []uint8) view.Offer {
		return view.OfferOfRow(rows[at], hashOf(*rows[at].Offer), slots, false)
	}), nil
}

func (f *fakeMarket) SavedQueries(ctx context.Context) ([]view.SavedQuery, error) {
	err := f.wait(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.saved, err
}

func (f *fakeMarket) SaveQuery(ctx context.Context, name, query string) (view.SavedQuery, error) {
	if err := f.wait(ctx); err != nil {
		return view.SavedQuery{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved = append(f.saved, view.SavedQuery{Name: name, Query: query})
	return f.saved[len(f.saved)-1], nil
}

func (f *fakeMarket) GiveName(ctx context.Context, who, name string) (view.GivenName, error) {
	if err := f.wait(ctx); err != nil {
		return view.GivenName{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names == nil {
		f.names = map[string]string{}
	}
	f.names[who] = name
	return view.GivenName{Name: name, Key: who}, nil
}

func (f *fakeMarket) Ping(ctx context.Context, who string) (view.Ping, error) {
	if err := f.wait(ctx); err != nil {
		return view.Ping{}, err
	}
	p := f.pinged
	p.Key = who
	return p, nil
}

// known has a market of which its user knows something: a rig that was checked, one with a name, one that another rig's list has, one
// that is only remembered and keeps silent.
func known() *fakeMarket {
	f := full()
	now := time.Now()
	trip := int64(12_400)
	f.standing = map[string]market.Standing{
		"rig-2": {
			Checked: true, Leases: 3, FirstSeen: now.Add(-9 * 24 * time.Hour).UnixMilli(), Heard: now.UnixMilli(), RTT: &trip, Source: "owner", Sources: 2,
			Reached: "direct", AddressCountry: "DE",
		},
		"東京リグ-深夜割引":                                     {Source: "snapshot", Sources: 2, Heard: now.Add(-4 * time.Minute).UnixMilli(), FirstSeen: now.UnixMilli()},
		"attic-in-the-house-behind-the-railway-station": {Source: "remembered", Heard: now.Add(-3 * time.Hour).UnixMilli()},
	}
	f.silent = map[string]bool{"attic-in-the-house-behind-the-railway-station": true}
	f.names = map[string]string{key("rig-2"): "lab-in-bonn"}
	f.saved = []view.SavedQuery{{Name: "big", Query: "gpu_ram>=48"}}
	f.about = 5000
	return f
}
