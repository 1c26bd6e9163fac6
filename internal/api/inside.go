package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"haggle/internal/tunnel"
	"haggle/internal/view"
)

// Inside is the part of Agent that is about what lies inside a lease.
type Inside interface {
	// Tunnel opens a path into a lease's job, for package tunnel's channels. ctx bounds the opening only; the caller closes it.
	Tunnel(ctx context.Context, id string) (tunnel.Conn, error)
	// Copy copies files between this machine and a job, and tells its progress at most ten times a second from one goroutine.
	// The end of ctx ends it; what has arrived stays, and the next copy goes on from there.
	Copy(ctx context.Context, id string, r view.CopyRequest, progress func(view.Progress)) (view.CopyReport, error)
	// Keep ends a lease's job and keeps its disk at the disk's price: the lease is paused.
	Keep(ctx context.Context, id string) (view.Lease, error)
	// Resume starts the job of a paused lease again, on the same cards.
	Resume(ctx context.Context, id string) (view.Lease, error)
	// Remove ends a paused lease and wipes its disk.
	Remove(ctx context.Context, id string) (view.Lease, error)
	// Extend adds to the running time and the budget of a lease, and returns once both sides have signed it.
	Extend(ctx context.Context, id string, r view.ExtendRequest) (view.Lease, error)
	// Rename gives a lease a name and labels.
	Rename(ctx context.Context, id string, r view.NameRequest) (view.Lease, error)
	// Checkpoints lists a lease's checkpoints, oldest first.
	Checkpoints(ctx context.Context, id string) ([]view.CheckpointInfo, error)
	// CheckpointNow takes a checkpoint of a lease's job.
	CheckpointNow(ctx context.Context, id string) (view.CheckpointInfo, error)
}

type (
	extendOne struct {
		ID   string `path:"id" maxLength:"128" doc:"an id, or enough of its first digits, or a name"`
		Body view.ExtendRequest
	}
	nameOne struct {
		ID   string `path:"id" maxLength:"128" doc:"an id, or enough of its first digits, or a name"`
		Body view.NameRequest
	}
)

// insideRoutes registers what is about the inside of leases.
func insideRoutes(api huma.API, c Config, a Inside) {
	for _, op := range []struct {
		id, path, summary string
		do                func(context.Context, string) (view.Lease, error)
	}{
		{"keep-lease", "/v1/leases/{id}/keep", "End a lease's job and keep its disk", a.Keep},
		{"resume-lease", "/v1/leases/{id}/resume", "Start the job of a paused lease again", a.Resume},
		{"remove-lease", "/v1/leases/{id}/remove", "End a paused lease and wipe its disk", a.Remove},
	} {
		answerTo(api, c, http.MethodPost, op.id, op.path, op.summary, func(ctx context.Context, in *byID) (view.Lease, error) {
			return op.do(ctx, in.ID)
		})
	}
	answerTo(api, c, http.MethodPost, "extend-lease", "/v1/leases/{id}/extend", "Add to a lease's time and budget", func(ctx context.Context, in *extendOne) (view.Lease, error) {
		return a.Extend(ctx, in.ID, in.Body)
	})
	answerTo(api, c, http.MethodPost, "name-lease", "/v1/leases/{id}/name", "Name a lease", func(ctx context.Context, in *nameOne) (view.Lease, error) {
		return a.Rename(ctx, in.ID, in.Body)
	})
	read(api, c, "list-checkpoints", "/v1/leases/{id}/checkpoints", "Checkpoints of a lease, oldest first", func(ctx context.Context, in *byID) ([]view.CheckpointInfo, error) {
		list, err := a.Checkpoints(ctx, in.ID)
		return some(list), err
	})
	answerTo(api, c, http.MethodPost, "take-checkpoint", "/v1/leases/{id}/checkpoints", "Take a checkpoint now", func(ctx context.Context, in *byID) (view.CheckpointInfo, error) {
		return a.CheckpointNow(ctx, in.ID)
	})
	copyRoute(api, c, a)
}
