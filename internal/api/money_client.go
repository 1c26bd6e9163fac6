package api

import (
	"context"
	"net/http"
	"net/url"

	"haggle/internal/view"
)

// Ledger implements Money.
func (c *client) Ledger(ctx context.Context) (view.Ledger, error) {
	return get[view.Ledger](ctx, c, "/v1/ledger", nil)
}

// Invoice implements Money.
func (c *client) Invoice(ctx context.Context, owner, currency string) (view.Invoice, error) {
	return get[view.Invoice](ctx, c, ownerPath(owner)+"/invoice", values("currency", currency))
}

// History implements Money.
func (c *client) History(ctx context.Context, owner string) (view.History, error) {
	return get[view.History](ctx, c, ownerPath(owner)+"/history", nil)
}

// Dispute implements Money.
func (c *client) Dispute(ctx context.Context, id string, r view.DisputeRequest) (view.Disputes, error) {
	return call[view.Disputes](ctx, c, http.MethodPost, leasePath(id, "/disputes"), nil, r)
}

// Decision implements Money.
func (c *client) Decision(ctx context.Context, id string, sealed []byte) (view.Disputes, error) {
	return call[view.Disputes](ctx, c, http.MethodPost, leasePath(id, "/decision"), nil, view.Decision{Sealed: sealed})
}

// Disputes implements Money.
func (c *client) Disputes(ctx context.Context, id string) (view.Disputes, error) {
	return get[view.Disputes](ctx, c, leasePath(id, "/disputes"), nil)
}

// Backup implements Money.
func (c *client) Backup(ctx context.Context, path string) (view.Backup, error) {
	return call[view.Backup](ctx, c, http.MethodPost, "/v1/backup", nil, BackupRequest{Path: path})
}

// Evidence implements Agent and Earning.
func (c *client) Evidence(ctx context.Context, id string) ([]byte, error) {
	return c.bytes(ctx, http.MethodGet, leasePath(id, "/evidence"), nil, nil)
}

// Redacted is Evidence without the offer, the bid, and the receipts and payments before the newest. It is as valid.
func (c *client) Redacted(ctx context.Context, id string) ([]byte, error) {
	return c.bytes(ctx, http.MethodGet, leasePath(id, "/evidence"), values("redact", flag(true)), nil)
}

// PayLease implements Spending.
func (c *AgentClient) PayLease(ctx context.Context, id string, r view.PayRequest) (view.Lease, error) {
	return call[view.Lease](ctx, c.client, http.MethodPost, leasePath(id, "/pay"), nil, r)
}

// Budgets implements Spending.
func (c *AgentClient) Budgets(ctx context.Context) ([]view.Budget, error) {
	return get[[]view.Budget](ctx, c.client, "/v1/budgets", nil)
}

// SetBudget implements Spending.
func (c *AgentClient) SetBudget(ctx context.Context, r view.BudgetRequest) (view.Budget, error) {
	return call[view.Budget](ctx, c.client, http.MethodPut, "/v1/budgets", nil, r)
}

// Deputies implements Spending.
func (c *AgentClient) Deputies(ctx context.Context) ([]view.Deputy, error) {
	return get[[]view.Deputy](ctx, c.client, "/v1/deputies", nil)
}

// AddDeputy implements Spending.
func (c *AgentClient) AddDeputy(ctx context.Context, d view.Deputy) (view.Deputy, error) {
	return call[view.Deputy](ctx, c.client, http.MethodPut, deputyPath(d.Key), nil, DeputyRequest{d.Name, d.Serves, d.CapMicro})
}

// RemoveDeputy implements Spending.
func (c *AgentClient) RemoveDeputy(ctx context.Context, key string) error {
	return c.do(ctx, http.MethodDelete, deputyPath(key), nil)
}

// Guarantee implements Spending.
func (c *AgentClient) Guarantee(ctx context.Context, g view.GuaranteeRequest) ([]byte, error) {
	return c.bytes(ctx, http.MethodPost, "/v1/guarantees", nil, g)
}

// Decide implements Spending.
func (c *AgentClient) Decide(ctx context.Context, r view.DecideRequest) ([]byte, error) {
	return c.bytes(ctx, http.MethodPost, "/v1/decisions", nil, r)
}

// Confirm implements Earning.
func (c *RigClient) Confirm(ctx context.Context, id string, r view.Confirm) (view.Lease, error) {
	return call[view.Lease](ctx, c.client, http.MethodPost, leasePath(id, "/confirm"), nil, r)
}

func ownerPath(owner string) string { return "/v1/owners/" + url.PathEscape(owner) }

func deputyPath(key string) string { return "/v1/deputies/" + url.PathEscape(key) }
