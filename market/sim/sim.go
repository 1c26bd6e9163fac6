// Package sim plays whole lives of a lease in virtual time: a rig, a renter, the network, the engine and the money between them, with
// faults in all of them, and checks after every step what the market promises. It drives the rules of package market with the real
// signatures; around them stand shells that store and act in the same order as the programs do. One seed is one life: the same seed
// plays the same life again, to the byte.
package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Options choose what a run plays. The zero value is two honest sides and every kind of fault.
type Options struct {
	Bugs  Bugs  // mistakes in the programs, which tests switch on to prove that they are found
	Cheat Cheat // what one side does against the other
	Calm  bool  // no faults
	Trace bool  // keep what happened, also where nothing goes wrong
}

// Result is what came of a run.
type Result struct {
	Seed  uint64
	Fault string // the first promise that was broken; "" where none was
	Trace []string
	Stats Stats
}

// Stats count what a run went through. Times are milliseconds.
type Stats struct {
	Events   int
	Writes   int // of a disk: a side can die before and after each
	Crashes  int
	Restores int // of a disk, from an older copy
	Breaks   int // of connections that lost too much
	Receipts int // that both signed
	Payments int
	Refusals int
	Frauds   int // that the honest side's evidence proves

	BilledMs       int64 // that both signed
	MostUnsigned   int64 // billed and not signed, while the renter was there
	MostUnattended int64 // the same while it was away
	Healed         int64 // from the end of the faults until nothing was left to do
	Void           bool  // nothing was ever signed for
	End            string
}

// String tells a failed run with its trace, to be read by people.
func (r Result) String() string {
	if r.Fault == "" {
		return fmt.Sprintf("seed %d: all promises kept", r.Seed)
	}
	return fmt.Sprintf("seed %d: %s\n%s", r.Seed, r.Fault, strings.Join(r.Trace, "\n"))
}

// Lengths of a run. Milliseconds of virtual time.
const (
	leastFaultyMs = int64(150_000)
	mostFaultyMs  = int64(900_000)
	healMs        = int64(60_000) // after the faults: until then every lease must be final
	cheatedMs     = int64(900_000)
	tickMs        = int64(1000)
	traceLines    = 400
)

// Run plays the life of a seed until it is over or a promise is broken.
func Run(seed uint64, opt Options) Result {
	w := newWorld(seed, opt)
	w.begin()
	for w.fault == "" && len(w.queue) > 0 && w.now <= w.until {
		w.next()
	}
	if w.fault == "" {
		w.checkEnd()
	}
	r := Result{Seed: seed, Fault: w.fault, Stats: w.stats}
	if w.fault != "" || opt.Trace {
		r.Trace = w.trace
	}
	return r
}

// world is one run.
type world struct {
	opt   Options
	rng   *rand.Rand
	now   int64 // true time
	until int64
	queue []*event // a heap
	count int

	deal   deal
	rig    *rig
	renter *renter
	engine *engine
	bank   *bank
	net    *network
	watch  watch

	healed bool
	fault  string
	trace  []string
	stats  Stats
}

// event is something that happens at a time. Events of one time happen in the order in which they were planned.
type event struct {
	at, n int64
	do    func()
}

func newWorld(seed uint64, opt Options) *world {
	w := &world{opt: opt, rng: rand.New(rand.NewPCG(seed, 0x6861_6767_6c65))}
	w.deal = newDeal(w.rng, opt)
	w.net = newNetwork(w)
	w.bank = &bank{w: w, orders: map[string]*order{}}
	w.engine = &engine{w: w, jobs: map[uint32]*job{}}
	w.rig = newRig(w)
	w.renter = newRenter(w)
	w.watch = newWatch(w)
	return w
}

// begin plans the first events: both sides live, and the faults.
func (w *world) begin() {
	w.rig.boot()
	w.renter.boot()
	faulty := leastFaultyMs + w.rng.Int64N(mostFaultyMs-leastFaultyMs)
	if w.opt.Cheat != "" {
		faulty = cheatedMs
	}
	if !w.opt.Calm {
		w.plan(faulty)
	}
	w.until = faulty + healMs
	w.after(faulty, func() { w.heal() })
}

// heal ends all faults: both sides live, the network and the payment program work, and the renter's user has had enough.
func (w *world) heal() {
	w.note("", "all faults end")
	w.healed = true
	w.net.heal()
	w.rig.heal()
	w.renter.heal()
	w.renter.enough()
}

// after plans an event.
func (w *world) after(ms int64, do func()) {
	w.count++
	w.push(&event{at: w.now + max(0, ms), n: int64(w.count), do: do})
}

// next lets the next event happen, and looks at all promises after it.
func (w *world) next() {
	e := w.pop()
	w.watch.pass(e.at - w.now)
	w.now = e.at
	w.stats.Events++
	w.guard(e.do)
	if w.fault == "" {
		w.check()
	}
}

// crash is thrown where a side dies in the middle of what it does.
type crash struct{ die func() }

// guard runs what one side does. A side that dies inside leaves it where it stands.
func (w *world) guard(do func()) {
	defer func() {
		if r := recover(); r != nil {
			c, ok := r.(crash)
			if !ok {
				panic(r)
			}
			c.die()
		}
	}()
	do()
}

// broken notes the first promise that is broken.
func (w *world) broken(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, args...)
		w.note("", "BROKEN: "+w.fault)
	}
}

// note adds a line to the trace.
func (w *world) note(who, what string) {
	if len(w.trace) >= traceLines {
		w.trace = slices.Delete(w.trace, 0, traceLines/4)
	}
	w.trace = append(w.trace, fmt.Sprintf("%9.3f %-6s %s", float64(w.now)/1000, who, what))
}

// chance draws whether something happens that does so n times in a thousand. Nothing does where all is well.
func (w *world) chance(n int) bool {
	return !w.healed && !w.opt.Calm && w.rng.IntN(1000) < n
}

// between draws a time.
func (w *world) between(least, most int64) int64 { return least + w.rng.Int64N(most-least+1) }

func (a *event) before(b *event) bool { return a.at < b.at || a.at == b.at && a.n < b.n }

func (w *world) push(e *event) {
	q := append(w.queue, e)
	for i := len(q) - 1; i > 0; {
		up := (i - 1) / 2
		if q[up].before(q[i]) {
			break
		}
		q[up], q[i] = q[i], q[up]
		i = up
	}
	w.queue = q
}

func (w *world) pop() *event {
	q := w.queue
	first := q[0]
	last := len(q) - 1
	q[0], q[last] = q[last], nil
	q = q[:last]
	for i := 0; ; {
		least := i
		for _, down := range []int{2*i + 1, 2*i + 2} {
			if down < len(q) && q[down].before(q[least]) {
				least = down
			}
		}
		if least == i {
			break
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
	w.queue = q
	return first
}
