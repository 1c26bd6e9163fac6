package agent

import (
	"context"

	"haggle/internal/assemble"
	"haggle/internal/view"
	"haggle/p2p"
)

// Begin sets what all agents of a program share. A program calls it once, before anything else.
func Begin() { p2p.TrustTwoObservers() }

// Ping implements api.Agent.
func (a *Agent) Ping(ctx context.Context, who string) (view.Ping, error) {
	key, err := a.RigOf(ctx, who)
	if err != nil {
		return view.Ping{}, err
	}
	return assemble.Ping(ctx, a.node, key)
}
