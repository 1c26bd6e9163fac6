package host

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"haggle/internal/view"
	"haggle/market"
)

// Takeback takes a card from new leases until Giveback, and ends the lease that holds it: the job keeps the notice of its terms,
// and nothing is billed from now on. The card is named by slot, UUID or a unique beginning of the UUID. With dryRun nothing is
// done: the answer says what would be. The error has code CodeCardUnknown or CodeBadRequest.
func (d *Daemon) Takeback(ctx context.Context, card string, dryRun bool) (view.Takeback, error) {
	if err := d.await(ctx); err != nil {
		return view.Takeback{}, err
	}
	c, err := d.rack.named(card)
	if err != nil {
		return view.Takeback{}, err
	}
	if dryRun {
		return d.takeback(c), nil
	}
	if err := d.withhold(ctx, c.UUID, "taken back by the owner"); err != nil {
		return view.Takeback{}, err
	}
	// A bid that passed the check before the choice is stored and listed once this lock is free.
	d.grants.Lock()
	v, l := d.takeback(c), d.holder(c.hash)
	d.grants.Unlock()
	v.Done = true
	if l == nil {
		return v, nil
	}
	err = l.call(func(ctx context.Context) error { return l.stop(ctx, market.Stop{Reason: market.ReasonTakeback}) })
	if errors.Is(err, errClosed) {
		err = nil
	}
	return v, err
}

// Giveback offers a card again that was taken back, or whose memory could not be overwritten and has been seen to by its owner.
// A card that is not withheld is no error.
func (d *Daemon) Giveback(ctx context.Context, card string) error {
	if err := d.await(ctx); err != nil {
		return err
	}
	c, err := d.rack.named(card)
	if err != nil {
		return err
	}
	return d.decide(ctx, func(s *Settings) {
		s.Withheld = slices.DeleteFunc(slices.Clone(s.Withheld), func(w Withheld) bool { return w.UUID == c.UUID })
	})
}

// withhold keeps a card from new leases, for the first reason that was given.
func (d *Daemon) withhold(ctx context.Context, uuid, why string) error {
	now := d.cfg.Clock().Wall
	return d.decide(ctx, func(s *Settings) {
		if !s.withholds(uuid) {
			s.Withheld = append(slices.Clone(s.Withheld), Withheld{UUID: uuid, Why: why, Since: now})
		}
	})
}

// takeback says what it means for its lease to take a card back now.
func (d *Daemon) takeback(c *card) view.Takeback {
	v := view.Takeback{Slot: int(c.index), UUID: c.UUID, Model: c.Model}
	l := d.holder(c.hash)
	if l == nil {
		return v
	}
	s := l.snapshot()
	t, m := s.Current(), s.Meter
	v.Lease, v.Renter, v.State = s.ID.String(), t.RenterOwner.String(), string(s.Job)
	for _, slot := range t.Slots {
		v.Slots = append(v.Slots, int(slot.Index))
	}
	v.Earned = view.MoneyOf(s.Total(), t.Prices.Currency)
	switch s.Job {
	case market.JobRunning:
		v.NoticeMs, v.EndsBy = t.NoticeMs, d.cfg.Clock().Wall+t.NoticeMs
	case market.JobStopping:
		v.EndsBy = s.KillAt
	}
	more := func(ms int64) view.Money {
		bill, err := t.Prices.Bill(t.UsedBy(min(t.DurationMs, m.BilledMs+ms), m.KeptMs, m.In, m.Out))
		if err != nil {
			return view.MoneyOf(0, t.Prices.Currency)
		}
		return view.MoneyOf(max(0, min(bill.Total, t.Most())-s.Total()), t.Prices.Currency)
	}
	v.Penalty, v.Forgone = more(v.NoticeMs), more(t.DurationMs)
	return v
}

// holder returns the lease whose job has a card, nil where none has.
func (d *Daemon) holder(card market.Hash) *lease {
	for _, l := range d.all() {
		s := l.snapshot()
		if usesCards(s) && slices.ContainsFunc(s.Terms.Slots, func(g market.GrantedSlot) bool { return g.Card == card }) {
			return l
		}
	}
	return nil
}

// usesCards reports whether a job of the lease has its cards, or is to have them.
func usesCards(s market.Lease) bool { return s.Job != market.JobEnded && s.Job != market.JobPaused }

// named finds a card by slot, UUID or a unique beginning of the UUID.
func (r *rack) named(name string) (*card, error) {
	var found []*card
	for _, c := range r.all() {
		if strconv.Itoa(int(c.index)) == name || strings.EqualFold(c.UUID, name) {
			return c, nil
		}
		if name != "" && len(name) <= len(c.UUID) && strings.EqualFold(c.UUID[:len(name)], name) {
			found = append(found, c)
		}
	}
	switch len(found) {
	case 0:
		return nil, market.NewError(market.CodeCardUnknown, "card", name)
	case 1:
		return found[0], nil
	}
	return nil, market.NewError(market.CodeBadRequest, "why", "more than one card begins with "+name+": write more of its UUID")
}
