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
	Earning
	Access
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
	// TrustedOwners lists the owners whose bids are taken, with what they owe, in the order in which they were added.
	TrustedOwners(ctx context.Context) ([]view.Owner, error)
	// Trust takes bids of an owner from now on, and says what it may owe. Again, it changes what is not nil.
	Trust(ctx context.Context, owner market.Key, t view.Trust) error
	// Distrust takes no more bids of an owner. Leases that are signed go on.
	Distrust(ctx context.Context, owner market.Key) error
	// Takeback takes a card, named by slot or UUID, from new leases and ends the lease that holds it, after the notice of its
	// terms. With dryRun nothing is done: the answer says what would be.
	Takeback(ctx context.Context, card string, dryRun bool) (view.Takeback, error)
	// Giveback offers a card again that was taken back or withheld. A card that is offered is no error.
	Giveback(ctx context.Context, card string) error
	// Shutdown ends the daemon. Jobs go on and are adopted by the next one.
	Shutdown(ctx context.Context) error
}

type (
	newPrices struct{ Body market.Prices }
	drain     struct{ Body DrainRequest }
	byOwner   struct {
		Owner string `path:"owner" maxLength:"128" doc:"a key"`
	}
	trustOne struct {
		Owner string `path:"owner" maxLength:"128" doc:"a key"`
		Body  view.Trust
	}
	byCard struct {
		Card string `path:"card" maxLength:"128" doc:"a slot, or a UUID or enough of its beginning"`
	}
	takeOne struct {
		Card string `path:"card" maxLength:"128" doc:"a slot, or a UUID or enough of its beginning"`
		Body TakebackRequest
	}
)

// DrainRequest empties a rig.
type DrainRequest struct {
	Now bool `json:"now" doc:"also end the running leases, after their notice"`
}

// TakebackRequest takes a card back.
type TakebackRequest struct {
	DryRun bool `json:"dry_run" doc:"do nothing, and say what it would mean"`
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
	trustRoutes(api, c, r)
	cardRoutes(api, c, r)
	earningRoutes(api, c, r)
	accessRoutes(api, c, r)
	act(api, c, http.MethodPost, "shutdown", "/v1/shutdown", "End the daemon; jobs go on", func(ctx context.Context, _ *struct{}) error {
		return r.Shutdown(ctx)
	})
}

// trustRoutes registers what is about owners whose bids are taken.
func trustRoutes(api huma.API, c Config, r Rig) {
	read(api, c, "list-trusted", "/v1/trusted", "Owners whose bids are taken", func(ctx context.Context, _ *struct{}) ([]view.Owner, error) {
		list, err := r.TrustedOwners(ctx)
		return some(list), err
	})
	act(api, c, http.MethodPut, "trust", "/v1/trusted/{owner}", "Take bids of an owner", func(ctx context.Context, in *trustOne) error {
		key, err := market.ParseKey(in.Owner)
		if err != nil {
			return err
		}
		return r.Trust(ctx, key, in.Body)
	})
	act(api, c, http.MethodDelete, "distrust", "/v1/trusted/{owner}", "Take no more bids of an owner", func(ctx context.Context, in *byOwner) error {
		key, err := market.ParseKey(in.Owner)
		if err != nil {
			return err
		}
		return r.Distrust(ctx, key)
	})
}

// cardRoutes registers what an owner does with single cards.
func cardRoutes(api huma.API, c Config, r Rig) {
	answerTo(api, c, http.MethodPost, "take-back", "/v1/cards/{card}/takeback", "Take a card back, after its job's notice",
		func(ctx context.Context, in *takeOne) (view.Takeback, error) {
			return r.Takeback(ctx, in.Card, in.Body.DryRun)
		})
	act(api, c, http.MethodPost, "give-back", "/v1/cards/{card}/giveback", "Offer a card again", func(ctx context.Context, in *byCard) error {
		return r.Giveback(ctx, in.Card)
	})
}
