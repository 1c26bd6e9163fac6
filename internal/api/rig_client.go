package api

import (
	"context"
	"net/http"
	"net/url"

	"haggle/internal/view"
	"haggle/market"
)

// RigClient is a Rig over its socket. Errors are market errors, ErrNotRunning, ErrLost or the context's.
type RigClient struct{ *client }

// DialRig makes a client. Nothing is dialed before the first request, so it cannot fail.
func DialRig(socket string) *RigClient { return &RigClient{dial(socket)} }

// Status implements Rig.
func (c *RigClient) Status(ctx context.Context) (view.RigStatus, error) {
	return get[view.RigStatus](ctx, c.client, "/v1/status", nil)
}

// Cards implements Rig.
func (c *RigClient) Cards(ctx context.Context) ([]view.Card, error) {
	return get[[]view.Card](ctx, c.client, "/v1/cards", nil)
}

// Peers implements Rig.
func (c *RigClient) Peers(ctx context.Context) ([]view.Peer, error) {
	return get[[]view.Peer](ctx, c.client, "/v1/peers", nil)
}

// Leases implements Rig.
func (c *RigClient) Leases(ctx context.Context, all bool) ([]view.Lease, error) {
	return get[[]view.Lease](ctx, c.client, "/v1/leases", values("all", flag(all)))
}

// SetPrices implements Rig.
func (c *RigClient) SetPrices(ctx context.Context, p market.Prices) error {
	return c.do(ctx, http.MethodPut, "/v1/prices", p)
}

// Pause implements Rig.
func (c *RigClient) Pause(ctx context.Context) error { return c.post(ctx, "/v1/pause", nil) }

// Resume implements Rig.
func (c *RigClient) Resume(ctx context.Context) error { return c.post(ctx, "/v1/resume", nil) }

// Drain implements Rig.
func (c *RigClient) Drain(ctx context.Context, now bool) error {
	return c.post(ctx, "/v1/drain", DrainRequest{Now: now})
}

// TrustedOwners implements Rig.
func (c *RigClient) TrustedOwners(ctx context.Context) ([]view.Owner, error) {
	return get[[]view.Owner](ctx, c.client, "/v1/trusted", nil)
}

// Trust implements Rig.
func (c *RigClient) Trust(ctx context.Context, owner market.Key, t view.Trust) error {
	return c.do(ctx, http.MethodPut, "/v1/trusted/"+owner.String(), t)
}

// Distrust implements Rig.
func (c *RigClient) Distrust(ctx context.Context, owner market.Key) error {
	return c.do(ctx, http.MethodDelete, "/v1/trusted/"+owner.String(), nil)
}

// Takeback implements Rig.
func (c *RigClient) Takeback(ctx context.Context, card string, dryRun bool) (view.Takeback, error) {
	return call[view.Takeback](ctx, c.client, http.MethodPost, cardPath(card)+"/takeback", nil, TakebackRequest{DryRun: dryRun})
}

// Giveback implements Rig.
func (c *RigClient) Giveback(ctx context.Context, card string) error {
	return c.post(ctx, cardPath(card)+"/giveback", nil)
}

func cardPath(card string) string { return "/v1/cards/" + url.PathEscape(card) }

// Shutdown implements Rig.
func (c *RigClient) Shutdown(ctx context.Context) error { return c.post(ctx, "/v1/shutdown", nil) }

func (c *RigClient) post(ctx context.Context, path string, body any) error {
	return c.do(ctx, http.MethodPost, path, body)
}
