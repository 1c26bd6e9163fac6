package renter_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"haggle/internal/checkpoint"
	"haggle/internal/filesync"
	"haggle/internal/tunnel"
	"haggle/market"
)

func loggerOf(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// inspectImage takes a file for an image whose digest is the hash of its bytes.
func inspectImage(path string) (string, int64, error) {
	data, err := os.ReadFile(path)
	return "sha256:" + market.HashOf(data).String(), int64(len(data)), err
}

// handleInside takes what belongs to the inside of a lease. The caller holds the lock.
func (r *testRig) handleInside(l *rigLease, m market.Message) error {
	var err error
	what := ""
	switch m := m.(type) {
	case market.BeginMessage:
		return l.event(market.Begin{})
	case market.ResumeMessage:
		if what, err = market.OrderResume, r.decline; err == nil {
			err = l.event(market.Resume{})
		}
	case market.ExtendMessage:
		if what, err = market.OrderExtend, r.decline; err == nil {
			err = l.extend(m.Extension)
		}
	default:
		return market.Unexpected(m)
	}
	if err != nil {
		l.send(market.DeclineMessage{What: what, Err: *market.Public(err)})
	}
	return nil
}

func (l *rigLease) extend(raw []byte) error {
	e, s, err := market.OpenExtension(testNetwork, raw, l.state.Terms)
	if err != nil {
		return err
	}
	if s.SignedBy(market.RoleRig) {
		l.extended = append(l.extended, e.Seq)
		if l.state.Extension != nil && l.state.Extension.Seq >= e.Seq {
			return nil
		}
	}
	if err := l.event(market.Extend{Extension: e}); err != nil {
		return err
	}
	l.send(market.ExtendMessage{Extension: market.Consent(s, l.rig.key).Encode()})
	return nil
}

func (r *testRig) serveTunnel(w *wire) error {
	m, err := w.Receive(r.ctx)
	if err != nil {
		return err
	}
	request, ok := m.(market.TunnelRequest)
	if !ok {
		return market.Unexpected(m)
	}
	switch request.Kind {
	case market.TunnelDoor:
		return r.serveDoor(w, request)
	case market.TunnelImage:
		return r.serveImage(w, request)
	}
	return r.serveLog(w, request)
}

// serveDoor lets a path into a job that was made and not yet destroyed.
func (r *testRig) serveDoor(w *wire, request market.TunnelRequest) error {
	r.mu.Lock()
	l := r.leases[request.Lease]
	r.doors++
	err := r.shut
	switch {
	case err != nil:
	case l == nil:
		err = market.NewError(market.CodeLeaseUnknown, "lease", request.Lease.Short())
	case l.state.Job == market.JobGranted, l.state.Job == market.JobPreparing && !l.state.Ready, l.state.Gone:
		err = market.NewError(market.CodeNoDoor, "state", string(l.state.Job))
	default:
		err = l.makeDoor()
	}
	r.mu.Unlock()
	if err != nil {
		return err
	}
	if err := w.Send(r.ctx, market.OpenMessage{}); err != nil {
		return err
	}
	return l.door.Serve(r.ctx, w.Raw())
}

// makeDoor makes what serves inside of a job, once. The caller holds the lock.
func (l *rigLease) makeDoor() error {
	if l.door != nil {
		return nil
	}
	err := os.MkdirAll(l.work, 0o700)
	if err != nil {
		return err
	}
	l.door, err = tunnel.NewServer(tunnel.ServerConfig{Handlers: map[string]tunnel.Handler{
		tunnel.KindFiles: func(ctx context.Context, _ json.RawMessage, c *tunnel.Channel) error {
			return filesync.Serve(ctx, c, filesync.ServeConfig{Base: l.work})
		},
		tunnel.KindCheckpoint: l.checkpoint,
		"checkpoint-push":     l.push,
		tunnel.KindPing:       l.ping,
	}})
	return err
}

func (l *rigLease) checkpoint(ctx context.Context, args json.RawMessage, c *tunnel.Channel) error {
	var a tunnel.CheckpointArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return err
	}
	if l.rig.spoil != nil {
		return l.rig.spoil(c)
	}
	dir := filepath.Join(l.work, filepath.Base(a.Dir))
	to, err := checkpoint.Recipients(a.Recipients)
	if err != nil {
		return err
	}
	state, err := checkpoint.Survey(ctx, dir)
	if err != nil {
		return err
	}
	state.Follows = state.Files > 0 && state.Digest != a.Known
	if err := json.NewEncoder(c).Encode(state.Header); err != nil || !state.Follows {
		return err
	}
	return checkpoint.Write(ctx, c, dir, state, to)
}

// ping echoes nonces, as long as the job runs.
func (l *rigLease) ping(ctx context.Context, _ json.RawMessage, c *tunnel.Channel) error {
	nonce := make([]byte, tunnel.PingSize)
	if _, err := io.ReadFull(c, nonce); err != nil {
		return err
	}
	l.rig.mu.Lock()
	frozen := l.rig.frozen
	l.rig.mu.Unlock()
	if frozen {
		<-ctx.Done()
		return ctx.Err()
	}
	_, err := c.Write(nonce)
	return err
}

// push notes an order to push checkpoints to a URL, and says that one arrived where it is told to push at once.
func (l *rigLease) push(_ context.Context, args json.RawMessage, c *tunnel.Channel) error {
	if err := os.WriteFile(filepath.Join(l.work, "pushed.json"), args, 0o600); err != nil {
		return err
	}
	return json.NewEncoder(c).Encode(map[string]any{"seq": 4, "at_ms": 5, "bytes": 6, "digest": "d"})
}

// serveImage takes an image in.
func (r *testRig) serveImage(w *wire, request market.TunnelRequest) error {
	r.mu.Lock()
	l := r.leases[request.Lease]
	hurt, have := r.hurt, 0
	if l != nil {
		have = len(l.image)
	}
	r.hurt = nil
	r.mu.Unlock()
	if l == nil || l.job.Archive == 0 {
		return market.NewError(market.CodeBadState, "state", "none", "event", "image")
	}
	if err := w.Send(r.ctx, market.OpenMessage{Offset: int64(have)}); err != nil {
		return err
	}
	for {
		m, err := w.Receive(r.ctx)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case market.ChunkMessage:
			r.set(func() {
				l.image = append(l.image, m.Data...)
				r.imaged += int64(len(m.Data))
				have = len(l.image)
			})
			if hurt != nil && have > market.MaxChunk {
				w.cut()
				return hurt
			}
			continue
		case market.EndMessage:
		default:
			return market.Unexpected(m)
		}
		return r.imported(w, l)
	}
}

// imported checks an image that has come, and goes on with the job.
func (r *testRig) imported(w *wire, l *rigLease) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if digest := "sha256:" + market.HashOf(l.image).String(); digest != l.job.Image {
		return market.NewError(market.CodeArchiveMismatch)
	}
	l.whole = true
	return errors.Join(w.Send(r.ctx, market.EndMessage{}), l.event(market.Prepared{}))
}

// close ends the doors of the rig's jobs.
func (r *testRig) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.leases {
		if l.door != nil {
			_ = l.door.Close()
		}
	}
}
