package rigcore

import (
	"context"
	"os"
	"time"

	"haggle/internal/api"
	"haggle/internal/assemble"
	"haggle/internal/view"
	"haggle/market"
)

// owner answers the rig's owner on the local API.
type owner struct{ *Rig }

var _ api.Rig = owner{}

// Status implements api.Rig.
func (o owner) Status(ctx context.Context) (view.RigStatus, error) {
	s, err := o.host.Status(ctx)
	if err != nil {
		return s, err
	}
	s.Version, s.PID, s.Home = o.cfg.Version, os.Getpid(), o.cfg.Rig.Paths.Home
	s.Uptime = int64(time.Since(o.begun).Seconds())
	s.Network = assemble.Network(o.node)
	s.Warnings = append(s.Warnings, o.imageWarnings()...)
	return s, nil
}

// Cards implements api.Rig.
func (o owner) Cards(ctx context.Context) ([]view.Card, error) { return o.host.Cards(ctx) }

// Peers implements api.Rig.
func (o owner) Peers(context.Context) ([]view.Peer, error) { return assemble.Peers(o.node), nil }

// SetPrices implements api.Rig.
func (o owner) SetPrices(ctx context.Context, p market.Prices) error { return o.host.SetPrices(ctx, p) }

// Pause implements api.Rig.
func (o owner) Pause(ctx context.Context) error { return o.host.Pause(ctx) }

// Resume implements api.Rig.
func (o owner) Resume(ctx context.Context) error { return o.host.Resume(ctx) }

// Drain implements api.Rig.
func (o owner) Drain(ctx context.Context, now bool) error { return o.host.Drain(ctx, now) }

// Leases implements api.Rig.
func (o owner) Leases(ctx context.Context, all bool) ([]view.Lease, error) {
	return o.host.Leases(ctx, all)
}

// Shutdown implements api.Rig.
func (o owner) Shutdown(context.Context) error {
	o.end.Do(func() { close(o.stop) })
	return nil
}
