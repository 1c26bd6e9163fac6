package renter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"haggle/internal/index"
	"haggle/market"
)

// dealtFor is how long what is known of owners from leases is used again: it changes with leases, of which there are few.
const dealtFor = 10 * time.Second

// dealt is what the agent's leases tell of others.
type dealt struct {
	leases map[market.Key]int64 // that billed something, by the rig's owner
	keeps  map[market.Key]bool  // rigs that keep a disk of a lease
}

// dealings keeps what was read of leases last.
type dealings struct {
	mu   sync.Mutex
	at   time.Time
	last dealt
}

// dealtWith reads what the agent's leases tell of others, at most every few seconds.
func (a *Agent) dealtWith(ctx context.Context) (dealt, error) {
	now := a.cfg.Clock()
	a.dealings.mu.Lock()
	defer a.dealings.mu.Unlock()
	if d := &a.dealings; !d.at.IsZero() && now.Sub(d.at) < dealtFor {
		return d.last, nil
	}
	records, err := a.cfg.Store.Records(ctx)
	if err != nil {
		return dealt{}, fmt.Errorf("read leases: %w", err)
	}
	d := dealt{leases: map[market.Key]int64{}, keeps: map[market.Key]bool{}}
	for _, r := range records {
		if r.Lease.IsZero() {
			continue
		}
		if r.wentWell() {
			d.leases[r.Terms.RigOwner]++
		}
		if r.State.Job == market.JobPaused && !r.over() {
			d.keeps[r.Terms.Rig] = true
		}
	}
	a.dealings.at, a.dealings.last = now, d
	return d, nil
}

// wentWell reports whether a lease ended as it should, with a bill that nobody disputes: an owner whose cards fail, or whose bills are
// wrong, must not stand before strangers for it.
func (r Record) wentWell() bool {
	if r.State.Job != market.JobEnded || r.State.BilledMs == 0 {
		return false
	}
	result := market.ResultOf(r.State.Reason, r.State.BilledMs, r.State.Disputed)
	return result == market.ResultCompleted || result == market.ResultRenter
}

// standing is what this renter knows of an offer beside the offer.
func (a *Agent) standing(k *index.Known, d dealt) *market.Standing {
	s := market.Standing{
		Leases: d.leases[k.Offer.Owner], FirstSeen: k.FirstSeen.UnixMilli(), Heard: k.Offer.Issued,
		Source: k.Source.String(), Sources: int64(k.Sources), Name: a.nameOf(k.Offer.Rig, k.Offer.Owner), Keeps: d.keeps[k.Offer.Rig],
	}
	if k.Source == index.FromOwner {
		s.Heard = k.Heard.UnixMilli()
	}
	path, rtt := a.cfg.Net.PathTo(k.Offer.Rig)
	s.Reached = path
	s.AddressCountry = a.countryOf(k.Offer.Rig, path)
	if rtt > 0 {
		us := rtt.Microseconds()
		s.RTT = &us
	}
	return &s
}

// row is an offer as a row for a job, or for none.
func (a *Agent) row(ctx context.Context, k *index.Known, job *market.JobShape) (market.Row, error) {
	d, err := a.dealtWith(ctx)
	if err != nil {
		return market.Row{}, err
	}
	return market.Row{Offer: &k.Offer, Standing: a.standing(k, d), Job: job, Now: a.cfg.Clock().UnixMilli()}, nil
}
