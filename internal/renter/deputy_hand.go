package renter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"haggle/market"
)

// Times of handing a lease over.
const (
	handTime  = 10 * time.Second // from the dial to the deputy's word
	handPause = 5 * time.Second  // between two words about one lease: what changes meanwhile goes together
)

// deputize keeps the deputies of a lease up to date until done is closed, and tells them then that they are not needed any more. For
// a lease that was handed to this agent it waits for that word, and ends the lease's work here by drop.
func (a *Agent) deputize(ctx context.Context, l *lease, done <-chan struct{}, drop context.CancelFunc) {
	r, _ := l.get()
	if !r.State.Serves.IsZero() {
		l.until(ctx, done, func(r Record) bool { return r.State.Released })
		drop()
		return
	}
	var group sync.WaitGroup
	for _, key := range r.Terms.Deputies {
		group.Go(func() { a.brief(ctx, l, key, done) })
	}
	group.Wait()
}

// until waits for a change of a lease, or for done or the end of ctx.
func (l *lease) until(ctx context.Context, done <-chan struct{}, reached func(Record) bool) {
	for {
		change := l.watch()
		if r, _ := l.get(); reached(r) {
			return
		}
		select {
		case <-change:
		case <-done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// news is what a deputy has to know of a lease.
type news struct {
	head    market.Hash
	extends uint32
	paid    uint32
	most    market.Micro
	release bool
}

// brief keeps one deputy of a lease up to date. A deputy that cannot be reached at the end is not waited for: the rig tells it too.
func (a *Agent) brief(ctx context.Context, l *lease, deputy market.Key, done <-chan struct{}) {
	var told, failed news
	var wait pause
	for ctx.Err() == nil {
		change := l.watch()
		r, _ := l.get()
		next := a.newsFor(ctx, r, deputy, done)
		nothing := next == told || next.release && !slices.Contains(r.State.Handed, deputy) || !next.release && r.State.Job == market.JobGranted
		if nothing {
			if isClosed(done) {
				return
			}
			select {
			case <-change:
			case <-done:
			case <-ctx.Done():
			}
			continue
		}
		err := a.hand(ctx, r, deputy, told, next)
		if ctx.Err() != nil {
			return
		}
		a.deputies.note(deputy, a.cfg.Clock().UnixMilli(), err)
		if err == nil {
			told = next
			wait.reset()
			err = a.noteHanded(ctx, l, deputy, !next.release)
		}
		delay := handPause
		switch {
		case isClosed(done):
			return
		case err != nil:
			if next != failed {
				a.cfg.Log.Info("a deputy does not take a lease", "lease", r.Lease.Short(), "peer", deputy.String(), "err", err)
			}
			failed = next
			delay = max(delay, wait.take(time.Minute))
		}
		select {
		case <-time.After(delay):
		case <-done:
		case <-ctx.Done():
		}
	}
}

// newsFor says what a deputy has to know now.
func (a *Agent) newsFor(ctx context.Context, r Record, deputy market.Key, done <-chan struct{}) news {
	d, known, err := a.deputyOf(ctx, deputy, false)
	if err == nil && !known || isClosed(done) {
		return news{release: true}
	}
	n := news{head: r.Head.Hash, paid: r.State.PaidSeq, most: r.terms().Budget}
	if d.Cap > 0 {
		n.most = min(n.most, d.Cap)
	}
	if r.State.Extension != nil {
		n.extends = r.State.Extension.Seq
	}
	return n
}

// hand tells a deputy what is new of a lease, and waits for its word that it has it on disk.
func (a *Agent) hand(ctx context.Context, r Record, deputy market.Key, told, next news) error {
	messages, err := a.handovers(ctx, r, told, next)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, handTime)
	defer cancel()
	s, err := a.cfg.Net.OpenDeputy(limited, deputy)
	if err != nil {
		return fault(ctx, err, deputy)
	}
	defer func() { _ = s.Close() }() // nothing that was sent needs to arrive any more
	if s.Peer() != deputy {
		return market.NewError(market.CodeNotYours)
	}
	for _, h := range messages {
		if err := s.Send(limited, h); err != nil {
			return fault(ctx, reasonOf(limited, s, err), deputy)
		}
		m, err := s.Receive(limited)
		if err != nil {
			return fault(ctx, err, deputy)
		}
		if _, ok := m.(market.AckMessage); !ok {
			return market.Unexpected(m)
		}
	}
	return nil
}

// handovers makes the messages: all that the deputy needs to check the lease by itself. Each holds one extension and one payment, so
// that the deputy gets their whole chains; receipts it gets from the rig, and here only the newest.
func (a *Agent) handovers(ctx context.Context, r Record, told, next news) ([]market.HandoverMessage, error) {
	h := market.HandoverMessage{
		Offer: r.Offer, Bid: r.SealedBid, Lease: r.Sealed, Job: r.Job, Cap: next.most, Release: next.release, Name: r.Inside.Name,
	}
	if next.release {
		return []market.HandoverMessage{h}, nil
	}
	for _, c := range r.Inside.Collects {
		h.Collects = append(h.Collects, c.Remote)
	}
	receipts, err := a.cfg.Store.Receipts(ctx, r.Lease)
	extensions, err2 := a.cfg.Store.Extensions(ctx, r.Lease)
	papers, err3 := a.cfg.Store.Papers(ctx, r.Lease, market.KindPayment)
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, fmt.Errorf("hand over lease %s: %w", r.Lease.Short(), err)
	}
	extensions = extensions[min(int(told.extends), len(extensions)):]
	var payments [][]byte
	for _, p := range papers {
		if p.Seq > told.paid && p.Seq&forkBit == 0 {
			payments = append(payments, p.Sealed)
		}
	}
	var list []market.HandoverMessage
	for i := range min(max(1, len(extensions), len(payments)), maxHandovers) {
		m := h
		if i < len(extensions) {
			m.Extension = extensions[i]
		}
		if i < len(payments) {
			m.Payment = payments[i]
		}
		list = append(list, m)
	}
	if len(receipts) > 0 {
		list[len(list)-1].Receipt = receipts[len(receipts)-1].Sealed // the extensions that it needs come before it
	}
	return list, nil
}

// noteHanded notes whether a deputy has a lease.
func (a *Agent) noteHanded(ctx context.Context, l *lease, deputy market.Key, has bool) error {
	if r, _ := l.get(); slices.Contains(r.State.Handed, deputy) == has {
		return nil
	}
	return a.commit(ctx, l, func(r *Record) {
		list := slices.DeleteFunc(slices.Clone(r.State.Handed), func(k market.Key) bool { return k == deputy })
		if has {
			list = append(list, deputy)
		}
		r.State.Handed = list
	})
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
