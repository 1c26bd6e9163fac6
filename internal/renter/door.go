package renter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"haggle/internal/tunnel"
	"haggle/market"
)

// Times and windows of the ways into a job.
const (
	pathTime    = 25 * time.Second // from the dial to the rig's yes: it waits a while for a job that is being made
	filesWindow = 8 << 20
)

// Tunnel opens a path into a lease's job: plain bytes to its door, for package tunnel's channels to use. ctx bounds the opening
// only; the caller closes it. The error has code CodeNoDoor where the job cannot be entered now, and CodeUnreachable.
func (a *Agent) Tunnel(ctx context.Context, id string) (Conn, error) {
	r, err := a.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return a.path(ctx, r, false)
}

// path opens a path to the door of a lease's job.
func (a *Agent) path(ctx context.Context, r Record, bulk bool) (Conn, error) {
	s, _, err := a.openTunnel(ctx, r, market.TunnelDoor, bulk)
	if err != nil {
		return nil, err
	}
	return s.Raw(), nil
}

// openTunnel opens a stream into a lease and waits for the rig's yes. The caller closes it.
func (a *Agent) openTunnel(ctx context.Context, r Record, kind string, bulk bool) (Stream, market.OpenMessage, error) {
	if r.State.void() {
		return nil, market.OpenMessage{}, market.NewError(market.CodeNoDoor, "state", stateRefused)
	}
	limited, cancel := context.WithTimeout(ctx, pathTime)
	defer cancel()
	s, err := a.cfg.Net.OpenTunnel(limited, r.Terms.Rig, bulk)
	if err != nil {
		return nil, market.OpenMessage{}, fault(ctx, err, r.Terms.Rig)
	}
	open, err := askTunnel(limited, s, market.TunnelRequest{Lease: r.Lease, Kind: kind})
	if err != nil {
		return nil, open, errors.Join(fault(ctx, err, r.Terms.Rig), s.Close())
	}
	return s, open, nil
}

func askTunnel(ctx context.Context, s Stream, request market.TunnelRequest) (market.OpenMessage, error) {
	if err := s.Send(ctx, request); err != nil {
		return market.OpenMessage{}, reasonOf(ctx, s, err)
	}
	m, err := s.Receive(ctx)
	if err != nil {
		return market.OpenMessage{}, err
	}
	open, ok := m.(market.OpenMessage)
	if !ok {
		return market.OpenMessage{}, market.Unexpected(m)
	}
	return open, nil
}

// channel opens a channel for bulk to the door of a lease's job. It ends with ctx; the caller closes it.
func (a *Agent) channel(ctx context.Context, r Record, kind string, args any, window int) (*visit, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("open a channel: %w", err)
	}
	v := &visit{}
	c, err := tunnel.Dial(ctx, tunnel.Config{
		Open: func(ctx context.Context) (tunnel.Conn, error) {
			path, err := a.path(ctx, r, true)
			v.refused(err)
			return path, err
		},
		Request: tunnel.Request{Kind: kind, Args: text}, Window: window, Log: a.cfg.Log,
	})
	if err != nil {
		return nil, doorFault(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Channel = c
	v.stop = context.AfterFunc(ctx, v.giveUp)
	return v, nil
}

// visit is a channel that gives up when its context ends, or when the rig says that there is nothing to come back to.
type visit struct {
	*tunnel.Channel
	stop func() bool

	mu  sync.Mutex
	why error // what the rig said
}

// refused takes the rig's answer to an attempt to come back.
func (v *visit) refused(err error) {
	switch market.CodeOf(err) {
	case market.CodeLeaseUnknown, market.CodeLeaseEnded, market.CodeNotYours:
	default:
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.Channel != nil { // else Dial returns the error
		v.why = err
		v.giveUp()
	}
}

func (v *visit) giveUp() { _ = v.SetDeadline(time.Unix(1, 0)) } // a channel that has ended needs no deadline

// fault returns why a copy over the channel failed.
func (v *visit) fault(ctx context.Context, err error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil && v.why != nil {
		return v.why
	}
	return fileFault(ctx, err)
}

// Close delivers what was written, for a while, and ends the channel.
func (v *visit) Close() error {
	v.stop()
	return v.Channel.Close()
}

// doorFault turns what a door said into an error for people. Other errors stay.
func doorFault(err error) error {
	var told *tunnel.Error
	var coded *market.Error
	if errors.As(err, &coded) || !errors.As(err, &told) {
		return err
	}
	switch told.Code {
	case tunnel.CodeTooMany:
		return market.NewError(market.CodeTooManyTunnels, "most", "64")
	case tunnel.CodeGone:
		return market.NewError(market.CodeTunnelGone, "why", clipText(told.Message))
	case tunnel.CodeNoSuchPort:
		return market.NewError(market.CodePortClosed, "port", clipText(told.Message))
	}
	return market.NewError(market.CodeCopyFailed, "why", clipText(told.Error()))
}

// clipText bounds a foreign sentence that goes into an error.
func clipText(s string) string {
	const most = 200
	s = market.Printable(s)
	return s[:min(len(s), most)]
}
