package assemble

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"haggle/internal/config"
	"haggle/internal/index"
	"haggle/internal/store"
	"haggle/internal/view"
	"haggle/market"
	"haggle/p2p"
)

// Access returns who may call, as the configuration says.
func Access(c config.Access) (p2p.Access, error) {
	var a p2p.Access
	for _, list := range []struct {
		from []string
		into *[]market.Key
	}{{c.Allow, &a.Allow}, {c.Block, &a.Block}, {c.BlockOwners, &a.BlockOwners}} {
		for _, text := range list.from {
			key, err := market.ParseKey(text)
			if err != nil {
				return p2p.Access{}, err
			}
			*list.into = append(*list.into, key)
		}
	}
	for _, text := range c.BlockNets {
		net, err := config.ParseNet(text)
		if err != nil {
			return p2p.Access{}, err
		}
		a.BlockNets = append(a.BlockNets, net)
	}
	return a, nil
}

// Blocked returns who may not call now.
func Blocked(n *p2p.Node) []view.Blocked {
	list := []view.Blocked{}
	for _, b := range n.Blocked() {
		v := view.Blocked{Why: market.Printable(b.Why), By: string(b.By)}
		switch {
		case b.Net != netip.Prefix{}:
			v.Net = b.Net.String()
		case b.Owner:
			v.Owner = b.Key.String()
		default:
			v.Key = b.Key.String()
		}
		if !b.Until.IsZero() {
			until := b.Until.UnixMilli()
			v.Until = &until
		}
		list = append(list, v)
	}
	return list
}

// Blocks keeps the blocks of a program's user.
type Blocks interface {
	Blocks(ctx context.Context) ([]store.Block, error)
	SaveBlock(ctx context.Context, b store.Block) error
	DropBlock(ctx context.Context, key market.Key) error
}

// RestoreBlocks puts the blocks of earlier lives in force, as far as their time is not over. One that the node does not take, because the
// configuration allows the key by now, is only logged.
func RestoreBlocks(ctx context.Context, n *p2p.Node, kept Blocks, log *slog.Logger) error {
	list, err := kept.Blocks(ctx)
	if err != nil {
		return err
	}
	for _, b := range list {
		var d time.Duration
		if b.Until > 0 {
			if d = time.Until(time.UnixMilli(b.Until)); d <= 0 {
				if err := kept.DropBlock(ctx, b.Key); err != nil {
					return err
				}
				continue
			}
		}
		if err := n.Block(b.Key, d, b.Why); err != nil {
			log.Warn("a block is not in force", "key", b.Key.String(), "err", err)
		}
	}
	return nil
}

// Block keeps a program out, now and in the next lives.
func Block(ctx context.Context, n *p2p.Node, kept Blocks, key market.Key, r view.BlockRequest) error {
	d := time.Duration(r.ForMs) * time.Millisecond
	if err := n.Block(key, d, r.Why); err != nil {
		return err
	}
	b := store.Block{Key: key, Why: r.Why}
	if d > 0 {
		b.Until = time.Now().Add(d).UnixMilli()
	}
	return kept.SaveBlock(ctx, b)
}

// Unblock lets a program in again. The error has code CodeNotBlocked where nobody kept it out, or where the configuration does.
func Unblock(ctx context.Context, n *p2p.Node, kept Blocks, key market.Key) error {
	if err := kept.DropBlock(ctx, key); err != nil {
		return err
	}
	if !n.Unblock(key) {
		return market.NewError(market.CodeNotBlocked, "key", key.String())
	}
	return nil
}

// OwnerIn returns the owner of a rig as its offers in an index name it, and the zero key where none is known.
func OwnerIn(x *index.Index, rig market.Key) market.Key {
	if x == nil {
		return market.Key{}
	}
	for _, k := range x.Of(rig, time.Now()) {
		return k.Offer.Owner
	}
	return market.Key{}
}
