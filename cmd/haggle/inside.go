package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"haggle/internal/api"
	"haggle/internal/tunnel"
	"haggle/market"
)

// channel opens a channel into a lease's job. It outlives the agent, which it starts again where it is gone, and the rig's
// program. ctx bounds the opening only; the caller closes the channel. It may be called from several goroutines at once.
func (p *program) channel(ctx context.Context, lease, kind string, args any, notify func(tunnel.State)) (*tunnel.Channel, error) {
	request := tunnel.Request{Kind: kind}
	if args != nil {
		text, err := json.Marshal(args)
		if err != nil {
			return nil, fmt.Errorf("open a channel: %w", err)
		}
		request.Args = text
	}
	twin := p.fork()
	opened := false // a channel opens one path at a time
	open := func(ctx context.Context) (tunnel.Conn, error) {
		if err := p.gone(); opened && err != nil {
			return nil, err
		}
		path, err := ask(ctx, twin, func(c *api.AgentClient) (tunnel.Conn, error) { return c.Tunnel(ctx, lease) })
		twin.Err = io.Discard // what is said later would stand in the midst of a job's output
		opened = opened || err == nil
		return path, pathFault(err)
	}
	c, err := tunnel.Dial(ctx, tunnel.Config{Open: open, Request: request, Notify: notify})
	if err != nil {
		return nil, doorFault(err)
	}
	return c, nil
}

// gone returns the end of a channel where this home's identity is no more: a new agent would make another, and know no lease.
func (p *program) gone() error {
	c, err := p.config()
	if err != nil {
		return err
	}
	if _, err := os.Stat(c.Paths.Key); errors.Is(err, os.ErrNotExist) {
		err = market.NewError(market.CodeTunnelGone, "why", "the agent's home was removed")
		return &noWay{&tunnel.Error{Code: tunnel.CodeGone, Message: market.Explain(err).Message}, err}
	}
	return nil
}

// noWay is the end of every attempt to open a path: nothing that is waited for makes it good.
type noWay struct {
	told *tunnel.Error
	err  error
}

func (n *noWay) Error() string   { return n.err.Error() }
func (n *noWay) Unwrap() []error { return []error{n.told, n.err} }

// pathFault marks the errors of the agent after which a channel need not try again.
func pathFault(err error) error {
	var e *market.Error
	if !errors.As(err, &e) {
		return err
	}
	state := ""
	for _, a := range e.Args {
		if a.Name == "state" {
			state = a.Value
		}
	}
	switch {
	case e.Code == market.CodeLeaseUnknown, e.Code == market.CodeLeaseAmbiguous:
	case e.Code == market.CodeNoDoor && (state == string(market.JobEnded) || state == "refused"):
	default:
		return err
	}
	return &noWay{&tunnel.Error{Code: tunnel.CodeGone, Message: market.Explain(err).Message}, err}
}

// doorFault puts what the other end of a channel said into words for people. Other errors stay.
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
		return market.NewError(market.CodeTunnelGone, "why", clean(told.Error()))
	}
	return hinted(market.ClassFailed, "the job's side says: "+clean(told.Error()), "`haggle logs` and `haggle leases` show how the job is")
}

// portFault is doorFault for a channel to a port.
func portFault(err error, port uint16) error {
	var told *tunnel.Error
	if errors.As(err, &told) && told.Code == tunnel.CodeNoSuchPort {
		return market.NewError(market.CodePortClosed, "port", strconv.Itoa(int(port)))
	}
	return doorFault(err)
}

// lostDelay is how long a connection must be gone before a person hears of it: a restart of the agent is faster.
const lostDelay = time.Second

// lostNote tells a person that the connection is gone, and that it is back.
type lostNote struct {
	say   func(text string)
	mu    sync.Mutex
	timer *time.Timer
	told  bool
}

// notify takes the states of a channel.
func (n *lostNote) notify(s tunnel.State) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.timer != nil {
		n.timer.Stop()
		n.timer = nil
	}
	if !s.Connected {
		n.timer = time.AfterFunc(lostDelay, n.tell)
		return
	}
	if n.told {
		n.told = false
		n.say("connected again")
	}
}

func (n *lostNote) tell() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.timer == nil || n.told {
		return
	}
	n.told = true
	n.say("connection lost, reconnecting…")
}

// lost reports whether there is no connection now.
func (n *lostNote) lost() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.timer != nil || n.told
}
