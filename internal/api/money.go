package api

import (
	"context"
	"net/http"
	"path/filepath"

	"github.com/danielgtaylor/huma/v2"

	"haggle/internal/view"
	"haggle/market"
)

// Money is what both programs know of money. An owner is a key, or what the program takes for one. An owner that it has had
// nothing to do with has an empty invoice and an empty history, which is no error.
type Money interface {
	// Ledger tells what this owner and others owe each other, by owner and currency.
	Ledger(ctx context.Context) (view.Ledger, error)
	// Invoice lists what an owner has used and paid in one currency, lease by lease. An empty currency is the only one there is.
	Invoice(ctx context.Context, owner, currency string) (view.Invoice, error)
	// History counts what this program verified of an owner.
	History(ctx context.Context, owner string) (view.History, error)
	// Dispute signs that a lease's bill is wrong, files it and tells the other side, now or when they are connected next.
	Dispute(ctx context.Context, id string, r view.DisputeRequest) (view.Disputes, error)
	// Decision takes the sealed decision of the guarantor of a lease, which counts from then on, and tells the other side.
	Decision(ctx context.Context, id string, sealed []byte) (view.Disputes, error)
	// Disputes tells what was said of a lease's bill.
	Disputes(ctx context.Context, id string) (view.Disputes, error)
	// Backup writes a copy of the program's state to a new file, named in full, that only this user can read. An existing file
	// is never overwritten. The copy holds no key.
	Backup(ctx context.Context, path string) (view.Backup, error)
}

// Spending is the part of Agent that is about money.
type Spending interface {
	Money
	// PayLease pays for a lease beyond what its rig has asked for: a debt, or ahead. An empty method is the lease's own; an
	// amount of 0 is all that is owed. It returns once the money is on its way or a person must act: the lease says which.
	PayLease(ctx context.Context, id string, r view.PayRequest) (view.Lease, error)
	// Budgets lists what may be spent over all leases, by currency.
	Budgets(ctx context.Context) ([]view.Budget, error)
	// SetBudget changes the budgets of one currency.
	SetBudget(ctx context.Context, r view.BudgetRequest) (view.Budget, error)
	// Deputies lists this agent's deputies, and the agents that it is a deputy of.
	Deputies(ctx context.Context) ([]view.Deputy, error)
	// AddDeputy makes another agent this one's deputy or, where Serves is true, this one the other's. Only Key, Name, Serves and
	// CapMicro are looked at. Again, it changes the name and the cap.
	AddDeputy(ctx context.Context, d view.Deputy) (view.Deputy, error)
	// RemoveDeputy takes either back. What a deputy has signed and paid stays.
	RemoveDeputy(ctx context.Context, key string) error
	// Guarantee signs that this owner owes a rig's owner what a renter's does not pay, and returns the sealed guarantee.
	Guarantee(ctx context.Context, g view.GuaranteeRequest) ([]byte, error)
	// Decide signs, as the guarantor that a lease names, what it costs, and returns the sealed decision. The evidence must hold.
	Decide(ctx context.Context, r view.DecideRequest) ([]byte, error)
}

// Earning is the part of Rig that is about money.
type Earning interface {
	Money
	// Confirm says that money has come for a lease that is paid by hand, and returns the lease with it.
	Confirm(ctx context.Context, id string, c view.Confirm) (view.Lease, error)
	// Evidence returns the bytes of a file that market.Judge can check.
	Evidence(ctx context.Context, id string) ([]byte, error)
}

type (
	invoiceOf struct {
		Owner    string `path:"owner" maxLength:"128" doc:"a key"`
		Currency string `query:"currency" maxLength:"8" doc:"empty for the only one there is"`
	}
	export struct {
		ID     string `path:"id" maxLength:"128" doc:"an id, or enough of its first digits, or a name"`
		Redact bool   `query:"redact" doc:"leave out what a judge of the newest receipt does not need: offer, bid, older receipts and payments"`
	}
	payOne struct {
		ID   string `path:"id" maxLength:"128" doc:"an id, or enough of its first digits, or a name"`
		Body view.PayRequest
	}
	confirmOne struct {
		ID   string `path:"id" maxLength:"128" doc:"an id, or enough of its first digits"`
		Body view.Confirm
	}
	budgetOf struct{ Body view.BudgetRequest }
	byKey    struct {
		Key string `path:"key" maxLength:"128" doc:"a key"`
	}
	deputyOne struct {
		Key  string `path:"key" maxLength:"128" doc:"a key"`
		Body DeputyRequest
	}
	disputeOne struct {
		ID   string `path:"id" maxLength:"128" doc:"an id, or enough of its first digits, or a name"`
		Body view.DisputeRequest
	}
	decisionOne struct {
		ID   string `path:"id" maxLength:"128" doc:"an id, or enough of its first digits, or a name"`
		Body view.Decision
	}
	decide    struct{ Body view.DecideRequest }
	guarantee struct{ Body view.GuaranteeRequest }
	backup    struct{ Body BackupRequest }
)

// DeputyRequest names a deputy.
type DeputyRequest struct {
	Name     string `json:"name,omitempty" maxLength:"64" doc:"in your own words; nobody else sees it"`
	Serves   bool   `json:"serves,omitempty" doc:"true: this agent becomes the other's deputy"`
	CapMicro int64  `json:"cap_micro,omitempty" minimum:"0" doc:"what it may pay for one lease, in millionths; 0 is the lease's budget"`
}

// BackupRequest asks for a copy of a program's state.
type BackupRequest struct {
	Path string `json:"path" minLength:"1" maxLength:"1024" doc:"of a new file, in full"`
}

// moneyRoutes registers what both programs have.
func moneyRoutes(api huma.API, c Config, m Money) {
	read(api, c, "get-ledger", "/v1/ledger", "What this owner and others owe each other", func(ctx context.Context, _ *struct{}) (view.Ledger, error) {
		l, err := m.Ledger(ctx)
		l.Entries = some(l.Entries)
		for i := range l.Entries {
			l.Entries[i].Ageing, l.Entries[i].Leases = some(l.Entries[i].Ageing), some(l.Entries[i].Leases)
		}
		return l, err
	})
	read(api, c, "get-invoice", "/v1/owners/{owner}/invoice", "An account with one owner, as a document", func(ctx context.Context, in *invoiceOf) (view.Invoice, error) {
		i, err := m.Invoice(ctx, in.Owner, in.Currency)
		i.Lines, i.Payments = some(i.Lines), some(i.Payments)
		return i, err
	})
	read(api, c, "get-history", "/v1/owners/{owner}/history", "What this program has verified of an owner", func(ctx context.Context, in *byOwner) (view.History, error) {
		h, err := m.History(ctx, in.Owner)
		h.Paid = some(h.Paid)
		return h, err
	})
	disputeRoutes(api, c, m)
	answerTo(api, c, http.MethodPost, "backup", "/v1/backup", "Write a copy of the state to a new file", func(ctx context.Context, in *backup) (view.Backup, error) {
		if !filepath.IsAbs(in.Body.Path) {
			return view.Backup{}, market.NewError(market.CodeBadRequest, "why", "the file must be named in full")
		}
		return m.Backup(ctx, in.Body.Path)
	})
}

// disputeRoutes registers what is said of a lease's bill.
func disputeRoutes(api huma.API, c Config, m Money) {
	const path = "/v1/leases/{id}/disputes"
	read(api, c, "list-disputes", path, "What was said of a lease's bill", func(ctx context.Context, in *byID) (view.Disputes, error) {
		return m.Disputes(ctx, in.ID)
	})
	answerTo(api, c, http.MethodPost, "dispute", path, "Sign that a lease's bill is wrong, and tell the other side", func(ctx context.Context, in *disputeOne) (view.Disputes, error) {
		return m.Dispute(ctx, in.ID, in.Body)
	})
	answerTo(api, c, http.MethodPost, "take-decision", "/v1/leases/{id}/decision", "Take the decision of a lease's guarantor, and tell the other side", func(ctx context.Context, in *decisionOne) (view.Disputes, error) {
		return m.Decision(ctx, in.ID, in.Body.Sealed)
	})
}

// exportRoute registers the export of a lease. What is redacted is as valid as the whole.
func exportRoute(api huma.API, c Config, evidence func(ctx context.Context, id string) ([]byte, error)) {
	answerBytes(api, c, http.MethodGet, "export-lease", "/v1/leases/{id}/evidence", "Everything that both sides signed, to be judged offline", func(ctx context.Context, in *export) ([]byte, error) {
		data, err := evidence(ctx, in.ID)
		if err == nil && in.Redact {
			data, err = redacted(data)
		}
		return data, err
	})
}

func redacted(data []byte) ([]byte, error) {
	e, err := market.DecodeEvidence(data)
	if err != nil {
		return nil, err
	}
	return e.Redact().Encode(), nil
}

// spendingRoutes registers an agent's affairs of money.
func spendingRoutes(api huma.API, c Config, a Spending) {
	moneyRoutes(api, c, a)
	answerTo(api, c, http.MethodPost, "pay-lease", "/v1/leases/{id}/pay", "Pay for a lease: what it owes, or ahead", func(ctx context.Context, in *payOne) (view.Lease, error) {
		return a.PayLease(ctx, in.ID, in.Body)
	})
	read(api, c, "list-budgets", "/v1/budgets", "What may be spent over all leases, by currency", func(ctx context.Context, _ *struct{}) ([]view.Budget, error) {
		list, err := a.Budgets(ctx)
		for i := range list {
			list[i].Alerts = some(list[i].Alerts)
		}
		return some(list), err
	})
	answerTo(api, c, http.MethodPut, "set-budget", "/v1/budgets", "Change the budgets of one currency", func(ctx context.Context, in *budgetOf) (view.Budget, error) {
		b, err := a.SetBudget(ctx, in.Body)
		b.Alerts = some(b.Alerts)
		return b, err
	})
	read(api, c, "list-deputies", "/v1/deputies", "Agents that act for this one, and those that it acts for", func(ctx context.Context, _ *struct{}) ([]view.Deputy, error) {
		list, err := a.Deputies(ctx)
		return some(list), err
	})
	answerTo(api, c, http.MethodPut, "add-deputy", "/v1/deputies/{key}", "Let an agent act for this one, or this one for it", func(ctx context.Context, in *deputyOne) (view.Deputy, error) {
		return a.AddDeputy(ctx, view.Deputy{Key: in.Key, Name: in.Body.Name, Serves: in.Body.Serves, CapMicro: in.Body.CapMicro})
	})
	act(api, c, http.MethodDelete, "remove-deputy", "/v1/deputies/{key}", "Let an agent act no more", func(ctx context.Context, in *byKey) error {
		return a.RemoveDeputy(ctx, in.Key)
	})
	answerBytes(api, c, http.MethodPost, "guarantee", "/v1/guarantees", "Promise a rig's owner what a renter may owe it", func(ctx context.Context, in *guarantee) ([]byte, error) {
		return a.Guarantee(ctx, in.Body)
	})
	answerBytes(api, c, http.MethodPost, "decide", "/v1/decisions", "Decide, as the guarantor that it names, what a lease costs", func(ctx context.Context, in *decide) ([]byte, error) {
		return a.Decide(ctx, in.Body)
	})
}

// earningRoutes registers a rig's affairs of money.
func earningRoutes(api huma.API, c Config, r Earning) {
	moneyRoutes(api, c, r)
	exportRoute(api, c, r.Evidence)
	answerTo(api, c, http.MethodPost, "confirm", "/v1/leases/{id}/confirm", "Say that money has come for a lease", func(ctx context.Context, in *confirmOne) (view.Lease, error) {
		return r.Confirm(ctx, in.ID, in.Body)
	})
}
