package rigcore

import (
	"context"
	"os"
	"os/user"
	"slices"
	"strconv"
	"time"

	"haggle/internal/api"
	"haggle/internal/assemble"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

// ownersGroup is the group whose members may ask an installed rig, beside its own user and root: haggle, where there is such a
// group and this program may give a socket to it. A rig with a home is for its user alone.
func ownersGroup(p config.Paths) string {
	const name = "haggle"
	g, err := user.LookupGroup(name)
	if p.Home != "" || err != nil {
		return ""
	}
	if gid, err := strconv.Atoi(g.Gid); err == nil {
		mine, err := os.Getgroups()
		if os.Geteuid() == 0 || err == nil && slices.Contains(mine, gid) {
			return name
		}
	}
	return ""
}

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
	s.Visible = o.visible.Load()
	s.Blocked = len(assemble.Blocked(o.node))
	s.Warnings = slices.Concat(s.Warnings, o.cfg.Warnings, o.imageWarnings(), idlePrograms(o.cfg.Rig.Pay, s.Pays))
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

// TrustedOwners implements api.Rig.
func (o owner) TrustedOwners(ctx context.Context) ([]view.Owner, error) {
	return o.host.TrustedOwners(ctx)
}

// Trust implements api.Rig.
func (o owner) Trust(ctx context.Context, who market.Key, t view.Trust) error {
	return o.host.Trust(ctx, who, t)
}

// Distrust implements api.Rig.
func (o owner) Distrust(ctx context.Context, who market.Key) error { return o.host.Distrust(ctx, who) }

// Takeback implements api.Rig.
func (o owner) Takeback(ctx context.Context, card string, dryRun bool) (view.Takeback, error) {
	return o.host.Takeback(ctx, card, dryRun)
}

// Giveback implements api.Rig.
func (o owner) Giveback(ctx context.Context, card string) error { return o.host.Giveback(ctx, card) }

// Shutdown implements api.Rig.
func (o owner) Shutdown(context.Context) error {
	o.end.Do(func() { close(o.stop) })
	return nil
}
