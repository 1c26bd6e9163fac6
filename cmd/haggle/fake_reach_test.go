package main

import (
	"context"

	"haggle/internal/view"
	"haggle/market"
)

// Ping implements api.Agent: 3f9a is the fake's offer, and nobody else is there.
func (a *fakeAgent) Ping(_ context.Context, who string) (view.Ping, error) {
	if who != "3f9a" {
		return view.Ping{}, market.NewError(market.CodeUnreachable, "peer", who)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pings++
	p := view.Ping{
		Key: "12D3KooWGaroCDSKTx78GU33iGoydSUaZZzfJvp7PGQLtUd5LV6x", Path: "punched", RTTMs: 30.25, Addr: "/ip4/192.0.2.7/udp/4701/quic-v1\x1b[31m",
	}
	if a.pings == 1 {
		p.Path, p.Small, p.Relay = "relayed", true, "12D3KooWA1FbgpLbL3RUWLZAJyjQuwVA1A2yNPqBBqGqSeGzGDCp"
	}
	return p, nil
}

// reachOfFake is that of an agent at home.
func reachOfFake() *view.Reach {
	r := view.Reach{Kind: "unknown", NAT: "port-preserving", Client: true, Punched: 2, Failed: 1}.Explained()
	return &r
}
