package renter

import (
	"context"
	"fmt"
	"slices"

	"haggle/market"
)

// command is something that the renter wants of the rig. It is sent once on each connection until the rig has carried it out.
type command struct {
	key string // tells orders apart
	m   market.Message
}

// orders sends the renter's orders. fresh: this side's signature has just been sent on this stream.
func (k *link) orders(ctx context.Context, s Stream, fresh bool) {
	sent, said := map[string]bool{"accept": fresh}, map[market.Hash]bool{}
	for first := !fresh; ; first = false {
		change := k.l.watch()
		if r, _ := k.l.get(); (first || r.State.Untold) && k.sayAll(ctx, s, said) != nil {
			return
		}
		for _, o := range k.l.due() {
			if sent[o.key] {
				continue
			}
			if s.Send(ctx, o.m) != nil {
				return // the connection is over, which talk sees too
			}
			sent[o.key] = true
		}
		select {
		case <-change:
		case <-ctx.Done():
			return
		}
	}
}

// due returns the orders that the rig has not carried out yet.
func (l *lease) due() []command {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []command
	r := l.record
	job := r.State.Job
	again := l.again != 0 && job == market.JobPaused && r.State.Attempt == l.after
	if len(l.secrets) > 0 && (job == market.JobPreparing || again) {
		list = append(list, command{"accept", market.AcceptMessage{Lease: r.Sealed, Env: r.Env, Secrets: l.secrets}})
	}
	if again {
		list = append(list, command{fmt.Sprint("resume ", l.again), market.ResumeMessage{}})
	}
	if r.Inside.Uploaded && job == market.JobPreparing && r.State.Attempt == 0 {
		list = append(list, command{"begin", market.BeginMessage{}})
	}
	if r.Inside.Asked != nil && job != market.JobEnded {
		list = append(list, command{fmt.Sprint("extend ", l.asked), market.ExtendMessage{Extension: r.Inside.Asked}})
	}
	if p := r.State.Paying; p != nil && p.State == paySent {
		list = append(list, command{fmt.Sprint("paid ", p.Slice.Seq), p.paid()})
	}
	if p := r.State.Paying; p != nil && p.State == payWished && slices.Contains(l.speaks, speaksPay) {
		ask := market.AskMessage{Slice: p.Slice, Method: p.Method, Currency: r.Terms.Prices.Currency}
		list = append(list, command{fmt.Sprint("wish ", p.Slice.Seq), ask})
	}
	if w := l.wish; w != nil && !carriedOut(*w, job) {
		list = append(list, command{fmt.Sprint("stop ", *w), *w})
	}
	return list
}

// carriedOut reports whether an order to end a job needs no sending any more.
func carriedOut(w market.StopMessage, job market.JobState) bool {
	switch job {
	case market.JobEnded:
		return true
	case market.JobStopping:
		return !w.Kill
	case market.JobPaused:
		return w.Keep
	}
	return false
}

// order notes that the job shall end, and wakes the link. A kill is never taken back, and what is to be kept is not any more once
// the end was ordered without it.
func (l *lease) order(m market.StopMessage) {
	l.change(func() {
		if old := l.wish; old != nil && !carriedOut(*old, l.record.State.Job) {
			m.Kill = m.Kill || old.Kill
			m.Keep = m.Keep && old.Keep
		}
		l.wish, l.again = &m, 0
		delete(l.refusals, market.OrderKeep)
	})
	l.hurry()
}

// orderAgain notes that the job of a paused lease shall start again, and wakes the link.
func (l *lease) orderAgain() {
	l.change(func() {
		l.asked++
		l.again, l.after, l.wish = l.asked, l.record.State.Attempt, nil
		delete(l.refusals, market.OrderResume)
	})
	l.hurry()
}

// forgive forgets the rig's no to an order that is given again.
func (l *lease) forgive(what string) {
	l.change(func() {
		l.asked++
		delete(l.refusals, what)
	})
}

// refusal returns the rig's no to an order since it was given.
func (l *lease) refusal(what string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refusals[what]
}

// orderPay is what a rig calls a wish to pay when it declines it.
const orderPay = "pay"

// declined takes the rig's no to an order.
func (k *link) declined(ctx context.Context, m market.DeclineMessage) error {
	r, _ := k.l.get()
	if m.What == market.OrderExtend {
		if err := k.a.forgetAsked(ctx, k.l, r.Inside.Asked); err != nil { // before the user can ask again
			return err
		}
	}
	if p := r.State.Paying; m.What == orderPay && p != nil && p.State == payWished {
		failed := *p
		failed.State, failed.Final, failed.Why = payFailed, true, market.Explain(&m.Err).Message
		return k.a.settle(ctx, k.l, *p, func(r *Record) { r.State.Paying = &failed })
	}
	k.l.change(func() {
		switch m.What {
		case market.OrderResume:
			k.l.again = 0
		case market.OrderKeep:
			k.l.wish = nil
		case market.OrderExtend, market.OrderBegin:
		default:
			return // an order of a newer program
		}
		k.l.refusals[m.What] = market.Public(&m.Err)
	})
	if m.What == market.OrderBegin {
		return k.a.fail(ctx, k.l, &m.Err)
	}
	return nil
}

// acceptance returns the message that carries both signatures, and whether it is whole: secrets do not outlive this program.
func (l *lease) acceptance(r Record) (market.AcceptMessage, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := market.AcceptMessage{Lease: r.Sealed, Env: r.Env, Secrets: l.secrets}
	return m, !r.Inside.Secrets || len(l.secrets) > 0
}

// fail gives a job up: it is ended, and people see why.
func (a *Agent) fail(ctx context.Context, l *lease, why error) error {
	r, _ := l.get()
	_, err := a.amend(ctx, r, func(in *Inside) error {
		if in.Failed == nil {
			in.Failed = market.Public(why)
		}
		return nil
	})
	l.order(market.StopMessage{Kill: true})
	a.cfg.Log.Warn("lease is given up", "lease", r.Lease.Short(), "err", why)
	return err
}
