package api

import (
	"context"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"haggle/internal/view"
)

// Agent is the renter's program as its user sees it. AgentClient and the agent itself fulfil it. Errors are market errors; any
// other error becomes "internal" on its way through the API. Ids may be shortened as the agent allows it.
type Agent interface {
	Inside
	Spending
	Reaching
	Access
	Names
	Choosing
	// Status tells where the agent stands.
	Status(ctx context.Context) (view.AgentStatus, error)
	// Bid orders slots and returns once both sides have signed the lease. The agent goes on when the caller goes away.
	Bid(ctx context.Context, b view.BidRequest) (view.Lease, error)
	// Leases lists the leases that are open, or all, newest first.
	Leases(ctx context.Context, all bool) ([]view.Lease, error)
	// Lease returns one lease.
	Lease(ctx context.Context, id string) (view.Lease, error)
	// Stop ends a lease's job, with SIGTERM and a notice or at once.
	Stop(ctx context.Context, id string, kill bool) (view.Lease, error)
	// Log opens a lease's log at a byte offset, framed as package runtime frames it. With follow, Read waits for more
	// until the log ends. The caller closes it; the end of ctx unblocks Read.
	Log(ctx context.Context, id string, offset int64, follow bool) (io.ReadCloser, error)
	// Receipts lists a lease's receipts by number.
	Receipts(ctx context.Context, id string) ([]view.Receipt, error)
	// Evidence returns the bytes of a file that market.Judge can check.
	Evidence(ctx context.Context, id string) ([]byte, error)
	// Peers lists the programs that the agent is connected with.
	Peers(ctx context.Context) ([]view.Peer, error)
	// Watch tells every change of a lease until ctx ends, which closes the channel. For a slow reader the latest state of
	// each lease wins. A closed channel before the end of ctx means that the agent is gone.
	Watch(ctx context.Context) <-chan view.Lease
	// Shutdown ends the agent. It refuses while leases are open, unless forced.
	Shutdown(ctx context.Context, force bool) error
}

type (
	byID struct {
		ID string `path:"id" maxLength:"128" doc:"an id, or enough of its first digits, or a name"`
	}
	allLeases struct {
		All bool `query:"all" doc:"also those that are over"`
	}
	bidFor  struct{ Body view.BidRequest }
	stopOne struct {
		ID   string `path:"id" maxLength:"128" doc:"an id, or enough of its first digits, or a name"`
		Body view.StopRequest
	}
	shutdown      struct{ Body ShutdownRequest }
	answer[T any] struct{ Body T }
	bytesOut      struct {
		ContentType string `header:"Content-Type"`
		Body        []byte
	}
)

// ShutdownRequest ends an agent.
type ShutdownRequest struct {
	Force bool `json:"force" doc:"even while leases are open; their jobs go on unattended"`
}

// agentRoutes registers every operation of an agent.
func agentRoutes(api huma.API, c Config, a Agent) {
	read(api, c, "get-status", "/v1/status", "Where the agent stands", func(ctx context.Context, _ *struct{}) (view.AgentStatus, error) {
		return a.Status(ctx)
	})
	read(api, c, "list-leases", "/v1/leases", "Leases, newest first", func(ctx context.Context, in *allLeases) ([]view.Lease, error) {
		list, err := a.Leases(ctx, in.All)
		return some(list), err
	})
	read(api, c, "get-lease", "/v1/leases/{id}", "One lease", func(ctx context.Context, in *byID) (view.Lease, error) {
		return a.Lease(ctx, in.ID)
	})
	read(api, c, "list-receipts", "/v1/leases/{id}/receipts", "Receipts of a lease by number", func(ctx context.Context, in *byID) ([]view.Receipt, error) {
		list, err := a.Receipts(ctx, in.ID)
		return some(list), err
	})
	read(api, c, "list-peers", "/v1/peers", "Programs that the agent is connected with", func(ctx context.Context, _ *struct{}) ([]view.Peer, error) {
		list, err := a.Peers(ctx)
		return some(list), err
	})
	answerTo(api, c, http.MethodPost, "bid", "/v1/leases", "Order slots; answers once both sides have signed", func(ctx context.Context, in *bidFor) (view.Lease, error) {
		return a.Bid(ctx, in.Body)
	})
	answerTo(api, c, http.MethodPost, "stop-lease", "/v1/leases/{id}/stop", "End a lease's job", func(ctx context.Context, in *stopOne) (view.Lease, error) {
		return a.Stop(ctx, in.ID, in.Body.Kill)
	})
	act(api, c, http.MethodPost, "shutdown", "/v1/shutdown", "End the agent", func(ctx context.Context, in *shutdown) error {
		return a.Shutdown(ctx, in.Body.Force)
	})
	exportRoute(api, c, a.Evidence)
	logRoute(api, c, a)
	eventRoute(api, c, a)
	insideRoutes(api, c, a)
	spendingRoutes(api, c, a)
	reachRoutes(api, c, a)
	accessRoutes(api, c, a)
	nameRoutes(api, c, a)
	choosingRoutes(api, c, a)
}

// some turns an absent list into an empty one: JSON has [] for it and not null.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
