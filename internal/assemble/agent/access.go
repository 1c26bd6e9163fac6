package agent

import (
	"context"

	"haggle/internal/assemble"
	"haggle/internal/view"
	"haggle/market"
	"haggle/p2p"
)

// access says who may call the agent: as configured, and whom it deals with.
func (a *Agent) access() (p2p.Access, error) {
	access, err := assemble.Access(a.cfg.Agent.Access)
	access.Known = func(key market.Key) bool {
		r := a.renter.Load()
		return r != nil && r.Deals(key)
	}
	access.OwnerOf = func(program market.Key) market.Key {
		if r := a.renter.Load(); r != nil {
			return r.OwnerOf(program)
		}
		return market.Key{}
	}
	return access, err
}

// Blocked implements api.Access.
func (a *Agent) Blocked(context.Context) ([]view.Blocked, error) {
	return assemble.Blocked(a.node), nil
}

// Block implements api.Access.
func (a *Agent) Block(ctx context.Context, key market.Key, r view.BlockRequest) error {
	return assemble.Block(ctx, a.node, a.store, key, r)
}

// Unblock implements api.Access.
func (a *Agent) Unblock(ctx context.Context, key market.Key) error {
	return assemble.Unblock(ctx, a.node, a.store, key)
}
