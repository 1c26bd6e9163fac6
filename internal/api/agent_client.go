package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"haggle/internal/view"
)

// AgentClient is an Agent over its socket. Errors are market errors, ErrNotRunning, ErrLost or the context's.
type AgentClient struct{ *client }

// DialAgent makes a client. Nothing is dialed before the first request, so it cannot fail.
func DialAgent(socket string) *AgentClient { return &AgentClient{dial(socket)} }

// Status implements Agent.
func (c *AgentClient) Status(ctx context.Context) (view.AgentStatus, error) {
	return get[view.AgentStatus](ctx, c.client, "/v1/status", nil)
}

// Bid implements Agent.
func (c *AgentClient) Bid(ctx context.Context, b view.BidRequest) (view.Lease, error) {
	return call[view.Lease](ctx, c.client, http.MethodPost, "/v1/leases", nil, b)
}

// Leases implements Agent.
func (c *AgentClient) Leases(ctx context.Context, all bool) ([]view.Lease, error) {
	return get[[]view.Lease](ctx, c.client, "/v1/leases", values("all", flag(all)))
}

// Lease implements Agent.
func (c *AgentClient) Lease(ctx context.Context, id string) (view.Lease, error) {
	return get[view.Lease](ctx, c.client, leasePath(id, ""), nil)
}

// Stop implements Agent.
func (c *AgentClient) Stop(ctx context.Context, id string, kill bool) (view.Lease, error) {
	return call[view.Lease](ctx, c.client, http.MethodPost, leasePath(id, "/stop"), nil, view.StopRequest{Kill: kill})
}

// Log implements Agent.
func (c *AgentClient) Log(ctx context.Context, id string, offset int64, follow bool) (io.ReadCloser, error) {
	from := ""
	if offset != 0 {
		from = strconv.FormatInt(offset, 10)
	}
	s, err := c.open(ctx, http.MethodGet, leasePath(id, "/log"), values("offset", from, "follow", flag(follow)), nil)
	if err != nil {
		return nil, err // a nil *stream must not become a reader
	}
	return s, nil
}

// Receipts implements Agent.
func (c *AgentClient) Receipts(ctx context.Context, id string) ([]view.Receipt, error) {
	return get[[]view.Receipt](ctx, c.client, leasePath(id, "/receipts"), nil)
}

// Peers implements Agent.
func (c *AgentClient) Peers(ctx context.Context) ([]view.Peer, error) {
	return get[[]view.Peer](ctx, c.client, "/v1/peers", nil)
}

// Watch implements Agent. It begins with the present state of every open lease.
func (c *AgentClient) Watch(ctx context.Context) <-chan view.Lease { return c.watch(ctx, "") }

// WatchLease tells the present state of one lease and every change of it. The channel closes when ctx ends, when there is no
// such lease, and when the agent is gone.
func (c *AgentClient) WatchLease(ctx context.Context, id string) <-chan view.Lease {
	return c.watch(ctx, id)
}

func (c *AgentClient) watch(ctx context.Context, id string) <-chan view.Lease {
	changes := make(chan view.Lease)
	go func() {
		defer close(changes)
		s, err := c.open(ctx, http.MethodGet, "/v1/events", values("lease", id), nil)
		if err != nil {
			return // the closed channel says it
		}
		defer s.Close()
		_ = events(s, func(name string, data []byte) bool {
			var l view.Lease
			if name != "lease" || json.Unmarshal(data, &l) != nil {
				return true
			}
			select {
			case changes <- l:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	return changes
}

// Shutdown implements Agent.
func (c *AgentClient) Shutdown(ctx context.Context, force bool) error {
	return c.do(ctx, http.MethodPost, "/v1/shutdown", ShutdownRequest{Force: force})
}

// Keep implements Inside.
func (c *AgentClient) Keep(ctx context.Context, id string) (view.Lease, error) {
	return call[view.Lease](ctx, c.client, http.MethodPost, leasePath(id, "/keep"), nil, nil)
}

// Resume implements Inside.
func (c *AgentClient) Resume(ctx context.Context, id string) (view.Lease, error) {
	return call[view.Lease](ctx, c.client, http.MethodPost, leasePath(id, "/resume"), nil, nil)
}

// Remove implements Inside.
func (c *AgentClient) Remove(ctx context.Context, id string) (view.Lease, error) {
	return call[view.Lease](ctx, c.client, http.MethodPost, leasePath(id, "/remove"), nil, nil)
}

// Extend implements Inside.
func (c *AgentClient) Extend(ctx context.Context, id string, r view.ExtendRequest) (view.Lease, error) {
	return call[view.Lease](ctx, c.client, http.MethodPost, leasePath(id, "/extend"), nil, r)
}

// Rename implements Inside.
func (c *AgentClient) Rename(ctx context.Context, id string, r view.NameRequest) (view.Lease, error) {
	return call[view.Lease](ctx, c.client, http.MethodPost, leasePath(id, "/name"), nil, r)
}

// Checkpoints implements Inside.
func (c *AgentClient) Checkpoints(ctx context.Context, id string) ([]view.CheckpointInfo, error) {
	return get[[]view.CheckpointInfo](ctx, c.client, leasePath(id, "/checkpoints"), nil)
}

// CheckpointNow implements Inside.
func (c *AgentClient) CheckpointNow(ctx context.Context, id string) (view.CheckpointInfo, error) {
	return call[view.CheckpointInfo](ctx, c.client, http.MethodPost, leasePath(id, "/checkpoints"), nil, nil)
}

func leasePath(id, rest string) string { return "/v1/leases/" + url.PathEscape(id) + rest }

// values makes a query of pairs, leaving out what is empty.
func values(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

func flag(on bool) string {
	if on {
		return "true"
	}
	return ""
}
