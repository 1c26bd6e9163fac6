package sim

import (
	"fmt"

	"haggle/market"
)

// Times of a renter's program, as those of the real one. Milliseconds.
const (
	greetMs    = int64(10_000)  // from the dial to the rig's hello
	ackMs      = int64(5000)    // for the rig's word that it has the final receipt
	silenceMs  = int64(45_000)  // without a word of a rig whose job runs
	quietMs    = int64(300_000) // without a word otherwise
	wishMs     = int64(3000)    // between two sendings of what the user wants
	probeMs    = int64(15_000)
	probeEndMs = int64(14_000) // for its answer
	recheckMs  = int64(15_000) // until the payment program is asked again about money that the rig has not seen
)

// renter is the renter's agent and its disk. What stands below the line is lost when it dies.
type renter struct {
	w       *world
	clock   clock
	disk    renterDisk
	backups []renterDisk
	alive   bool
	life    int
	wish    *market.StopMessage // what the user wants
	again   bool                // the user wants a kept lease started again

	// ----
	measure market.Measure
	conn    *conn
	greeted bool
	theirs  uint32
	heard   int64 // true time of the rig's last word
	dialled int64
	retry   int64 // true time of the next attempt to connect
	pause   int64
	settle  int64 // true time until which the final acknowledgement is waited for; 0 while there is none
	busy    bool  // the payment program works
	payAt   int64 // true time of the next question to it
	tries   int
	billed  int64 // as the rig says
	keptMs  int64
	probe   int64  // true time at which the last probe was sent
	lateFor uint32 // the receipt that a cheat signs at last
	asked   int64  // true time at which the user's wish was sent
}

func newRenter(w *world) *renter {
	r := &renter{w: w, clock: clock{w: w, ppm: w.rng.Int64N(1001) - 500}}
	r.disk = renterDisk{instance: 1, job: market.JobGranted}
	r.disk.measure = r.disk.measure.Begin(r.clock.boot(), r.now())
	return r
}

// now is the clock that the measure goes by.
func (r *renter) now() market.Instant {
	at := r.clock.steady()
	if r.w.opt.Bugs.TrustsWallClock {
		at.Mono = at.Wall - beginWall + 1
	}
	return at
}

// boot begins a life of the program.
func (r *renter) boot() {
	w := r.w
	r.life++
	r.alive, r.conn, r.retry, r.pause, r.busy, r.settle, r.probe, r.tries, r.payAt = true, nil, 0, 0, false, 0, 0, 0, 0
	r.measure = r.disk.measure.Wake(r.clock.boot(), r.now(), w.deal.terms, r.disk.head)
	if w.opt.Bugs.ForgetsMeasure {
		r.measure = market.Measure{}.Begin(r.clock.boot(), r.now())
	}
	w.note("renter", fmt.Sprintf("lives: %s, head %d, paid %d, sent %d", r.disk.job, r.disk.head.Seq, r.disk.paid, r.disk.sent))
	r.every(r.life)
}

// die ends a life; sometimes the whole machine begins anew.
func (r *renter) die() {
	w := r.w
	if !r.alive {
		return
	}
	w.stats.Crashes++
	r.alive = false
	w.note("renter", "dies")
	w.net.breakAll("the renter died")
	down := w.between(100, mostDownMs)
	if w.rng.IntN(3) == 0 {
		r.clock.reboot()
		w.watch.reboots++
	}
	life := r.life
	w.after(down, func() {
		if !r.alive && r.life == life {
			r.boot()
		}
	})
}

// putBack replaces the disk by an older copy.
func (r *renter) putBack() {
	w := r.w
	if len(r.backups) == 0 {
		return
	}
	w.stats.Restores++
	instance := r.disk.instance
	r.disk = r.backups[w.rng.IntN(len(r.backups))].clone()
	r.disk.instance = instance + 1
	r.disk.keeps = true // it may have ordered that, and forgotten
	r.disk.measure = r.disk.measure.PutBack()
	w.note("renter", fmt.Sprintf("is put back to head %d", r.disk.head.Seq))
}

func (r *renter) heal() {
	if r.w.watch.restores == 1 && r.disk.over() { // it looks once more what the rig knows, as when the user asks for the outcome
		r.disk.acked = false
		if r.conn != nil {
			r.conn.cut("the lease is over")
			r.offline()
		}
	}
	r.retry, r.pause, r.payAt = 0, 0, 0
	if !r.alive {
		r.boot()
	}
}

// enough is the user's order to end the job for good.
func (r *renter) enough() {
	r.again = false
	r.order(&market.StopMessage{Kill: true})
}

// order takes the user's wish. It is sent as soon as the rig is there.
func (r *renter) order(m *market.StopMessage) {
	if m.Keep {
		if !r.alive {
			return
		}
		r.write(func(d *renterDisk) { d.keeps = true })
	}
	r.wish = m
	r.wishes()
}

// wishes sends what the user wants.
func (r *renter) wishes() {
	if !r.alive || r.conn == nil || !r.greeted || r.disk.job == market.JobGranted {
		return
	}
	r.asked = r.w.now
	if r.wish != nil {
		r.send(*r.wish)
	}
	if r.disk.asking != nil {
		r.send(market.ExtendMessage{Extension: r.disk.asking})
	}
	if r.again && r.disk.job == market.JobPaused {
		r.send(market.ResumeMessage{})
	}
}

// write changes the disk, at once and as a whole. The program may die before and after.
func (r *renter) write(change func(d *renterDisk)) {
	w := r.w
	w.stats.Writes++
	if w.chance(crashPerMille) {
		panic(crash{r.die})
	}
	change(&r.disk)
	r.disk.measure = r.measure
	if w.chance(crashPerMille) {
		panic(crash{r.die})
	}
}

// every looks after the connection and the money for as long as a life lasts.
func (r *renter) every(life int) {
	w := r.w
	w.after(tickMs/2, func() {
		if !r.alive || r.life != life {
			return
		}
		defer r.every(life)
		w.guard(r.tick)
	})
}

func (r *renter) tick() {
	w := r.w
	if r.disk.over() {
		if r.conn != nil {
			r.conn.cut("the lease is over")
			r.offline()
		}
		return
	}
	r.pay()
	switch {
	case r.conn == nil && w.now >= r.retry:
		r.connect()
	case r.conn == nil:
	case !r.greeted && w.now-r.dialled > greetMs:
		r.conn.cut("no hello")
		r.offline()
	case r.settle > 0 && w.now >= r.settle:
		r.conn.cut("no acknowledgement")
		r.offline()
	case w.now-r.heard > r.silence():
		r.conn.cut("silence")
		r.offline()
	default:
		r.sound()
		if w.now-r.asked > wishMs {
			r.wishes()
		}
	}
}

func (r *renter) silence() int64 {
	if r.disk.job == market.JobRunning {
		return silenceMs
	}
	return quietMs
}

// connect begins a conversation.
func (r *renter) connect() {
	w := r.w
	c := w.net.dial()
	if c == nil {
		r.later()
		return
	}
	r.conn, r.greeted, r.theirs, r.dialled, r.heard, r.settle = c, false, 0, w.now, w.now, 0
	r.send(market.Hello{
		Instance: market.Nonce{r.disk.instance}, WallMs: r.clock.wall(), Lease: w.deal.id, Seq: r.disk.head.Seq, Hash: r.disk.head.Hash,
		Paid: r.disk.paidSeq,
	})
}

// later waits for the next attempt, longer each time.
func (r *renter) later() {
	r.pause = min(max(2*r.pause, 200), 10_000)
	r.retry = r.w.now + r.w.between(r.pause/2, r.pause)
}

// offline notes that the connection has ended.
func (r *renter) offline() {
	r.conn, r.greeted = nil, false
	r.measure = r.measure.Lost()
	r.later()
}

func (r *renter) send(m market.Message) { r.conn.send(toRig, m) }

// sound probes whether the job runs, through a door into it.
func (r *renter) sound() {
	w := r.w
	if r.disk.job != market.JobRunning || !r.greeted || w.now-r.probe < probeMs {
		return
	}
	r.probe = w.now
	r.listen(r.conn, r.life, r.now(), w.now)
}

// listen waits for a probe's answer. It comes through the rig's program, and as late as the network lets it.
func (r *renter) listen(c *conn, life int, sent market.Instant, at int64) {
	w := r.w
	w.after(w.between(20, 400), func() {
		if !r.alive || r.life != life || r.conn != c || r.disk.job != market.JobRunning {
			return
		}
		answered := w.rig.alive && w.rig.stalled <= w.now && !w.net.apart && c.open && w.engine.runs() != nil
		if !answered && w.now-at < probeEndMs {
			r.listen(c, life, sent, at)
			return
		}
		r.measure = r.measure.Probe(answered, sent)
	})
}
