package host

import (
	"context"
	"log/slog"
	"strconv"

	"haggle/market"
)

// attach joins a conversation to the lease; the one before it of the renter, or of a deputy, ends. It runs on the lease's goroutine.
func (l *lease) attach(ctx context.Context, k *link, greet func(context.Context, *link)) error {
	place := &l.renter
	if k.deputy {
		place = &l.deputy
	}
	if *place != nil {
		(*place).end(errClosed)
	}
	*place = k
	if l.state.Away || !l.state.MaySign() {
		// A bid that comes again does not tell what its renter has.
		half := k.deputy || k.hello.Lease.IsZero()
		if err := l.step(ctx, market.Contact{Seq: k.hello.Seq, Paid: k.hello.Paid, Deputy: half}, nil); err != nil {
			return err
		}
	}
	l.publish()
	greet(ctx, k)
	return nil
}

// detach notes that a conversation has ended, unless another one has taken over, and that the renter is away with the last.
func (l *lease) detach(ctx context.Context, k *link) error {
	switch k {
	case l.renter:
		l.renter = nil
	case l.deputy:
		l.deputy = nil
	default:
		return nil
	}
	var err error
	if len(l.links()) > 0 {
		l.ask()
	} else {
		err = l.step(ctx, market.Contact{Away: true}, nil)
	}
	l.publish()
	return err
}

// tell sends where the lease stands.
func (l *lease) tell(k *link) {
	l.status(k)
	l.propose(k)
	l.attest(k)
	if l.state.Job == market.JobStopping {
		l.warn(k)
	}
	if k == l.payer() {
		l.ask()
	}
}

// attest sends what became of what the job left behind, once there is something to say.
func (l *lease) attest(to ...*link) {
	for _, k := range to {
		if l.record.Outcome != nil {
			k.send(market.OutcomeMessage{Outcome: l.record.Outcome})
		}
	}
}

// warn sends the newest notice.
func (l *lease) warn(to ...*link) {
	for _, k := range to {
		if l.notice != nil {
			k.send(market.NoticeMessage{Notice: l.notice})
		}
	}
}

func (l *lease) statusAll() {
	for _, k := range l.links() {
		l.status(k)
	}
}

func (l *lease) status(k *link) {
	k.said = l.d.cfg.Clock().Mono
	m := l.state.Status()
	m.Cards = l.readings()
	m.DiskUsed, m.DiskFull = counted(l.usage.DiskBytes), l.full.Load()
	k.send(m)
}

// propose sends the receipt that waits for the renter's signature. It always has the same bytes.
func (l *lease) propose(to ...*link) {
	if l.state.Draft == nil || l.state.Debt != market.DebtOpen {
		return
	}
	if l.draft == nil {
		l.draft = market.SealReceipt(l.d.cfg.Network, l.d.cfg.Key, *l.state.Draft).Encode()
	}
	for _, k := range to {
		k.send(market.ReceiptMessage{Receipt: l.draft})
	}
}

// accept takes the renter's signature under the terms.
func (d *Daemon) accept(l *lease, k *link, m market.AcceptMessage) error {
	_, sealed, err := market.OpenLease(d.cfg.Network, m.Lease)
	if err != nil {
		return err
	}
	if sealed.ID() != l.id {
		return market.NewError(market.CodeLeaseUnknown, "lease", sealed.ID().Short())
	}
	if err := m.Env.Validate(); err != nil {
		return err
	}
	return l.call(func(ctx context.Context) error { return l.accepted(ctx, k, m) })
}

func (l *lease) accepted(ctx context.Context, k *link, m market.AcceptMessage) error {
	if l.state.Job != market.JobGranted {
		if l.state.Reason == market.ReasonHoldExpired {
			return market.NewError(market.CodeHoldExpired)
		}
		l.remind(ctx, m.Secrets)
		l.tell(k) // a repetition
		return nil
	}
	record := l.record
	record.Sealed, record.Env = m.Lease, m.Env
	if m.Env.Hash(record.Job.Salt) != record.Job.EnvHash {
		return market.NewError(market.CodeBadRecord, "kind", "job", "why", "its environment is not the one of the bid")
	}
	if err := market.CheckSecrets(l.wants, m.Secrets); err != nil {
		return err
	}
	before := l.record
	l.record, l.secrets = record, secretsOf(m.Secrets)
	err := l.step(ctx, market.Signed{}, func(ctx context.Context, next market.Lease, f filing) error {
		if next.Job == market.JobEnded { // the hold ran out
			return l.save(ctx, next, f)
		}
		return l.d.cfg.Store.Sign(ctx, next, record.Sealed, record.Env)
	})
	if err == nil && l.state.Job == market.JobEnded {
		err = l.farewell()
	}
	if err != nil {
		l.record, l.secrets = before, nil
	}
	return err
}

// countersigned takes a receipt with both signatures.
func (d *Daemon) countersigned(l *lease, k *link, raw []byte) error {
	r, sealed, err := market.OpenReceipt(d.cfg.Network, raw, l.snapshot().Terms)
	switch {
	case err != nil:
		return err
	case !sealed.SignedBy(market.RoleRenter):
		return market.NewError(market.CodeBadSignature, "kind", string(market.KindReceipt), "role", string(market.RoleRenter))
	case r.Lease != l.id:
		return chainError(r.Seq, "it belongs to another lease")
	}
	return l.call(func(ctx context.Context) error { return l.agreed(ctx, k, r, sealed, raw) })
}

func (l *lease) agreed(ctx context.Context, k *link, r market.Receipt, sealed market.Sealed, raw []byte) error {
	if r.Seq <= l.state.Head.Seq {
		if _, err := l.d.echoed(ctx, l.state, raw); err != nil {
			return err
		}
		k.send(market.AckMessage{Seq: r.Seq})
		return nil
	}
	from := l.state
	if from.Draft == nil && from.MaySign() {
		// The renter holds what this rig signed in a life that its store has forgotten.
		if err := l.remember(&from, r); err != nil {
			return err
		}
	}
	err := l.stepFrom(ctx, from, market.Agreed{Receipt: r, Hash: sealed.Hash()}, func(ctx context.Context, next market.Lease, f filing) error {
		f.receipts = append([]Receipt{{Lease: l.id, Seq: r.Seq, Sealed: raw, Agreed: true}}, f.receipts...)
		if err := l.save(ctx, next, f); err != nil {
			return err
		}
		l.signer = ""
		if key, err := sealed.Verify(market.RoleRenter); err == nil && key != next.Terms.Renter {
			l.signer = "deputy"
		}
		k.send(market.AckMessage{Seq: r.Seq})
		l.say(market.ReceiptMessage{Receipt: raw}, k) // renter and deputy hear of each other's signatures
		return nil
	})
	if market.CodeOf(err) == market.CodeReceiptChain {
		l.d.log.Error("chains differ", slog.String("lease", l.id.Short()), slog.Uint64("seq", uint64(r.Seq)))
	}
	return err
}

// remember corrects a state by a receipt that both signed and that follows its head.
func (l *lease) remember(from *market.Lease, r market.Receipt) error {
	err := market.CheckReceipt(l.id, from.Current(), from.Head, r, market.Unlimited)
	if err == nil && r.Kind == market.ReceiptFinal && from.Job != market.JobEnded {
		err = chainError(r.Seq, "the job has not ended")
	}
	if err != nil {
		l.d.log.Error("renter holds a receipt that does not follow", slog.String("lease", l.id.Short()), slog.Any("err", err))
		return err
	}
	l.d.log.Warn("receipt came back from the renter", slog.String("lease", l.id.Short()), slog.Uint64("seq", uint64(r.Seq)))
	from.Draft = &r
	from.Meter.BilledMs = max(from.Meter.BilledMs, r.BilledMs)
	from.Meter.KeptMs = max(from.Meter.KeptMs, r.KeptMs)
	from.Meter.UnbilledMs = max(from.Meter.UnbilledMs, r.UnbilledMs)
	from.Meter.In, from.Meter.SeenIn = max(from.Meter.In, r.Usage.InBytes), max(from.Meter.SeenIn, r.Usage.InBytes)
	from.Meter.Out, from.Meter.SeenOut = max(from.Meter.Out, r.Usage.OutBytes), max(from.Meter.SeenOut, r.Usage.OutBytes)
	return nil
}

// rejected takes the renter's signed refusal of the draft.
func (d *Daemon) rejected(l *lease, raw []byte) error {
	r, sealed, err := market.OpenReject(d.cfg.Network, raw, l.snapshot().Terms)
	if err != nil {
		return err
	}
	return l.call(func(ctx context.Context) error {
		draft := l.state.Draft
		if r.Lease != l.id || draft == nil || r.Seq != draft.Seq || r.Receipt != market.HashOf(draft.Body()) {
			return chainError(r.Seq, "the refusal is not of the draft")
		}
		d.log.Warn("receipt refused", slog.String("lease", l.id.Short()), slog.Uint64("seq", uint64(r.Seq)),
			slog.String("code", market.Printable(string(r.Code))), slog.String("reject", sealed.Hash().String()))
		return l.step(ctx, market.Rejected{}, l.filed(market.KindReject, r.Seq, raw))
	})
}

// stop ends the job, or with keep pauses the lease. To stop what has ended, or to keep what is kept, is no error: the answer is its
// status.
func (l *lease) stop(ctx context.Context, e market.Stop) error {
	if l.state.Job == market.JobEnded && !e.Keep || l.state.Job == market.JobPaused && e.Keep {
		l.statusAll()
		return nil
	}
	return l.step(ctx, e, nil)
}

// missing returns the receipts that both signed and a renter lacks. A renter that holds other bytes at a number of ours is
// refused: one of the two chains is a fork.
func (d *Daemon) missing(ctx context.Context, state market.Lease, theirs market.Hello) ([]Receipt, error) {
	if theirs.Seq > state.Head.Seq {
		return nil, nil // it will send what we lack
	}
	after := theirs.Seq
	if after > 0 {
		after--
	}
	list, err := d.cfg.Store.Receipts(ctx, state.ID, after)
	if err != nil {
		return nil, err
	}
	if theirs.Seq > 0 {
		if len(list) == 0 || !sameReceipt(list[0], theirs.Seq, theirs.Hash) {
			d.log.Error("chains differ", slog.String("lease", state.ID.Short()), slog.Uint64("seq", uint64(theirs.Seq)))
			return nil, chainError(theirs.Seq, "the rig has signed another one")
		}
		list = list[1:]
	}
	for i, r := range list {
		if !r.Agreed {
			return list[:i], nil // the draft is sent by its lease
		}
	}
	return list, nil
}

// echoed reports whether a receipt is one that is kept with both signatures, and its number.
func (d *Daemon) echoed(ctx context.Context, state market.Lease, raw []byte) (uint32, error) {
	r, sealed, err := market.OpenReceipt(d.cfg.Network, raw, state.Terms)
	if err != nil {
		return 0, err
	}
	if r.Seq == 0 || r.Seq > state.Head.Seq {
		return 0, chainError(r.Seq, "the chain is closed")
	}
	list, err := d.cfg.Store.Receipts(ctx, state.ID, r.Seq-1)
	if err != nil {
		return 0, err
	}
	if len(list) == 0 || !sameReceipt(list[0], r.Seq, sealed.Hash()) {
		d.log.Error("chains differ", slog.String("lease", state.ID.Short()), slog.Uint64("seq", uint64(r.Seq)))
		return 0, chainError(r.Seq, "the rig has signed another one")
	}
	return r.Seq, nil
}

func sameReceipt(kept Receipt, seq uint32, hash market.Hash) bool {
	s, err := market.DecodeSealed(kept.Sealed)
	return err == nil && kept.Seq == seq && s.Hash() == hash
}

func chainError(seq uint32, why string) error {
	return market.NewError(market.CodeReceiptChain, "seq", strconv.FormatUint(uint64(seq), 10), "why", why)
}
