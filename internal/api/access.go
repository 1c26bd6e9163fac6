package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"haggle/internal/view"
	"haggle/market"
)

// Access is who may call a program, as its user decides.
type Access interface {
	// Blocked lists who may neither call nor be called.
	Blocked(ctx context.Context) ([]view.Blocked, error)
	// Block keeps a program out, from now on and in the program's next lives.
	Block(ctx context.Context, key market.Key, r view.BlockRequest) error
	// Unblock lifts a block of the user's or one for faults. The error has code CodeNotBlocked where there is none.
	Unblock(ctx context.Context, key market.Key) error
}

type (
	byProgram struct {
		Key string `path:"key" maxLength:"128" doc:"a key"`
	}
	blockOne struct {
		Key  string `path:"key" maxLength:"128" doc:"a key"`
		Body view.BlockRequest
	}
)

// accessRoutes registers what is about who may call.
func accessRoutes(api huma.API, c Config, a Access) {
	read(api, c, "list-blocked", "/v1/blocked", "Who may neither call nor be called", func(ctx context.Context, _ *struct{}) ([]view.Blocked, error) {
		list, err := a.Blocked(ctx)
		return some(list), err
	})
	act(api, c, http.MethodPut, "block", "/v1/blocked/{key}", "Keep a program out", func(ctx context.Context, in *blockOne) error {
		key, err := market.ParseKey(in.Key)
		if err != nil {
			return err
		}
		return a.Block(ctx, key, in.Body)
	})
	act(api, c, http.MethodDelete, "unblock", "/v1/blocked/{key}", "Let a program in again", func(ctx context.Context, in *byProgram) error {
		key, err := market.ParseKey(in.Key)
		if err != nil {
			return err
		}
		return a.Unblock(ctx, key)
	})
}

// Blocked implements Access.
func (c *client) Blocked(ctx context.Context) ([]view.Blocked, error) {
	return get[[]view.Blocked](ctx, c, "/v1/blocked", nil)
}

// Block implements Access.
func (c *client) Block(ctx context.Context, key market.Key, r view.BlockRequest) error {
	return c.do(ctx, http.MethodPut, "/v1/blocked/"+key.String(), r)
}

// Unblock implements Access.
func (c *client) Unblock(ctx context.Context, key market.Key) error {
	return c.do(ctx, http.MethodDelete, "/v1/blocked/"+key.String(), nil)
}
