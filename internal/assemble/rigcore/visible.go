package rigcore

import (
	"context"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// When strangers are asked what they show of the rig: once it had time to become known, and then seldom, for each time costs as much as a
// renter's first screen.
const (
	firstVisible = 5 * time.Minute
	visibleEvery = 6 * time.Hour
	visibleTime  = 30 * time.Second
)

// keepVisible asks now and then, until ctx ends.
func (r *Rig) keepVisible(ctx context.Context) error {
	timer := time.NewTimer(firstVisible)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			r.lookVisible(ctx)
			timer.Reset(visibleEvery)
		case <-ctx.Done():
			return nil
		}
	}
}

// lookVisible asks strangers what they show of the rig, and keeps the answer for the rig's owner.
func (r *Rig) lookVisible(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, visibleTime)
	defer cancel()
	seen := r.shelf.Visible(ctx)
	if seen.At.IsZero() || ctx.Err() != nil {
		return // nothing is offered, or nothing was learnt
	}
	v := view.Visible{
		At: seen.At.UnixMilli(), Model: market.Printable(seen.Model), Asked: seen.Asked, Answers: seen.Answers, Keep: seen.Keep, Seen: seen.Seen,
		Price: view.MoneyOf(market.Micro(seen.Price), seen.Currency), Rank: seen.Rank, Of: seen.Of,
	}
	if v.Hidden() {
		r.log.Warn("strangers do not show this rig's offer", "seen", v.Seen, "of", v.Keep, "answers", v.Answers, "asked", v.Asked)
	}
	r.visible.Store(&v)
}
