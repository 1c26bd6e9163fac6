package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"haggle/internal/view"
	"haggle/market"
)

// Rig is a rig's daemon as its owner sees it. RigClient and the daemon itself fulfil it. Errors are market errors; any other
// error becomes "internal" on its way through the API.
type Rig interface {
	// Status tells where the rig stands.
	Status(ctx context.Context) (view.RigStatus, error)
	// Cards lists the rig's cards by slot.
	Cards(ctx context.Context) ([]view.Card, error)
	// Peers lists the programs that the rig is connected with.
	Peers(ctx context.Context) ([]view.Peer, error)
	// SetPrices changes what the next leases cost. Leases that are signed keep their prices.
	SetPrices(ctx context.Context, p market.Prices) error
	// Pause refuses new leases until Resume. Running leases go on.
	Pause(ctx context.Context) error
	// Resume takes new leases again, after Pause or Drain.
	Resume(ctx context.Context) error
	// Drain refuses new leases for good; with now it also ends the running ones, after their notice.
	Drain(ctx context.Context, now bool) error
	// Leases lists the leases that are open, or all, newest first.
	Leases(ctx context.Context, all bool) ([]view.Lease, error)
	// Shutdown ends the daemon. Jobs go on and are adopted by the next one.
	Shutdown(ctx context.Context) error
}

type (
	newPrices struct{ Body market.Prices }
	drain     struct{ Body DrainRequest }
)

// DrainRequest empties a rig.
type DrainRequest struct {
	Now bool `json:"now" doc:"also end the running leases, after their notice"`
}

// rigRoutes registers every operation of a rig.
func rigRoutes(api huma.API, c Config, r Rig) {
	read(api, c, "get-status", "/v1/status", "Where the rig stands", func(ctx context.Context, _ *struct{}) (view.RigStatus, error) {
		s, err := r.Status(ctx)
		s.Leases, s.Images = some(s.Leases), some(s.Images)
		return s, err
	})
	read(api, c, "list-cards", "/v1/cards", "Cards by slot", func(ctx context.Context, _ *struct{}) ([]view.Card, error) {
		list, err := r.Cards(ctx)
		return some(list), err
	})
	read(api, c, "list-peers", "/v1/peers", "Programs that the rig is connected with", func(ctx context.Context, _ *struct{}) ([]view.Peer, error) {
		list, err := r.Peers(ctx)
		return some(list), err
	})
	read(api, c, "list-leases", "/v1/leases", "Leases, newest first", func(ctx context.Context, in *allLeases) ([]view.Lease, error) {
		list, err := r.Leases(ctx, in.All)
		return some(list), err
	})
	act(api, c, http.MethodPut, "set-prices", "/v1/prices", "Change what the next leases cost", func(ctx context.Context, in *newPrices) error {
		return r.SetPrices(ctx, in.Body)
	})
	act(api, c, http.MethodPost, "pause", "/v1/pause", "Refuse new leases", func(ctx context.Context, _ *struct{}) error {
		return r.Pause(ctx)
	})
	act(api, c, http.MethodPost, "resume", "/v1/resume", "Take new leases again", func(ctx context.Context, _ *struct{}) error {
		return r.Resume(ctx)
	})
	act(api, c, http.MethodPost, "drain", "/v1/drain", "Refuse new leases for good", func(ctx context.Context, in *drain) error {
		return r.Drain(ctx, in.Body.Now)
	})
	act(api, c, http.MethodPost, "shutdown", "/v1/shutdown", "End the daemon; jobs go on", func(ctx context.Context, _ *struct{}) error {
		return r.Shutdown(ctx)
	})
}
