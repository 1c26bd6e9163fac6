package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"haggle/internal/view"
	"haggle/market"
	"haggle/runtime"
)

// Times of a lease's goroutine.
const (
	statusEveryMs = int64(5000)   // between statuses of a running job
	saveEveryMs   = int64(5000)   // between saves of a meter that nothing else saves; a crash bills so much less
	pausedEveryMs = int64(60_000) // between saves and statuses of a lease of which only the disk is kept
	endedTick     = time.Minute   // between ticks once only the disk's retention runs
	leaseInbox    = 16            // calls that wait for a lease
	lookEvery     = int64(15)     // ticks between looks at a running job, should a hint be lost
	usageEvery    = int64(5)      // ticks between readings of what a running job uses
	stopSaving    = 5 * time.Second
)

// lease is one lease and the goroutine that owns it: every field below the line belongs to run. Others read snapshot and
// use call.
type lease struct {
	d      *Daemon
	id     market.LeaseID
	base   string                 // its first id in the engine: see jobName
	wants  market.Job             // what runs
	calls  chan call              // from conversations and owners
	hints  chan struct{}          // the engine says that the job has ended
	fault  chan struct{}          // a card of the lease has failed
	done   chan struct{}          // closed when run has returned
	seen   atomic.Pointer[glance] // what others see
	sick   atomic.Bool            // the last save failed, and was logged
	full   atomic.Bool            // the job's disk has been full
	paths  *paths                 // that the renter has open into it
	sent   atomic.Int64           // bytes that the renter has sent towards the job's image and disk
	intake intake                 // of the archive of its image

	// ----
	record  Record // Lease in it is not kept up to date: see state
	state   market.Lease
	draft   []byte // the sealed form of state.Draft, once made
	notice  []byte // the newest sealed notice
	renter  *link  // nil while the renter is away
	deputy  *link  // nil while no deputy is here
	worker  worker
	gauges  []*gauge
	late    []market.Event       // what the engine did and the store has not taken yet
	saved   int64                // monotonic ms of the last save
	failing [taskRemove + 1]bool // kinds of calls into the engine of which the last failed, and was logged
	ticks   int64
	fell    int64 // monotonic ms since which nothing can be stored, while sick
	gaveUp  bool  // the job was ended for it
	slow    bool  // the wipe of the cards takes so long that the offer says so
	ticker  *time.Ticker

	joined   int64         // the engine's epoch in which the pending actions were ordered
	observed int64         // the engine's epoch in which the job was last seen to run
	usage    runtime.Usage // what the engine said last

	till    till            // the money that is waited for
	settled map[uint32]bool // numbers of the slices for which payments were signed
	moved   market.Micro    // of the payments: what came from the owner's balance
	signer  string          // of the newest receipt: deputy where it was one
	verdict *market.Micro   // what the guarantor holds right, once it has said so

	secrets  map[string][]byte // what the job finds in memory; nil where there are none, or they are lost
	idle     idleness
	patience int64 // monotonic ms until which lost secrets are waited for; 0 before that begins
}

// glance is the published copy of a lease.
type glance struct {
	lease  market.Lease
	linked bool           // the renter or a deputy is here
	disk   int64          // bytes that were last seen on the job's disk
	money  money          // of the lease, as accounts count it
	asked  *view.PayAsked // a slice that is waited for
	signer string         // deputy where the newest receipt that both signed was signed by one
	turned chan struct{}  // closed when the job comes into another state, is paid for, is made, or is removed
}

type call struct {
	do    func(ctx context.Context) error
	reply chan error
}

func newLease(d *Daemon, r Record) *lease {
	l := &lease{
		d: d, id: r.Lease.ID, base: jobBase(r.Lease.ID), wants: r.Job, record: r, state: r.Lease, paths: newPaths(),
		calls: make(chan call, leaseInbox), hints: make(chan struct{}, 1), fault: make(chan struct{}, 1), done: make(chan struct{}),
		worker: worker{results: make(chan result, 1)}, till: till{results: make(chan tilled, 1)}, settled: map[uint32]bool{},
	}
	for _, s := range r.Lease.Terms.Slots {
		l.gauges = append(l.gauges, newGauge(s, r.Lease.Meter.Slots))
	}
	l.publish()
	return l
}

// run lives until the lease is over or ctx ends. In the second case it saves what it billed, and nothing else happens:
// the job goes on.
func (l *lease) run(ctx context.Context) {
	defer l.d.forget(l)
	defer l.worker.wait()
	defer l.till.wait()
	defer l.paths.close()
	l.ticker = time.NewTicker(l.pace())
	defer l.ticker.Stop()
	if l.state.Job == market.JobRunning {
		l.load(true)
	}
	l.join(ctx)
	for !l.d.over(l.state) {
		select {
		case <-ctx.Done():
			l.sleep(ctx)
			return
		case c := <-l.calls:
			c.reply <- c.do(ctx)
		case r := <-l.worker.results:
			l.finished(ctx, r)
		case r := <-l.till.results:
			l.answered(ctx, r)
		case <-l.hints:
			if l.state.Job != market.JobEnded && l.state.Job != market.JobPaused {
				l.order(ctx, task{kind: taskLook})
			}
		case <-l.fault:
			l.happened(ctx, market.Stop{Reason: market.ReasonFault})
		case <-l.ticker.C:
			l.tick(ctx)
		}
	}
}

// call runs a function on the lease's goroutine and returns its error, or errClosed if the lease is gone.
func (l *lease) call(do func(ctx context.Context) error) error {
	c := call{do: do, reply: make(chan error, 1)}
	select {
	case l.calls <- c:
	case <-l.done:
		return errClosed
	}
	select {
	case err := <-c.reply:
		return err
	case <-l.done:
		select {
		case err := <-c.reply: // it was the last thing that the lease did
			return err
		default:
			return errClosed
		}
	}
}

// hint says that the engine has news of the job. It never waits.
func (l *lease) hint() { poke(l.hints) }

// fail says that a card of the lease cannot go on. It never waits.
func (l *lease) fail() { poke(l.fault) }

// poke leaves a note for a goroutine, unless one lies there already.
func poke(notes chan<- struct{}) {
	select {
	case notes <- struct{}{}:
	default:
	}
}

func (l *lease) snapshot() market.Lease { return l.seen.Load().lease }

func (l *lease) publish() {
	next := &glance{
		lease: l.state, linked: len(l.links()) > 0, disk: counted(l.usage.DiskBytes), turned: make(chan struct{}),
		money: l.money(), asked: l.asking(), signer: l.signer,
	}
	before := l.seen.Load()
	if before != nil && before.lease.Job == next.lease.Job && before.lease.Ready == next.lease.Ready && before.lease.Gone == next.lease.Gone &&
		before.lease.Funded() == next.lease.Funded() {
		next.turned = before.turned
	}
	l.seen.Store(next)
	if before != nil && before.turned != next.turned {
		close(before.turned)
	}
}

// worker is the one call into the engine that a lease has in flight, and those that wait.
type worker struct {
	queue   []task
	busy    *task
	cancel  context.CancelFunc
	dropped bool // the call in flight was interrupted: its result means nothing
	results chan result
	running sync.WaitGroup
}

func (w *worker) wait() { w.running.Wait() }

// interrupt ends the call in flight.
func (w *worker) interrupt() {
	if w.busy != nil {
		w.dropped = true
		w.cancel()
	}
}
