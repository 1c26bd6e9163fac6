package api

import (
	"context"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"haggle/internal/view"
)

// Reaching is the part of an Agent that is about the way to others.
type Reaching interface {
	// Ping calls a program, named by its key, an offer of it or a lease with it, and tells by which way it was reached and how long
	// a few bytes took there and back.
	Ping(ctx context.Context, who string) (view.Ping, error)
}

func reachRoutes(api huma.API, c Config, a Reaching) {
	read(api, c, "ping", "/v1/ping/{id}", "By which way a peer is reached, and how fast", func(ctx context.Context, in *byID) (view.Ping, error) {
		return a.Ping(ctx, in.ID)
	})
}

// Ping implements Reaching.
func (c *AgentClient) Ping(ctx context.Context, who string) (view.Ping, error) {
	return get[view.Ping](ctx, c.client, "/v1/ping/"+url.PathEscape(who), nil)
}
