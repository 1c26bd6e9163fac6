//go:build linux

package rig

import (
	"context"
	"strings"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/p2p"
)

// Begin sets what all rigs of a program share. A program calls it once, before anything else.
func Begin() { p2p.TrustTwoObservers() }

// reach asks the daemon that runs how others reach it: nobody else can know.
func reach(ctx context.Context, cfg config.Rig) Finding {
	status, err := api.DialRig(cfg.Paths.Socket).Status(ctx)
	if err != nil || status.Network.Reach == nil {
		return Finding{"reach", LevelNote, "not known while haggled does not run", "start it, then ask again"}
	}
	r := status.Network.Reach
	f := Finding{"reach", LevelGood, r.Found, r.Fix}
	if r.Kind == p2p.ReachUnknown || r.Kind == p2p.ReachRelayed {
		f.Level = LevelNote
	}
	if state := r.State(); state != "" {
		f.Found += " (" + state + ")"
	}
	if len(r.Relays) > 0 {
		f.Found += "; relays: " + strings.Join(r.Relays, ", ")
	}
	return f
}
