package sim

import "haggle/market"

// engine is the rig's container engine. It outlives the rig's program, and so do its jobs; it alone knows the truth.
type engine struct {
	w    *world
	jobs map[uint32]*job // by attempt
	ran  int64           // true ms for which a job ran, over all attempts
}

// job is one attempt's container.
type job struct {
	running, exited     bool
	startWall, exitWall int64 // by the rig's wall clock
	code                int64
	stopped             bool // the rig told it to end
}

// runs returns the job that runs, if one does.
func (e *engine) runs() *job {
	for _, j := range e.jobs {
		if j.running {
			return j
		}
	}
	return nil
}

// create makes a container; one that is there already stays.
func (e *engine) create(attempt uint32) {
	if e.jobs[attempt] == nil {
		e.jobs[attempt] = &job{}
	}
}

// start starts a container. Its job may end by itself after a while.
func (e *engine) start(attempt uint32) {
	j := e.jobs[attempt]
	if j == nil || j.running || j.exited {
		return
	}
	j.running, j.startWall = true, e.w.rig.clock.wall()
	e.w.note("engine", "job runs")
	if e.w.rng.IntN(3) == 0 {
		e.w.after(e.w.between(1000, 600_000), func() { e.exit(attempt, 0) })
	}
}

// exit ends a job.
func (e *engine) exit(attempt uint32, code int64) {
	j := e.jobs[attempt]
	if j == nil || !j.running {
		return
	}
	j.running, j.exited, j.exitWall, j.code = false, true, e.w.rig.clock.wall(), code
	e.w.note("engine", "job has ended")
	e.w.after(e.w.between(10, 900), func() { e.w.rig.hint() })
}

// terminate sends SIGTERM. Most jobs end by it.
func (e *engine) terminate(attempt uint32, graceMs int64) {
	j := e.jobs[attempt]
	if j == nil {
		return
	}
	j.stopped = true
	if graceMs > 0 && e.w.rng.IntN(3) > 0 {
		e.w.after(e.w.between(0, graceMs), func() { e.exit(attempt, 143) })
	}
}

// look returns the event that tells what became of a job, or nil while it is made or runs.
func (e *engine) look(attempt uint32) market.Event {
	j := e.jobs[attempt]
	switch {
	case j == nil:
		return market.Exited{Code: 125, Lost: true}
	case !j.exited:
		return nil
	}
	out := market.Exited{Code: j.code}
	if j.exitWall > j.startWall {
		out.RanMs = j.exitWall - j.startWall
	}
	return out
}
