package sim

import (
	"fmt"

	"haggle/market"
)

// Times of a rig's program, as those of the real one. Milliseconds.
const (
	saveEveryMs   = int64(5000)
	statusEveryMs = int64(5000)
	lookEvery     = 15 // ticks
	pollSoonMs    = int64(1000)
	pollMs        = int64(5000)
	pollSoonFor   = int64(30_000)
	mostDownMs    = int64(90_000) // until a program that died lives again
)

// crashPerMille is how often a program dies before a write, and as often after it.
const crashPerMille = 20

// rig is the rig's program and its disk. What stands below the line is lost when it dies.
type rig struct {
	w       *world
	clock   clock
	disk    rigDisk
	backups []rigDisk
	diedAt  int64
	alive   bool
	gone    bool // for good
	doomed  bool // it dies at its next step that orders or agrees to something
	life    int

	// ----
	state   market.Lease
	draft   []byte
	conn    *conn
	epoch   int64 // of the engine; 0 while it cannot be reached
	seen    int64 // the epoch in which the job was last seen to run
	joined  int64
	ticks   int
	stalled int64 // true time until which the program stands still
	saved   int64
	said    int64
	asked   uint32 // the slice that was asked for on this connection
	askedAt int64
	poll    int64 // true time of the next question to the payment program
	pollEnd int64 // true time until which it is asked often
	doing   map[task]bool
	late    []market.Event
}

// task is a call into the engine.
type task string

const (
	taskPrepare task = "prepare"
	taskStart   task = "start"
	taskEnd     task = "end"
	taskLook    task = "look"
	taskScrub   task = "scrub"
	taskRemove  task = "remove"
)

func newRig(w *world) *rig {
	r := &rig{w: w, clock: clock{w: w, ppm: w.rng.Int64N(1001) - 500}}
	r.disk = rigDisk{
		instance: 1, paidFor: map[uint32]uint32{},
		state: market.NewLease(w.deal.id, w.deal.terms, r.clock.read(), w.rng.IntN(2) == 0),
	}
	return r
}

// every ticks for as long as a life lasts.
func (r *rig) every(life int) {
	w := r.w
	w.after(tickMs, func() {
		if !r.alive || r.life != life {
			return
		}
		if r.stalled > w.now {
			w.after(r.stalled-w.now, func() { r.every(life) })
			return
		}
		defer r.every(life)
		w.guard(r.tick)
	})
}

// tick lets time pass.
func (r *rig) tick() {
	r.ticks++
	r.retry()
	r.join()
	if r.blind() {
		return
	}
	if r.state.Job == market.JobRunning && r.ticks%lookEvery == 0 {
		r.order(taskLook, 0)
	}
	r.charge()
	r.mischief()
	save := r.state.Job == market.JobRunning && r.clock.read().Mono-r.saved >= saveEveryMs
	if err := r.step(market.Tick{}, r.saveIf(save)); err != nil {
		r.w.note("rig", "tick: "+err.Error())
		return
	}
	if r.state.Job == market.JobRunning && r.clock.read().Mono-r.said >= statusEveryMs {
		r.status()
	}
}

// blind reports whether the job should run and nobody can see whether it does.
func (r *rig) blind() bool {
	return r.state.Job == market.JobRunning && (r.epoch == 0 || r.epoch != r.seen)
}

// store is what a step writes beside the state.
type store func(d *rigDisk)

func (r *rig) saveIf(yes bool) store {
	if !yes {
		return nil
	}
	return func(*rigDisk) {}
}

// step takes an event: rule, store, then act.
func (r *rig) step(e market.Event, extra store) error {
	now := r.clock.read()
	blind := r.blind()
	if blind {
		now.Mono = r.state.Meter.LastMono // money's clock stands still
	}
	from := r.meddle(r.state, now, e)
	next, actions, err := market.Step(from, now, e)
	if err != nil {
		return err
	}
	if blind {
		next.Meter.LastWall = from.Meter.LastWall
	}
	next, actions = r.cheat(next, actions)
	files, draft := r.seal(next, actions)
	r.rush(draft, actions)
	if extra != nil || len(actions) > 0 || next.Job != r.state.Job {
		r.doom(e, actions)
		r.write(func(d *rigDisk) {
			d.state = next
			for _, f := range files {
				f(d)
			}
			if extra != nil {
				extra(d)
			}
		})
		r.saved = now.Mono
	}
	r.turn(next, draft)
	for _, a := range actions {
		r.perform(a)
	}
	return nil
}

// rush does before the write what must come after it, where the program has that mistake.
func (r *rig) rush(draft []byte, actions []market.Action) {
	if r.w.opt.Bugs.RigSendsBeforeStore && draft != nil {
		r.send(market.ReceiptMessage{Receipt: draft})
	}
	if r.w.opt.Bugs.ActsBeforeIntent {
		for _, a := range actions {
			r.act(a)
		}
	}
}

// turn takes the state that is stored, and tells the renter of a new one.
func (r *rig) turn(next market.Lease, draft []byte) {
	before := r.state
	r.state = next
	if draft != nil || next.Draft == nil {
		r.draft = draft
	}
	if before.Job != next.Job {
		r.w.note("rig", fmt.Sprintf("%s %s, billed %d, total %d of %d", next.Job, next.Reason, next.Meter.BilledMs, next.Total(), next.Ceiling()))
		r.status()
	}
}

// doom ends a life just before a write that matters.
func (r *rig) doom(e market.Event, actions []market.Action) {
	_, agreed := e.(market.Agreed)
	if r.doomed && !r.w.healed && (agreed || len(actions) > 0) {
		r.doomed = false
		panic(crash{r.die})
	}
}

// seal signs what a step's actions say, and returns what must be written with the state.
func (r *rig) seal(next market.Lease, actions []market.Action) (files []store, draft []byte) {
	key := r.w.deal.rigKey
	for _, a := range actions {
		switch a := a.(type) {
		case market.Propose:
			raw := market.SealReceipt(netName, key, a.Receipt).Encode()
			k := kept{seq: a.Receipt.Seq, hash: market.HashOf(a.Receipt.Body()), raw: raw}
			files, draft = append(files, func(d *rigDisk) { d.keep(k) }), raw
		case market.Attest:
			raw := market.SealOutcome(netName, key, a.Outcome).Encode()
			files = append(files, func(d *rigDisk) { d.outcome = raw })
		case market.Warn:
			p := market.Paper{Lease: next.ID, Kind: market.KindNotice, Seq: a.Notice.Seq, Sealed: market.SealNotice(netName, key, a.Notice).Encode()}
			files = append(files, func(d *rigDisk) { d.papers = append(d.papers, p) })
		}
	}
	return files, draft
}

// perform does what a step asked for.
func (r *rig) perform(a market.Action) {
	switch a := a.(type) {
	case market.Propose:
		r.propose()
	case market.Attest:
		r.send(market.OutcomeMessage{Outcome: r.disk.outcome})
	case market.AskPay:
		r.asked, r.poll, r.pollEnd = 0, 0, r.w.now+pollSoonFor
	default:
		r.act(a)
	}
}

// act orders the engine.
func (r *rig) act(a market.Action) {
	switch a := a.(type) {
	case market.Prepare:
		r.order(taskPrepare, 0)
	case market.Start:
		r.order(taskStart, 0)
	case market.EndJob:
		r.order(taskEnd, a.GraceMs)
	case market.Scrub:
		r.order(taskScrub, 0)
	case market.Remove:
		r.order(taskRemove, 0)
	}
}

// join orders what the state still needs, after a start and whenever the engine has come back.
func (r *rig) join() {
	if r.epoch == 0 || r.epoch == r.joined {
		return
	}
	r.joined = r.epoch
	r.w.engine.sweep(r.state.Attempt)
	if r.state.Job == market.JobRunning {
		r.order(taskLook, 0)
	}
	for _, a := range market.Pending(r.state) {
		switch a.(type) {
		case market.Propose: // a conversation begins with it
		case market.EndJob:
			r.order(taskEnd, min(max(0, r.state.KillAt-r.clock.wall()), r.state.Terms.NoticeMs)) // the clock may have been set back
		default:
			r.perform(a)
		}
	}
}

// happened takes what the engine did. What could not be stored is tried again with the next tick.
func (r *rig) happened(events ...market.Event) {
	r.late = append(r.late, events...)
	r.retry()
}

func (r *rig) retry() {
	for len(r.late) > 0 {
		e := r.late[0]
		r.late = r.late[1:]
		if err := r.step(e, func(*rigDisk) {}); err != nil {
			r.w.note("rig", "event does not fit: "+err.Error())
		}
	}
}
