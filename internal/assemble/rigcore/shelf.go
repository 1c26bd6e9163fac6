package rigcore

import (
	"haggle/internal/index"
	"haggle/market"
)

// newShelf makes the rig's book of the offers in its own cells, which it serves to whoever asks.
func (r *Rig) newShelf() (*index.Index, error) {
	return index.New(index.Config{
		Network: r.cfg.Rig.Network, Self: market.KeyOf(r.key), Net: r.node, Store: r.store, Log: r.log,
		Offers: r.host.Offers, Buckets: r.host.Buckets,
	})
}

// offered tells the shelf that the rig's offers or their buckets have changed.
func (r *Rig) offered() {
	if r.shelf != nil {
		r.shelf.Offered()
	}
}
