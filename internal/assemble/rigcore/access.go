package rigcore

import (
	"cmp"
	"context"

	"haggle/internal/assemble"
	"haggle/internal/view"
	"haggle/market"
	"haggle/p2p"
)

// access says who may call the rig: as configured, and whom it deals with.
func (r *Rig) access() (p2p.Access, error) {
	a, err := assemble.Access(r.cfg.Rig.Access)
	a.Known, a.OwnerOf = r.host.Deals, r.ownerOf
	return a, err
}

// ownerOf returns whose program a key is, as leases and the offers of other rigs say.
func (r *Rig) ownerOf(program market.Key) market.Key {
	return cmp.Or(r.host.OwnerOf(program), assemble.OwnerIn(r.owners.Load(), program))
}

// Blocked implements api.Access.
func (o owner) Blocked(context.Context) ([]view.Blocked, error) { return assemble.Blocked(o.node), nil }

// Block implements api.Access.
func (o owner) Block(ctx context.Context, key market.Key, b view.BlockRequest) error {
	return assemble.Block(ctx, o.node, o.store, key, b)
}

// Unblock implements api.Access.
func (o owner) Unblock(ctx context.Context, key market.Key) error {
	return assemble.Unblock(ctx, o.node, o.store, key)
}
