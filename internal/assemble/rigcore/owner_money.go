package rigcore

import (
	"context"

	"haggle/internal/assemble"
	"haggle/internal/view"
)

// Ledger implements api.Money.
func (o owner) Ledger(ctx context.Context) (view.Ledger, error) { return o.host.Ledger(ctx) }

// Invoice implements api.Money.
func (o owner) Invoice(ctx context.Context, who, currency string) (view.Invoice, error) {
	return o.host.Invoice(ctx, who, currency)
}

// History implements api.Money.
func (o owner) History(ctx context.Context, who string) (view.History, error) {
	return o.host.History(ctx, who)
}

// Backup implements api.Money.
func (o owner) Backup(ctx context.Context, path string) (view.Backup, error) {
	return assemble.Backup(o.store.Backup(ctx, path))
}

// Confirm implements api.Earning.
func (o owner) Confirm(ctx context.Context, lease string, c view.Confirm) (view.Lease, error) {
	return o.host.Confirm(ctx, lease, c)
}

// Dispute implements api.Money.
func (o owner) Dispute(ctx context.Context, lease string, r view.DisputeRequest) (view.Disputes, error) {
	return o.host.Dispute(ctx, lease, r)
}

// Decision implements api.Money.
func (o owner) Decision(ctx context.Context, lease string, sealed []byte) (view.Disputes, error) {
	return o.host.Decision(ctx, lease, sealed)
}

// Disputes implements api.Money.
func (o owner) Disputes(ctx context.Context, lease string) (view.Disputes, error) {
	return o.host.Disputes(ctx, lease)
}

// Evidence implements api.Earning.
func (o owner) Evidence(ctx context.Context, lease string) ([]byte, error) {
	return o.host.Evidence(ctx, lease)
}
