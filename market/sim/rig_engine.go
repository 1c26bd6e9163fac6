package sim

import (
	"maps"
	"slices"

	"haggle/market"
)

// order calls the engine. The call may outlive the program that made it; its answer does not.
func (r *rig) order(t task, graceMs int64) {
	w := r.w
	if r.epoch == 0 || r.doing[t] && t != taskLook {
		return // join orders it again
	}
	r.doing[t] = true
	life, epoch, attempt := r.life, r.epoch, r.state.Attempt
	same := func() bool { return r.alive && r.life == life && r.epoch == epoch }
	w.after(w.between(20, 600), func() {
		if !same() && w.rng.IntN(2) == 0 {
			return // it never reached the engine
		}
		w.engine.carryOut(t, attempt, graceMs)
		wait := w.between(5, 300)
		if t == taskEnd {
			wait += graceMs
		}
		w.after(wait, func() { w.guard(func() { r.finished(t, attempt, same) }) })
	})
}

// carryOut does what an order asks for.
func (e *engine) carryOut(t task, attempt uint32, graceMs int64) {
	switch t {
	case taskPrepare:
		e.create(attempt)
	case taskStart:
		e.create(attempt)
		e.start(attempt)
	case taskEnd:
		e.terminate(attempt, graceMs)
	case taskRemove:
		clear(e.jobs)
	}
}

// finished takes the engine's answer, if the program that asked still lives.
func (r *rig) finished(t task, attempt uint32, same func() bool) {
	w := r.w
	if !same() {
		return
	}
	if r.stalled > w.now {
		w.after(r.stalled-w.now, func() { w.guard(func() { r.finished(t, attempt, same) }) })
		return
	}
	delete(r.doing, t)
	if r.state.Attempt != attempt {
		return // calls go one after the other: what an older attempt's says is known
	}
	j := w.engine.jobs[attempt]
	switch t {
	case taskPrepare:
		if w.chance(10) {
			r.happened(market.Failed{Reason: market.ReasonPrepare})
			return
		}
		r.happened(market.Prepared{})
	case taskStart:
		if e := w.engine.look(attempt); e != nil {
			r.happened(e)
			return
		}
		r.happened(market.Started{})
		r.sawRunning()
	case taskEnd:
		if j == nil && r.state.AttemptMs() == 0 {
			r.happened(market.Failed{Reason: r.state.Reason})
			return
		}
		w.engine.kill(attempt)
		r.happened(w.engine.look(attempt))
	case taskLook:
		if e := w.engine.look(attempt); e != nil {
			r.happened(e)
		} else if j != nil && j.running {
			r.sawRunning()
		}
	case taskScrub:
		r.happened(market.Scrubbed{Cards: []market.CardWipe{{Index: 0, Bytes: 24 << 30}}})
	case taskRemove:
		r.happened(market.Removed{})
	}
}

// kill ends a job for good, also one that never ran.
func (e *engine) kill(attempt uint32) {
	if j := e.jobs[attempt]; j != nil && !j.running && !j.exited {
		j.exited, j.code = true, 137
	}
	e.exit(attempt, 137)
}

// sweep ends what belongs to no attempt that the rig knows: it started it in a life that its store has forgotten.
func (e *engine) sweep(newest uint32) {
	for _, attempt := range slices.Sorted(maps.Keys(e.jobs)) {
		if attempt > newest {
			e.kill(attempt)
		}
	}
}

// sawRunning notes that the job runs. The time in which nobody could see it is not billed.
func (r *rig) sawRunning() {
	if r.seen == r.epoch {
		return
	}
	r.seen = r.epoch
	if r.state.Job == market.JobRunning && len(r.late) == 0 {
		r.happened(market.Unseen{})
	}
}

// hint says that the engine has news of the job.
func (r *rig) hint() {
	if r.alive && r.epoch != 0 && r.state.Job != market.JobEnded && r.state.Job != market.JobPaused {
		r.order(taskLook, 0)
	}
}

// lose loses the engine for a while.
func (r *rig) lose(ms int64) {
	if !r.alive || r.epoch == 0 {
		return
	}
	r.w.note("rig", "the engine does not answer")
	r.epoch, r.doing = 0, map[task]bool{}
	r.reach(ms)
}
