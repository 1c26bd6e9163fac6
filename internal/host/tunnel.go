package host

import (
	"context"

	"haggle/market"
)

// ServeTunnel serves a renter one tunnel into its lease: the job's log, a path to the door of its job, or the way on which the
// archive of its image comes. The error is the market's, or nil after a clean end.
func (d *Daemon) ServeTunnel(ctx context.Context, s Stream) error {
	if err := d.await(ctx); err != nil {
		return err
	}
	m, err := receiveSoon(ctx, s)
	if err != nil {
		return clean(err)
	}
	ask, ok := m.(market.TunnelRequest)
	switch {
	case !ok:
		return market.Unexpected(m)
	case ask.Offset < 0:
		return market.NewError(market.CodeBadRequest, "why", "an offset is not negative")
	}
	serve := map[string]func(context.Context, Stream, market.TunnelRequest, *lease) error{
		market.TunnelLog: d.serveLog, market.TunnelDoor: d.serveDoor, market.TunnelImage: d.serveImage,
	}[ask.Kind]
	if serve == nil {
		return market.NewError(market.CodeUnsupported, "what", "a tunnel of kind "+ask.Kind, "instead", "ask for the log, the door or the image")
	}
	l, err := d.tenancy(ctx, ask.Lease, s.Peer(), ask.Kind != market.TunnelImage)
	if err != nil {
		return err
	}
	return clean(serve(ctx, s, ask, l))
}

// tenancy returns a lease of the renter's, nil where nothing is left to do for it. Deputies are let in where they may be.
func (d *Daemon) tenancy(ctx context.Context, id market.LeaseID, peer market.Key, deputies bool) (*lease, error) {
	l := d.lease(id)
	var terms market.Terms
	if l != nil {
		terms = l.snapshot().Terms
	} else {
		record, err := d.cfg.Store.Record(ctx, id)
		if err != nil {
			return nil, err
		}
		terms = record.Lease.Terms
	}
	if terms.Renter != peer && !(deputies && terms.SignsAsRenter(peer)) {
		return nil, market.NewError(market.CodeNotYours)
	}
	return l, nil
}

// hearEnd returns a context that ends when the peer of a tunnel on which it has nothing to say goes, or says something, and a
// function that ends it and waits for the listener.
func hearEnd(ctx context.Context, s Stream) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = s.Receive(ctx)
		cancel()
	}()
	return ctx, func() {
		cancel()
		<-gone
	}
}
