package sim

import (
	"fmt"
	"maps"
	"slices"

	"haggle/market"
)

// Bounds of what is promised. Milliseconds.
const (
	clampMs  = market.MaxTickMs // that one reading of the clock may bill
	noticeMs = int64(1500)      // until the rig knows that a job has ended
	lateMs   = int64(30_000)    // that a word may be on its way
)

// watch sees everything, the truth too, and knows what was promised.
type watch struct {
	w        *world
	permille int64 // of a cheat
	restores int   // whose disk may be put back: 0 nobody's, 1 the rig's, 2 the renter's
	opened   map[string]opened
	observed int64 // ms for which the job ran and the rig's program could see it
	firstRun int64 // true time at which the job first ran; -1 before
	stalls   int64
	reboots  int64
	missed   bool // the renter did not hear the start on one connection
	signed   map[uint32]market.Hash
	payments map[uint32]market.Payment
	forked   bool
	doubled  bool
	largest  market.Micro // slice that was asked for and paid
	lost     int
	final    bool
}

// opened is a receipt that was verified before.
type opened struct {
	receipt market.Receipt
	sealed  market.Sealed
	err     error
}

func newWatch(w *world) watch {
	return watch{
		w: w, permille: 1 + w.rng.Int64N(1000), opened: map[string]opened{}, firstRun: -1,
		signed: map[uint32]market.Hash{}, payments: map[uint32]market.Payment{},
	}
}

// open is market.OpenReceipt, which gives the same for the same bytes.
func (w *world) open(raw []byte) (market.Receipt, market.Sealed, error) {
	if o, known := w.watch.opened[string(raw)]; known {
		return o.receipt, o.sealed, o.err
	}
	var o opened
	o.receipt, o.sealed, o.err = market.OpenReceipt(netName, raw, w.deal.terms)
	w.watch.opened[string(raw)] = o
	return o.receipt, o.sealed, o.err
}

// pass lets true time pass.
func (k *watch) pass(ms int64) {
	w := k.w
	if w.engine.runs() == nil {
		return
	}
	if k.firstRun < 0 {
		k.firstRun = w.now
	}
	w.engine.ran += ms
	if w.rig.alive && w.rig.stalled <= w.now {
		k.observed += ms
	}
}

// moves looks at money when it moves.
func (k *watch) moves(slice uint32, amount market.Micro) {
	k.largest = max(k.largest, amount)
	if p := k.w.renter.disk.paying; p == nil || p.slice.Seq != slice {
		k.w.broken("money moves for slice %d, and no intent is stored", slice)
	}
}

// signsPayment looks at a payment that the rig signs.
func (k *watch) signsPayment(p market.Payment) {
	if old, known := k.payments[p.Seq]; known && old != p && k.restores != 1 {
		k.w.broken("the rig signs two payments of number %d", p.Seq)
	}
	k.payments[p.Seq] = p
}

// hears looks at a word that moves the renter's lease on.
func (k *watch) hears(m market.StatusMessage, began bool) {
	if m.State == market.JobRunning && m.Attempt == 0 && !began {
		k.missed = true
	}
}

// signs looks at a receipt that the renter signs.
func (k *watch) signs(r market.Receipt, seen market.Seen) {
	w := k.w
	if old, known := k.signed[r.Seq]; known && old != market.HashOf(r.Body()) {
		w.broken("the renter signs two receipts of number %d", r.Seq)
	}
	k.signed[r.Seq] = market.HashOf(r.Body())
	if seen.RanMs != market.Unlimited && r.BilledMs > seen.RanMs+seen.RanMs/1000+2000 {
		w.broken("the renter signs %d ms, and measured %d", r.BilledMs, seen.RanMs)
	}
	if most := k.believable(); r.BilledMs > most {
		w.broken("the renter signs %d ms, the job ran %d, and it can believe %d", r.BilledMs, w.engine.ran, most)
	}
	k.w.stats.BilledMs = max(k.w.stats.BilledMs, r.BilledMs)
}

// believable is the most that a renter can take for true: the time since the job first ran, and what it cannot know: a start that
// was told late, the preparation where it did not hear the start, and for how long a job ran while its own machine began anew. A
// renter that lets a job run unattended without a limit, and whose clock is set while its machine is off, knows nothing at all.
func (k *watch) believable() int64 {
	t := k.w.deal.terms
	if k.reboots > 0 && t.Limits.UnattendedMs == market.Unlimited {
		return t.Extended(k.w.renter.disk.extension).DurationMs
	}
	since := k.w.now - k.firstRun
	if k.missed {
		since = k.w.now
	}
	boot := t.IntervalMs + t.GraceMs + market.MaxClockSkew.Milliseconds() + max(0, t.Limits.UnattendedMs)
	return since + since/500 + 2000 + lateMs + k.reboots*boot
}

// check looks at every promise that holds at all times.
func (w *world) check() {
	l := w.rig.disk.state
	if w.rig.alive {
		l = w.rig.state
	}
	terms := w.deal.terms.Extended(l.Extension)
	if !w.opt.Cheat.OfRig() {
		w.checkBill(terms, l)
	}
	if w.watch.restores != 2 && w.rig.disk.state.Head.Seq > w.renter.disk.head.Seq {
		w.broken("the rig holds receipt %d with both signatures, and its renter has not stored it", w.rig.disk.state.Head.Seq)
	}
	if moved := market.Micro(w.bank.moved); max(w.rig.disk.state.Paid, w.renter.disk.paid) > moved && !w.opt.Cheat.OfRig() {
		w.broken("the rig has signed for %d, and %d were sent", w.rig.disk.state.Paid, moved)
	}
	if w.stats.Restores > w.watch.lost {
		w.watch.lost = w.stats.Restores
		w.checkKept()
	}
	if w.healed && !w.watch.final && w.final() {
		w.watch.final = true
		w.stats.Healed = w.now - (w.until - healMs)
	}
}

// checkBill looks at what an honest rig bills.
func (w *world) checkBill(terms market.Terms, l market.Lease) {
	k := &w.watch
	billed := l.Meter.BilledMs
	if most := k.observed + k.observed/1000 + clampMs*(1+k.stalls) + noticeMs; billed > most {
		w.broken("%d ms are billed, and the job was seen to run for %d", billed, k.observed)
	}
	if most := terms.Ceiling(l.Paid); l.Total() > most {
		w.broken("%d are billed, and the ceiling is %d", l.Total(), most)
	}
	if l.Job != market.JobRunning {
		return
	}
	unsigned := billed - l.Head.BilledMs - l.AwayMs
	w.stats.MostUnsigned = max(w.stats.MostUnsigned, unsigned)
	w.stats.MostUnattended = max(w.stats.MostUnattended, l.AwayMs)
	if !l.Away && unsigned > terms.Limits.UnsignedMs+clampMs {
		w.broken("%d ms are billed and not signed, and %d are allowed", unsigned, terms.Limits.UnsignedMs)
	}
	if most := terms.Limits.UnattendedMs; most != market.Unlimited && l.AwayMs > most+clampMs {
		w.broken("%d ms are billed while the renter is away, and %d are allowed", l.AwayMs, most)
	}
}

// checkKept looks whether every receipt that both signed is on a disk.
func (w *world) checkKept() {
	for _, seq := range slices.Sorted(maps.Keys(w.watch.signed)) {
		hash := w.watch.signed[seq]
		r, q := receiptOf(w.rig.disk.receipts, seq), receiptOf(w.renter.disk.receipts, seq)
		if (r == nil || r.hash != hash) && (q == nil || q.hash != hash) {
			w.broken("receipt %d, which both signed, is lost on both sides", seq)
		}
	}
}

// final reports whether nothing is left to do on either side.
func (w *world) final() bool {
	return w.rig.alive && w.rig.state.Debt == market.DebtFinal && w.renter.disk.over() &&
		w.rig.state.Paid == market.Micro(w.bank.moved) && w.renter.disk.paid == w.rig.state.Paid
}

// checkEnd looks at the promises of an end.
func (w *world) checkEnd() {
	w.stats.End = string(w.rig.state.Reason)
	w.stats.Void = w.renter.disk.void
	if w.opt.Cheat != "" {
		w.checkCheated()
		return
	}
	rig, renter := w.rig, w.renter
	switch {
	case !rig.alive || !renter.alive:
		w.broken("a side does not live at the end")
	case w.engine.runs() != nil:
		w.broken("the job still runs")
	case rig.state.Debt != market.DebtFinal:
		w.broken("not final %d s after the faults: the rig is %s, debt %s, signed %d", healMs/1000, rig.state.Job, rig.state.Debt, rig.state.Head.Seq)
	case !renter.disk.over():
		w.broken("not final %d s after the faults: the renter is %s, head %d", healMs/1000, renter.disk.job, renter.disk.head.Seq)
	case renter.disk.void && (rig.state.Total() > 0 || w.bank.moved > 0):
		w.broken("a void lease has a bill")
	case renter.disk.void:
		return
	case rig.state.Head.Hash != renter.disk.head.Hash:
		w.broken("the bills differ")
	case rig.state.Paid != market.Micro(w.bank.moved) || renter.disk.paid != rig.state.Paid || renter.disk.sent != renter.disk.paid:
		w.broken("%d were sent, the rig signed for %d, the renter has %d signed and %d sent", w.bank.moved, rig.state.Paid, renter.disk.paid, renter.disk.sent)
	}
	w.checkKept()
	w.checkReason()
	w.checkEvidence("rig", w.rigEvidence())
	w.checkEvidence("renter", w.renterEvidence())
}

// checkEvidence looks at what an honest side can show.
func (w *world) checkEvidence(side string, e market.Evidence) {
	if j := market.Judge(e.Encode()); j.Verdict != market.VerdictAgreed {
		w.broken("the %s's evidence is %s: %s", side, j.Verdict, lastCheck(j))
	}
}

// checkReason looks whether a job that the rig ended says so. A rig that was put back may have forgotten that it did.
func (w *world) checkReason() {
	if w.watch.restores == 1 {
		return
	}
	if j := w.engine.jobs[w.rig.state.Attempt]; j != nil && j.stopped && j.exited && w.rig.state.Reason == market.ReasonCompleted {
		w.broken("the rig ended the job, and its last receipt says that it ended by itself")
	}
}

func lastCheck(j market.Judgement) string {
	if len(j.Checks) == 0 {
		return "nothing was checked"
	}
	c := j.Checks[len(j.Checks)-1]
	return fmt.Sprintf("%s: %s", c.Name, c.Detail)
}
