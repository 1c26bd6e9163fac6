package agent

import (
	"context"

	"haggle/internal/whereabouts"
	"haggle/market"
)

// countryOf returns the country of the address at which a rig itself is reached, by a table; "" is unknown.
func (a *Agent) countryOf(rig market.Key) string { return whereabouts.Country(a.node.AddressOf(rig)) }

// measure measures the round trip to a rig: the node keeps it.
func (a *Agent) measure(ctx context.Context, rig market.Key) error {
	_, err := a.node.Ping(ctx, rig)
	return err
}
