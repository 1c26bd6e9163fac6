package renter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"haggle/market"
)

// greet exchanges the first messages of a lease stream: who has which store, what time it is, and which receipt is the
// newest. The record is empty where a bid follows.
func (a *Agent) greet(ctx context.Context, s Stream, rig market.Key, r Record) (market.Hello, error) {
	if s.Peer() != rig {
		return market.Hello{}, market.NewError(market.CodeNotYours)
	}
	hello := market.Hello{
		Instance: a.instance, WallMs: a.cfg.Clock().UnixMilli(), Lease: r.Lease, Seq: r.Head.Seq, Hash: r.Head.Hash,
		Paid:   r.State.PaidSeq,
		Speaks: []string{"bid/1", "lease/1", "receipt/1", "reject/1", "outcome/1", speaksPay, "notice/1", "dispute/1", "guarantee/1"},
	}
	if err := s.Send(ctx, hello); err != nil {
		return market.Hello{}, reasonOf(ctx, s, err)
	}
	m, err := s.Receive(ctx)
	if err != nil {
		return market.Hello{}, err
	}
	theirs, ok := m.(market.Hello)
	if !ok {
		return market.Hello{}, market.Unexpected(m)
	}
	a.index.Timed(rig, time.Duration(theirs.WallMs-a.cfg.Clock().UnixMilli())*time.Millisecond)
	return theirs, nil
}

// reasonOf returns why a rig took no more messages: its refusal may still be waiting to be read.
func reasonOf(ctx context.Context, s Stream, err error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, why := s.Receive(ctx)
	var refusal *market.Error
	if errors.As(why, &refusal) && ctx.Err() == nil {
		return why
	}
	return err
}

// fault turns an error of a conversation into one for people: a market error stays, anything else says that the rig was
// too slow or cannot be reached. ctx is the context that does not carry the conversation's own deadline.
func fault(ctx context.Context, err error, rig market.Key) error {
	var coded *market.Error
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("talk to %s: %w", rig.Short(), ctx.Err())
	case errors.As(err, &coded):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", market.NewError(market.CodeTooSlow, "limit", grantTime.String()), err)
	}
	return fmt.Errorf("%w: %w", unreachable(rig), err)
}

func unreachable(rig market.Key) error {
	return market.NewError(market.CodeUnreachable, "peer", rig.String())
}

// Bounds of the pauses between two attempts to connect.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
	lostPause  = 5 * time.Minute // for a rig that has vanished, or does not let us collect
)

// pause grows with every failure, with jitter so that the agents of a rig that comes back do not come all at once.
type pause struct{ next time.Duration }

func (p *pause) reset() { p.next = 0 }

func (p *pause) take(most time.Duration) time.Duration {
	p.next = min(max(2*p.next, firstPause), most)
	return p.next/2 + rand.N(p.next/2+1)
}
