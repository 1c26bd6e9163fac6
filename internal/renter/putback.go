package renter

import (
	"context"

	"golang.org/x/time/rate"

	"haggle/market"
)

// reextend sends the rig the extensions that both have signed, where its store may have lost them: it is another one than before, or
// lacks a receipt or a payment. They come before payments and receipts, which may rest on them.
func (k *link) reextend(ctx context.Context, s Stream, theirs market.Hello) error {
	r, _ := k.l.get()
	before := k.l.instanceOf(theirs.Instance)
	if r.State.Extension == nil || before == theirs.Instance && theirs.Seq >= r.Head.Seq && theirs.Paid >= r.State.PaidSeq {
		return nil
	}
	kept, err := k.a.cfg.Store.Extensions(ctx, k.id)
	if err != nil {
		return err
	}
	limit := rate.NewLimiter(sendRate, sendBurst)
	for _, e := range kept {
		if err := limit.Wait(ctx); err != nil {
			return err
		}
		if err := s.Send(ctx, market.ExtendMessage{Extension: e}); err != nil {
			return err
		}
	}
	return nil
}

// instanceOf notes the instance of the rig's store, and returns what it was when this program heard of it last.
func (l *lease) instanceOf(now market.Nonce) (before market.Nonce) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, l.instance = l.instance, now
	return before
}
