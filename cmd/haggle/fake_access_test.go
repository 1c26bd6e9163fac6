package main

import (
	"context"
	"slices"

	"haggle/internal/view"
	"haggle/market"
)

// fakeAccess is what the fake agent knows of who may call, and of names.
type fakeAccess struct {
	blocked []view.Blocked
	names   []view.GivenName
}

func (a *fakeAgent) Blocked(context.Context) ([]view.Blocked, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.access.blocked), nil
}

func (a *fakeAgent) Block(_ context.Context, key market.Key, r view.BlockRequest) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.access.blocked = append(a.access.blocked, view.Blocked{Key: key.String(), Why: r.Why, By: "user"})
	return nil
}

func (a *fakeAgent) Unblock(_ context.Context, key market.Key) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := len(a.access.blocked)
	a.access.blocked = slices.DeleteFunc(a.access.blocked, func(b view.Blocked) bool { return b.Key == key.String() })
	if len(a.access.blocked) == before {
		return market.NewError(market.CodeNotBlocked, "key", key.String())
	}
	return nil
}

func (a *fakeAgent) GivenNames(context.Context) ([]view.GivenName, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.access.names), nil
}

func (a *fakeAgent) GiveName(_ context.Context, who, name string) (view.GivenName, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := view.GivenName{Name: name, Key: who}
	if i := slices.IndexFunc(a.access.names, func(g view.GivenName) bool { return g.Name == who }); i >= 0 {
		n.Key, n.Calls = a.access.names[i].Key, a.access.names[i].Calls
		a.access.names = slices.Delete(a.access.names, i, i+1)
	} else if who != "rig-1" {
		return n, market.NewError(market.CodeNobody, "who", who)
	} else {
		n.Key, n.Calls = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN", "rig-1"
	}
	if name != "" {
		a.access.names = append(a.access.names, n)
	}
	return n, nil
}
