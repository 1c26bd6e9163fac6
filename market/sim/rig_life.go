package sim

import (
	"fmt"

	"haggle/market"
)

// boot begins a life of the program.
func (r *rig) boot() {
	w := r.w
	r.life++
	r.alive, r.clock.origin = true, w.now
	r.draft, r.conn, r.epoch, r.seen, r.joined, r.ticks, r.stalled, r.late = nil, nil, 0, 0, 0, 0, 0, nil
	r.doing, r.asked, r.poll, r.saved, r.said = map[task]bool{}, 0, 0, 0, 0
	state := r.disk.state
	switch {
	case w.opt.Bugs.DropsDraftOnRestart:
		state.Draft = nil
	case w.opt.Bugs.ForgetsPaidSeq:
		state.PaidSeq = 0
	case w.opt.Bugs.SignsBeforeHeads:
		state.Unsure = false
	case w.opt.Bugs.BillsDowntime && state.Job == market.JobRunning:
		state.Meter.BilledMs = min(state.Meter.BilledMs+w.now-r.diedAt, state.Terms.DurationMs)
	}
	r.state, _, _ = market.Step(state, r.clock.read(), market.Restarted{DownMs: w.now - r.diedAt})
	w.note("rig", fmt.Sprintf("lives: %s, head %d, paid %d", r.state.Job, r.state.Head.Seq, r.state.Paid))
	r.every(r.life)
	r.reach(w.between(50, 2000))
}

// reach finds the engine after a while.
func (r *rig) reach(ms int64) {
	life := r.life
	r.w.after(ms, func() {
		if r.alive && r.life == life && r.epoch == 0 {
			r.epoch = r.w.now + 1
		}
	})
}

// die ends a life. The engine and its jobs go on.
func (r *rig) die() {
	w := r.w
	if !r.alive {
		return
	}
	w.stats.Crashes++
	r.alive, r.diedAt = false, w.now
	w.note("rig", "dies")
	w.net.breakAll("the rig died")
	down := w.between(100, mostDownMs)
	life := r.life
	w.after(down, func() {
		if !r.alive && !r.gone && r.life == life {
			r.boot()
		}
	})
}

// putBack replaces the disk by an older copy. The store has another name then, and the leases are in doubt.
func (r *rig) putBack() {
	w := r.w
	if len(r.backups) == 0 {
		return
	}
	w.stats.Restores++
	instance := r.disk.instance
	r.disk = r.backups[w.rng.IntN(len(r.backups))].clone()
	if !w.opt.Bugs.KeepsInstance {
		r.disk.instance = instance + 1
		r.disk.state.Unsure = true
	}
	w.note("rig", fmt.Sprintf("is put back to head %d", r.disk.state.Head.Seq))
}

func (r *rig) heal() {
	r.stalled = 0
	if r.gone {
		return
	}
	if !r.alive {
		r.boot()
	} else if r.epoch == 0 {
		r.reach(0)
	}
}

// write changes the disk, at once and as a whole. The program may die before and after.
func (r *rig) write(change func(d *rigDisk)) {
	w := r.w
	w.stats.Writes++
	if w.chance(crashPerMille) {
		panic(crash{r.die})
	}
	change(&r.disk)
	if w.chance(crashPerMille) {
		panic(crash{r.die})
	}
}
