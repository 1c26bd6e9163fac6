package assemble

import (
	"context"
	"fmt"

	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
	"haggle/p2p"
)

// Reach turns the knobs of being reached into a node's configuration.
func Reach(c config.Reach) (p2p.Reach, error) {
	r := p2p.Reach{
		Assume: c.Assume, NoPortMap: c.MapPort == config.No, NoIPv6: c.IPv6 == config.No,
		Relays: c.Relays, Announce: c.Announce, Private: c.Private,
	}
	switch c.Relay {
	case config.RelayNone:
		r.Relay = p2p.RelayNone
	case config.RelayBulk:
		r.Relay = p2p.RelayBulk
	}
	if len(c.RelayFor) == 0 {
		return r, nil
	}
	keys := map[market.Key]bool{}
	for _, text := range c.RelayFor {
		key, err := market.ParseKey(text)
		if err != nil {
			return r, fmt.Errorf("reach.relay_for: %w", err)
		}
		keys[key] = true
	}
	r.BulkFor = func(key market.Key) bool { return keys[key] }
	return r, nil
}

// ReachOf returns how a node is reached, in words too.
func ReachOf(n *p2p.Node) *view.Reach {
	r := n.Reach()
	v := view.Reach{
		Kind: r.Kind, NAT: string(r.NAT), Private: r.Private, Client: n.Mode() == p2p.ModeClient, Gateway: r.Gateway, Mapped: r.Mapped,
		Pinholes: r.Pinholes, Relays: r.Relays, Serves: r.Serves.String(), Punched: r.PunchesOK, Failed: r.Failed,
	}
	for _, t := range r.Transports {
		v.Transports = append(v.Transports, view.Transport(t))
	}
	for _, o := range r.Observed {
		v.Observed = append(v.Observed, view.Observed{Transport: o.Transport, Addr: o.Addr.String(), Observers: o.Observers})
	}
	v = v.Explained()
	return &v
}

// Ping calls a peer and tells how it was reached.
func Ping(ctx context.Context, n *p2p.Node, key market.Key) (view.Ping, error) {
	r, err := n.Ping(ctx, key)
	if err != nil {
		return view.Ping{}, err
	}
	return view.Ping{
		Key: key.String(), Path: r.Path, RTTMs: float64(r.RTT.Microseconds()) / 1000, Addr: r.Addr, Relay: r.Relay, Small: r.Small,
	}, nil
}

// Offered returns a node's reach as offers state it: nothing while it is not known.
func Offered(n *p2p.Node) string {
	if kind := n.Reach().Kind; kind != p2p.ReachUnknown {
		return kind
	}
	return ""
}
