package sim

import "haggle/market"

// checkCheated looks at what an honest side has lost to a cheat, and at what it can prove.
func (w *world) checkCheated() {
	if w.opt.Cheat.OfRig() {
		w.checkHonestRenter()
	} else {
		w.checkHonestRig()
	}
}

// checkHonestRenter looks at a renter whose rig cheats: it has paid ahead no more than its largest slices for use that it did not
// get, its own evidence never speaks against it, and a fork proves the rig guilty.
func (w *world) checkHonestRenter() {
	d := w.renter.disk
	used, err := w.deal.terms.Prices.Bill(w.deal.terms.UsedBy(w.engine.ran, d.head.KeptMs, 0, 0))
	if err != nil {
		return
	}
	over := max(0, d.head.Total-used.Total) // what it signed beyond the truth: bounded where it signs
	if lost := market.Micro(w.bank.moved) - used.Total; lost > 2*w.watch.largest+over {
		w.broken("the renter lost %d, and its largest payment was %d", lost, w.watch.largest)
	}
	j := market.Judge(w.renterEvidence().Encode())
	if j.Verdict == market.VerdictFraud {
		w.stats.Frauds++
	}
	switch {
	case j.Verdict == market.VerdictFraud && j.Guilty != market.KeyOf(w.deal.rigKey):
		w.broken("the evidence of an honest renter calls another than the rig guilty: %s", lastCheck(j))
	case j.Verdict == market.VerdictInvalid && len(d.refused) == 0:
		w.broken("the evidence of an honest renter is invalid: %s", lastCheck(j))
	case w.watch.forked && len(d.refused) > 0 && j.Verdict != market.VerdictFraud:
		w.broken("a fork is no fraud but %s: %s", j.Verdict, lastCheck(j))
	}
}

// checkHonestRig looks at a rig whose renter cheats: its exposure was checked at every step; its evidence never speaks against it.
func (w *world) checkHonestRig() {
	j := market.Judge(w.rigEvidence().Encode())
	if j.Verdict == market.VerdictFraud {
		w.stats.Frauds++
	}
	switch {
	case j.Verdict == market.VerdictFraud && j.Guilty != market.KeyOf(w.deal.renterKey):
		w.broken("the evidence of an honest rig calls another than the renter guilty: %s", lastCheck(j))
	case j.Verdict == market.VerdictInvalid:
		w.broken("the evidence of an honest rig is invalid: %s", lastCheck(j))
	case w.watch.doubled && w.rig.state.Debt == market.DebtDisputed && w.rig.state.Head.Seq >= 3 && j.Verdict != market.VerdictFraud:
		w.broken("a receipt that was signed and refused is no fraud but %s: %s", j.Verdict, lastCheck(j))
	case w.engine.runs() != nil:
		w.broken("the job still runs")
	}
}
