package renter

import (
	"sync"
	"sync/atomic"

	"haggle/internal/view"
	"haggle/market"
)

// vanishedMs is how long after a lease's deadline, without a word, its rig is taken for gone.
const vanishedMs = int64(10 * 60 * 1000)

// lease is an open lease or bid in memory: its record, and what is known only while this program runs.
type lease struct {
	bid  market.Hash // names it; never changes
	kick chan struct{}
	sick atomic.Bool // the rig's last word could not be taken, and that was logged

	mu          sync.Mutex
	record      Record
	connected   bool
	connections int // so far
	failures    int // attempts to connect that failed since this program began
	wish        *market.StopMessage
	again       int              // the order to start the job again, by its number; 0 where there is none
	after       uint32           // the attempt that it was given after
	asked       int              // orders so far
	refusals    map[string]error // the rig's last no to an order, by what was ordered
	secrets     []market.Secret  // kept here alone
	urged       int              // how often the user asked to pay again what failed
	refused     *Paying          // what the rig asks for and this side does not pay: it is more than the rules ask
	speaks      []string         // what the rig said that it speaks
	instance    market.Nonce     // of the rig's store, as it said last
	uploading   *view.Progress   // of what is sent now before the start
	changes     chan struct{}    // closed and replaced at every change

	taking  sync.Mutex // held while a checkpoint is taken
	writing sync.Mutex // held from reading the record until its change is stored; nothing waits for the network under it
}

func newLease(r Record) *lease {
	return &lease{
		bid: r.Bid, record: r, kick: make(chan struct{}, 1), changes: make(chan struct{}), refusals: map[string]error{},
	}
}

// get returns the record, which nobody writes into, and whether the rig is connected.
func (l *lease) get() (Record, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record, l.connected
}

// set replaces the record, but for its inside, which others change.
func (l *lease) set(r Record) {
	l.change(func() {
		r.Inside = l.record.Inside
		l.record = r
	})
}

// change runs f under the lock and wakes everyone who waits for a change.
func (l *lease) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changes)
	l.changes = make(chan struct{})
}

// watch returns a channel that is closed at the next change. Get it before you look at what may change.
func (l *lease) watch() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changes
}

// attempts returns the number of failed attempts to connect.
func (l *lease) attempts() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures
}

// progress returns how far what is sent before the start is; nil while nothing is.
func (l *lease) progress() *view.Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.uploading
}

// hurry makes a link that waits connect now.
func (l *lease) hurry() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// rank orders the states of a job, so that a rig's word can only move it on.
func rank(s market.JobState) int {
	for i, known := range []market.JobState{
		market.JobGranted, market.JobPreparing, market.JobStarting, market.JobRunning, market.JobStopping, market.JobPaused,
		market.JobEnded,
	} {
		if s == known {
			return i + 1
		}
	}
	return 0
}

// void reports whether nothing is owed because the rig never got both signatures in time, or never granted.
func (s State) void() bool { return s.Refused != nil }

// over reports whether nothing is left to do.
func (s State) over() bool {
	return s.void() || s.Released || s.Job == market.JobEnded && (s.Disputed || s.Acked) && !s.busy()
}

// busy reports whether something is on its way for which a lease that is over stays up.
func (s State) busy() bool { return s.pays() || s.Untold }

// pays reports whether money is on its way that the rig has not signed for, or will be.
func (s State) pays() bool {
	if s.Paying == nil {
		return false
	}
	switch s.Paying.State {
	case payWished, payAsked, payPending, payWaiting, paySent:
		return true
	}
	return false
}

// over reports whether nothing is left to do, be it for the lease or for what comes home from it.
func (r Record) over() bool {
	return r.State.over() && (r.State.void() || r.State.Released || !r.Inside.owes(r.State.Attempt))
}

// terms returns the terms as they stand now, with the newest extension.
func (r Record) terms() market.Terms {
	return r.Terms.Extended(r.State.Extension)
}

// debt returns where the lease's debt stands, as far as the agent knows.
func (r Record) debt() market.DebtState {
	switch {
	case r.State.Disputed:
		return market.DebtDisputed
	case r.State.void(), r.Head.Kind == market.ReceiptFinal:
		return market.DebtFinal
	}
	return market.DebtOpen
}

// vanished reports whether the rig has said nothing since well after the lease's end. It is a guess for people: the rig's
// next word wins.
func (r Record) vanished(now int64) bool {
	if r.Lease.IsZero() || r.State.over() {
		return false
	}
	end := r.terms().Deadline + r.State.KeptMs
	if r.State.Job == market.JobPaused {
		end = r.State.Since + market.KeepMostMs
	}
	return now > end+vanishedMs && now > r.State.Seen+vanishedMs
}
