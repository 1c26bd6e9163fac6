package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

// fakeRig is the part of a rig that its owner reaches from haggle.
type fakeRig struct {
	api.Rig

	mu      sync.Mutex
	trusted []view.Owner
}

func (f *fakeRig) TrustedOwners(context.Context) ([]view.Owner, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.trusted), nil
}

func (f *fakeRig) Trust(_ context.Context, owner market.Key, t view.Trust) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := slices.IndexFunc(f.trusted, func(o view.Owner) bool { return o.Key == owner.String() })
	if at < 0 {
		at = len(f.trusted)
		rule := view.MoneyLimit{Now: usd(0), Most: usd(5_000_000)}
		f.trusted = append(f.trusted, view.Owner{Key: owner.String(), Since: markettest.Now, Owes: usd(0), Credit: rule})
	}
	o := &f.trusted[at]
	if t.Name != nil {
		o.Name = *t.Name
	}
	if t.Guarantor != nil {
		o.Guarantor = *t.Guarantor
	}
	if t.CreditMicro != nil {
		o.Credit = view.MoneyLimit{Most: usd(market.Micro(max(0, *t.CreditMicro))), Unlimited: *t.CreditMicro < 0}
	}
	return nil
}

func (f *fakeRig) Distrust(_ context.Context, owner market.Key) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trusted = slices.DeleteFunc(f.trusted, func(o view.Owner) bool { return o.Key == owner.String() })
	return nil
}

func (f *fakeRig) Confirm(_ context.Context, id string, c view.Confirm) (view.Lease, error) {
	if id != "cafe" {
		return view.Lease{}, market.NewError(market.CodeLeaseUnknown, "lease", id)
	}
	amount := market.Micro(c.AmountMicro)
	if amount == 0 {
		return view.Lease{}, market.NewError(market.CodeNothingOwed, "what", "confirmed", "lease", id)
	}
	return view.Lease{ID: "cafe0000", Spent: usd(48_000), Pay: &view.Pay{Method: "hand", Paid: usd(amount)}, Args: []string{}, Name: c.Reference}, nil
}

// rig serves a fake rig with a home until the script ends: rig HOME.
func rig(ts *testscript.TestScript, _ bool, args []string) {
	paths, err := config.RigPaths(args[0])
	ts.Check(err)
	ctx, cancel := context.WithCancel(context.Background())
	server := api.NewRigServer(api.Config{Socket: paths.Socket, Version: "unknown"}, &fakeRig{})
	ts.Check(server.Listen())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	ts.Defer(func() {
		cancel()
		select {
		case err := <-done:
			ts.Check(err)
		case <-time.After(5 * time.Second):
			ts.Fatalf("the rig does not end")
		}
	})
}
