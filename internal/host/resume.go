package host

import (
	"context"
	"errors"
	"strconv"

	"haggle/market"
)

// resume starts the job of a paused lease again, on the very same cards. It waits a little while for a card whose memory is still
// being overwritten. To resume what goes on already is no error.
func (d *Daemon) resume(ctx context.Context, l *lease) error {
	until := d.cfg.Clock().Mono + wipePatience.Milliseconds()
	for {
		err := d.tryResume(l)
		if market.CodeOf(err) != market.CodeSlotTaken || !d.wiping() || d.cfg.Clock().Mono > until {
			return err
		}
		if !pause(ctx, wipeLook) {
			return ctx.Err()
		}
	}
}

func (d *Daemon) tryResume(l *lease) error {
	d.grants.Lock() // no bid gets the cards meanwhile
	defer d.grants.Unlock()
	s := l.snapshot()
	choices := d.settings()
	switch {
	case s.Job != market.JobPaused && s.Job != market.JobEnded && s.Attempt > 0:
		return l.call(func(context.Context) error {
			l.statusAll() // a repetition
			return nil
		})
	case s.Job != market.JobPaused:
		return market.NewError(market.CodeNotPaused, "state", string(s.Job))
	case choices.Paused || choices.Draining:
		return market.NewError(market.CodePaused)
	case d.spent(s):
		owed := d.owed(accountOf(s))
		return market.NewError(market.CodeNoCredit, "owed", owed.String(), "credit", market.Micro(s.Terms.Limits.Credit).String())
	}
	if err := d.sameCards(s.Terms); err != nil {
		return err
	}
	return l.call(func(ctx context.Context) error {
		if l.lacksSecrets() {
			return market.NewError(market.CodeSecretsLost)
		}
		return l.step(ctx, market.Resume{}, nil)
	})
}

// sameCards reports whether the cards of terms are free, and fit to be rented.
func (d *Daemon) sameCards(t market.Terms) error {
	free := map[market.Hash]bool{}
	for _, slot := range d.rentable(d.settings(), d.heldUntil(true)) {
		free[slot.Card] = slot.LeasedUntil == 0
	}
	ready := 0
	for _, slot := range t.Slots {
		if free[slot.Card] {
			ready++
		}
	}
	if ready < len(t.Slots) {
		return market.NewError(market.CodeSlotTaken, "free", strconv.Itoa(ready), "wanted", strconv.Itoa(len(t.Slots)))
	}
	return nil
}

// orDecline tells the renter that one order is refused; the conversation goes on. Other errors are returned.
func orDecline(ctx context.Context, s Stream, what string, err error) error {
	var refused *market.Error
	if !errors.As(err, &refused) {
		return err
	}
	return s.Send(ctx, market.DeclineMessage{What: what, Err: *refused})
}
