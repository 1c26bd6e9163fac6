package renter

import (
	"context"
	"slices"
	"sync"

	"haggle/internal/view"
	"haggle/market"
)

// A deputy is the agent of another machine that signs, pays and collects for this one while it is away. The terms of a lease name
// its deputies, so that both sides know from the beginning whose signatures count. The agent hands each such lease over
// (deputy_hand.go), and the deputy takes it into its own care (deputy_serve.go). It never orders anything and never disputes: where
// it cannot believe a receipt it signs nothing, and the agent decides.

// maxServed is how many agents one agent is a deputy for.
const maxServed = 16

// deputies is what is known of deputies only while this program runs.
type deputies struct {
	taking sync.Mutex // held while a handed lease is taken: it is taken once

	mu    sync.Mutex
	known map[market.Key]standing
}

// standing is how the last word with a deputy, or with an agent that is served, went.
type standing struct {
	at  int64 // wall time, Unix milliseconds
	why error // nil where it went well
}

func (d *deputies) note(key market.Key, at int64, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[market.Key]standing{}
	}
	if why != nil {
		at = d.known[key].at
	}
	d.known[key] = standing{at, why}
}

func (d *deputies) of(key market.Key) standing {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known[key]
}

// Deputies returns the programs that act for this agent, and those for which it acts.
func (a *Agent) Deputies(ctx context.Context) ([]view.Deputy, error) {
	set, err := a.settings(ctx)
	if err != nil {
		return nil, err
	}
	list := []view.Deputy{}
	for _, d := range set.Deputies {
		list = append(list, a.deputyView(d))
	}
	return list, nil
}

func (a *Agent) deputyView(d Deputy) view.Deputy {
	last := a.deputies.of(d.Key)
	v := view.Deputy{
		Key: d.Key.String(), Name: d.Name, Serves: d.Serves, CapMicro: int64(d.Cap), SeenMs: last.at,
		Connected: last.why == nil && last.at > 0,
	}
	if last.why != nil {
		v.Why = market.Explain(last.why).Message
	}
	for _, l := range a.openLeases() {
		r, _ := l.get()
		if d.Serves && r.State.Serves == d.Key || !d.Serves && slices.Contains(r.State.Handed, d.Key) {
			v.Leases++
		}
	}
	return v
}

// AddDeputy takes in a deputy of this agent, or with Serves an agent for which this one acts from now on. One that is known already
// gets the new name and cap. New leases have it, those that are open keep the deputies of their terms.
func (a *Agent) AddDeputy(ctx context.Context, v view.Deputy) (view.Deputy, error) {
	key, err := market.ParseKey(v.Key)
	switch {
	case err != nil:
		return view.Deputy{}, err
	case key == a.self:
		return view.Deputy{}, badRequest("an agent is no deputy of its own: give the key of the agent on the other machine")
	case v.Name != "" && !isName(v.Name):
		return view.Deputy{}, market.NewError(market.CodeBadName, "name", clip(v.Name))
	case v.CapMicro < 0:
		return view.Deputy{}, badRequest("a cap is not negative; 0 is a lease's budget")
	}
	d := Deputy{Key: key, Name: v.Name, Serves: v.Serves, Cap: market.Micro(v.CapMicro)}
	err = a.changeSettings(ctx, func(set *Settings) error {
		list := slices.DeleteFunc(slices.Clone(set.Deputies), func(old Deputy) bool { return old.Key == key && old.Serves == d.Serves })
		list = append(list, d)
		most := market.MaxDeputies
		if d.Serves {
			most = maxServed
		}
		if n := len(slices.DeleteFunc(slices.Clone(list), func(o Deputy) bool { return o.Serves != d.Serves })); n > most {
			return badRequest("that is one too many: remove another one first")
		}
		set.Deputies = list
		return nil
	})
	if err != nil {
		return view.Deputy{}, err
	}
	return a.deputyView(d), nil
}

// RemoveDeputy forgets a key, as a deputy and as an agent that is served. Deputies of open leases are told that they are not needed
// any more, and what was served for the key is let go. The terms of a lease cannot be changed: what a deputy of it signs still counts.
// The error has code CodeDeputyUnknown.
func (a *Agent) RemoveDeputy(ctx context.Context, text string) error {
	key, err := market.ParseKey(text)
	if err != nil {
		return err
	}
	err = a.changeSettings(ctx, func(set *Settings) error {
		left := slices.DeleteFunc(slices.Clone(set.Deputies), func(d Deputy) bool { return d.Key == key })
		if len(left) == len(set.Deputies) {
			return market.NewError(market.CodeDeputyUnknown, "deputy", key.String())
		}
		set.Deputies = left
		return nil
	})
	if err != nil {
		return err
	}
	for _, l := range a.openLeases() {
		r, _ := l.get()
		switch {
		case r.State.Serves == key:
			if err := a.release(ctx, l); err != nil {
				return err
			}
		case slices.Contains(r.Terms.Deputies, key):
			l.change(func() {}) // whoever hands it over looks again
		}
	}
	return nil
}

// Serving reports whether this agent acts for another one, and must be there when that one calls.
func (a *Agent) Serving(ctx context.Context) bool {
	set, err := a.settings(ctx)
	return err == nil && slices.ContainsFunc(set.Deputies, func(d Deputy) bool { return d.Serves })
}

// deputyKeys returns the deputies of a new lease. The error has code CodeBadRequest where there are none.
func (a *Agent) deputyKeys(ctx context.Context) ([]market.Key, error) {
	set, err := a.settings(ctx)
	if err != nil {
		return nil, err
	}
	var keys []market.Key
	for _, d := range set.Deputies {
		if !d.Serves {
			keys = append(keys, d.Key)
		}
	}
	if len(keys) == 0 {
		return nil, badRequest("this agent has no deputy: `haggle deputy add KEY` names one")
	}
	return keys, nil
}

// deputyOf returns what the user said of a deputy of this agent, or with serves of an agent that it acts for.
func (a *Agent) deputyOf(ctx context.Context, key market.Key, serves bool) (Deputy, bool, error) {
	set, err := a.settings(ctx)
	if err != nil {
		return Deputy{}, false, err
	}
	i := slices.IndexFunc(set.Deputies, func(d Deputy) bool { return d.Key == key && d.Serves == serves })
	if i < 0 {
		return Deputy{}, false, nil
	}
	return set.Deputies[i], true, nil
}
