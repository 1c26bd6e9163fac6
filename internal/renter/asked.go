package renter

import (
	"context"
	"fmt"

	"haggle/market"
)

// wishBit marks the number of a payment that the renter wants to make and the rig has not asked for.
const wishBit = uint32(1) << 31

func wished(slice uint32) bool { return slice&wishBit != 0 }

// ask takes the rig's request for money. What the rules do not ask for is shown and never paid.
func (k *link) ask(ctx context.Context, s Stream, m market.AskMessage) error {
	again, err := k.askedFor(ctx, m)
	if err != nil || !again {
		return err
	}
	r, _ := k.l.get()
	if p := r.State.Paying; p != nil && p.State == paySent {
		return s.Send(ctx, p.paid()) // it may not know it yet
	}
	return nil
}

// askedFor notes a request for money, and reports whether it was known.
func (k *link) askedFor(ctx context.Context, m market.AskMessage) (bool, error) {
	k.l.writing.Lock()
	defer k.l.writing.Unlock()
	r, _ := k.l.get()
	t := r.terms()
	p := r.State.Paying
	k.later = nil
	switch {
	case k.asks >= maxAttempts:
		return false, market.NewError(market.CodeTooMany)
	case len(m.Text) > market.MaxPayText || m.Currency != t.Prices.Currency:
		return false, market.NewError(market.CodeUnexpected, "got", "a request for money out of bounds")
	case p != nil && p.Slice.Seq == m.Slice.Seq && p.State == payWished:
		if m.Slice.Amount != p.Slice.Amount || m.Method != p.Method {
			return false, k.overask(m, "it is not what you wanted to pay")
		}
		return false, k.take(ctx, r, Paying{Slice: p.Slice, Method: p.Method, Amount: p.Amount, Text: m.Text})
	case p != nil && p.Slice == m.Slice:
		return true, nil
	case p != nil && p.Slice.Seq == m.Slice.Seq:
		return false, k.overask(m, "it is another request than before with the same number")
	case wished(m.Slice.Seq) || m.Slice.Seq <= r.State.Slices:
		return false, nil // it was paid, or it is a wish that is over
	case p != nil && p.State != payFailed && p.State != payHeld && p.State != payWished:
		k.later = &m // it waits for what is on its way
		return false, nil
	}
	if why := k.a.unfair(r, m); why != "" {
		return false, k.overask(m, why)
	}
	k.asks++
	r.State.Slices = m.Slice.Seq
	return false, k.take(ctx, r, Paying{Slice: m.Slice, Method: m.Method, Amount: k.a.ahead(r, m.Slice), Text: m.Text})
}

// take stores a slice that is paid, or held, before the payment program hears of it.
func (k *link) take(ctx context.Context, r Record, p Paying) error {
	k.a.spending.Lock()
	defer k.a.spending.Unlock()
	p, err := k.a.admit(ctx, r, p)
	if err != nil {
		return err
	}
	if p.State == payHeld {
		k.a.cfg.Log.Warn("payment is held", "lease", k.id.Short(), "slice", p.Slice.Seq, "why", p.Why)
	}
	err = k.a.commitLocked(ctx, k.l, func(old *Record) { old.State.Slices, old.State.Paying = r.State.Slices, &p })
	if err == nil {
		k.l.change(func() { k.l.refused = nil })
	}
	return err
}

// overask shows what the rig asks for and this side does not pay.
func (k *link) overask(m market.AskMessage, why string) error {
	k.asks++
	k.a.cfg.Log.Warn("request for money refused", "lease", k.id.Short(), "peer", k.rig.String(), "slice", m.Slice.Seq,
		"amount", m.Slice.Amount.String(), "why", why)
	k.l.change(func() {
		k.l.refused = &Paying{Slice: m.Slice, Method: market.Printable(clip(m.Method)), State: payFailed, Why: "the rig asks for what it may not: " + why, Final: true}
	})
	k.a.changed(k.l)
	return nil
}

// overasked returns what the rig asks for and is not paid; nil where there is nothing.
func (l *lease) overasked() *Paying {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// unfair says why a slice is more than the rules ask for, as far as this side knows, or "".
func (a *Agent) unfair(r Record, m market.AskMessage) string {
	t := r.terms()
	switch {
	case !t.PaysAhead() || m.Method != t.Pay:
		return "the lease is not paid by " + market.Printable(clip(m.Method))
	case m.Slice.Amount <= 0:
		return "it is nothing"
	}
	why := "no money is due yet"
	for _, job := range jobsOf(r) {
		l := a.believed(r, job, m.Slice.Seq)
		most, due := l.NextSlice()
		switch {
		case !due:
		case m.Slice.Amount > most.Amount:
			why = fmt.Sprintf("the rules ask for %s at most", most.Amount)
		case m.Slice.ForMs > most.ForMs+l.Meter.BilledMs-r.Head.BilledMs: // the end is no nearer than what both signed says
			why = "it is for a longer time than the rules say"
		default:
			return ""
		}
	}
	return why
}

// jobsOf returns the states in which a job may be by what its rig has said last. It does not run before the first money has come.
func jobsOf(r Record) []market.JobState {
	told := r.State.Job
	switch told {
	case market.JobGranted, market.JobPreparing, market.JobStarting:
		if r.State.PaidSeq == 0 && r.terms().Limits.Credit == 0 {
			return []market.JobState{market.JobPreparing}
		}
		return []market.JobState{market.JobPreparing, market.JobRunning}
	case market.JobRunning, market.JobStopping:
		return []market.JobState{market.JobRunning, market.JobPaused}
	}
	return []market.JobState{told}
}

// believed is the lease as the rig may see it: with the longest running time that this side's measure allows.
func (a *Agent) believed(r Record, job market.JobState, slice uint32) market.Lease {
	t := r.terms()
	ran := r.Head.BilledMs
	if job != market.JobPreparing {
		seen := a.seen(r).RanMs
		if seen == market.Unlimited {
			seen = r.State.BilledMs
		}
		ran = max(ran, min(seen+seen/1000+2000, t.DurationMs)) // with the tolerance of a receipt's check
	}
	unsigned := max(0, ran-r.Head.BilledMs)
	in := plausible(r.Head.Usage.InBytes, r.State.In, t.Resources.DownBits, unsigned)
	out := plausible(r.Head.Usage.OutBytes, r.State.Out, t.Resources.UpBits, unsigned)
	return market.Lease{
		ID: r.Lease, Terms: r.Terms, Extension: r.State.Extension, Job: job, Debt: r.debt(), Head: r.Head,
		Meter:   market.Meter{BilledMs: ran, KeptMs: max(r.Head.KeptMs, r.State.KeptMs), In: in, Out: out, SeenIn: in, SeenOut: out},
		Paid:    r.State.known(),
		Slices:  slice - 1,
		Attempt: r.State.Attempt,
	}
}

// mostBits bounds the traffic that is believed where the terms promise nothing, in bits a second.
const mostBits = int64(10_000_000_000)

// plausible returns the traffic that a rig says, as far as its line can have carried it since both signed the last of it.
func plausible(signed, said, bits, ms int64) int64 {
	if bits <= 0 || bits > mostBits {
		bits = mostBits
	}
	return max(signed, min(said, signed+bits/8000*ms))
}

// funded reports whether the rig has signed for the money that it wants before it takes anything in.
func (r Record) funded() bool {
	l := market.Lease{Terms: r.Terms, Extension: r.State.Extension, Job: market.JobPreparing, Head: r.Head, Paid: r.State.Paid, Attempt: r.State.Attempt}
	return l.Funded()
}

// paid is this side's word that a slice was sent.
func (p Paying) paid() market.PaidMessage {
	return market.PaidMessage{Slice: p.Slice.Seq, Amount: p.Amount, Reference: p.Reference}
}
