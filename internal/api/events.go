package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/sse"

	"haggle/internal/view"
)

// Beat is sent at once and then at every heartbeat of an event stream: it says that the server lives.
type Beat struct{}

type watchLeases struct {
	Lease string `query:"lease" maxLength:"128" doc:"only this lease; empty for all"`
}

// eventRoute registers the stream of changes. It begins with the present state, so that a client needs no second request
// and misses nothing in between.
func eventRoute(api huma.API, c Config, a Agent) {
	op := operation(http.MethodGet, "watch-leases", "/v1/events", "The leases as they are now, then every change")
	sse.Register(api, op, map[string]any{"lease": view.Lease{}, "beat": Beat{}, "problem": view.Problem{}},
		func(ctx context.Context, in *watchLeases, send sse.Sender) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			changes := a.Watch(ctx)
			if send.Data(Beat{}) != nil {
				return
			}
			now, err := present(ctx, a, in.Lease)
			if err != nil {
				_ = send.Data(view.ProblemOf(err)) // the stream ends either way
				return
			}
			only := ""
			for _, l := range now {
				if send.Data(l) != nil {
					return
				}
				if in.Lease != "" {
					only = l.ID
				}
			}
			forward(ctx, c.Heartbeat, changes, only, send)
		})
}

// present returns what a watcher shall know first.
func present(ctx context.Context, a Agent, lease string) ([]view.Lease, error) {
	if lease == "" {
		return a.Leases(ctx, false)
	}
	l, err := a.Lease(ctx, lease)
	return []view.Lease{l}, err
}

func forward(ctx context.Context, every time.Duration, changes <-chan view.Lease, only string, send sse.Sender) {
	beat := time.NewTicker(every)
	defer beat.Stop()
	for {
		var event any = Beat{}
		select {
		case <-ctx.Done():
			return
		case l, ok := <-changes:
			if !ok {
				return
			}
			if only != "" && l.ID != only {
				continue
			}
			event = l
		case <-beat.C:
		}
		if send.Data(event) != nil {
			return
		}
	}
}
