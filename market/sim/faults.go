package sim

import "haggle/market"

// plan draws the faults of a run.
func (w *world) plan(faultyMs int64) {
	some := func(most int, do func()) {
		for range w.rng.IntN(most + 1) {
			w.after(w.rng.Int64N(faultyMs), func() {
				if !w.healed {
					w.guard(do)
				}
			})
		}
	}
	some(3, w.rig.die)
	some(4, func() { w.rig.doomed = true })
	some(3, w.renter.die)
	some(3, func() { w.net.part(w.between(500, 20_000)) })
	some(1, func() { w.net.part(w.between(20_000, 240_000)) })
	some(3, func() { w.net.breakAll("chance") })
	some(3, func() { w.rig.stall(w.between(1000, 40_000)) })
	some(2, func() { w.rig.lose(w.between(500, 20_000)) })
	if w.rng.IntN(4) == 0 {
		some(2, func() { w.setClock(&w.rig.clock) })
		some(2, func() { w.setClock(&w.renter.clock) })
	}
	if w.rng.IntN(3) == 0 {
		some(2, func() { w.user() })
	}
	if w.rng.IntN(4) == 0 {
		some(3, w.renter.extend)
	}
	if w.rng.IntN(8) == 0 {
		some(1, func() { w.owner() })
	}
	w.planRestores(faultyMs, some)
}

// planRestores draws whether one side's disk is lost, and put back from an older copy.
func (w *world) planRestores(faultyMs int64, some func(int, func())) {
	side := w.rng.IntN(6)
	if side > 1 || w.opt.Cheat != "" {
		return
	}
	w.watch.restores = side + 1
	for at := int64(20_000); at < faultyMs; at += w.between(10_000, 120_000) {
		w.after(at, func() {
			if side == 0 && w.rig.disk.state.Head.Seq > 0 {
				w.rig.backups = append(w.rig.backups, w.rig.disk.clone())
			}
			if side == 1 && w.renter.disk.head.Seq > 0 {
				w.renter.backups = append(w.renter.backups, w.renter.disk.clone())
			}
		})
	}
	some(2, func() {
		if side == 0 {
			w.rig.die()
			w.rig.putBack()
		} else {
			w.renter.die()
			w.renter.putBack()
		}
	})
}

// stall makes the rig's program stand still, as a stopped or starved process does.
func (r *rig) stall(ms int64) {
	if r.alive {
		r.w.note("rig", "stands still")
		r.stalled = r.w.now + ms
		r.w.watch.stalls++
	}
}

// setClock sets a side's wall clock.
func (w *world) setClock(c *clock) {
	day := int64(24 * 3_600_000)
	c.set += []int64{-day, -7000, 7000, 90_000, day}[w.rng.IntN(5)]
	w.note("", "a wall clock is set")
}

// owner is the rig's owner, who ends the job.
func (w *world) owner() {
	if !w.rig.alive || w.rig.stalled > w.now {
		return
	}
	w.note("rig", "its owner ends the job")
	if err := w.rig.step(market.Stop{Reason: market.ReasonRig}, nil); err != nil {
		w.note("rig", "which cannot be: "+err.Error())
	}
}

// user does what a user may do at any time: it pauses the lease, and has it started again.
func (w *world) user() {
	switch {
	case !w.renter.alive:
	case w.renter.disk.job == market.JobRunning:
		w.note("renter", "the user keeps the disk")
		w.renter.order(&market.StopMessage{Keep: true})
		w.after(w.between(20_000, 200_000), func() {
			if !w.healed {
				w.renter.wish, w.renter.again = nil, true
			}
		})
	case w.renter.disk.job == market.JobPaused:
		w.renter.again = true
	}
}
