package renter

import (
	"sync"
	"sync/atomic"
	"time"

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

	mu        sync.Mutex
	record    Record
	connected bool
	failures  int // attempts to connect that failed since this program began
	wish      *market.StopMessage
	again     int              // the order to start the job again, by its number; 0 where there is none
	after     uint32           // the attempt that it was given after
	asked     int              // orders so far
	refusals  map[string]error // the rig's last no to an order, by what was ordered
	secrets   []market.Secret  // kept here alone
	uploading *view.Progress   // of what is sent now before the start
	changes   chan struct{}    // closed and replaced at every change

	taking sync.Mutex // held while a checkpoint is taken
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
	return s.void() || s.Job == market.JobEnded && (s.Disputed || s.Acked)
}

// over reports whether nothing is left to do, be it for the lease or for what comes home from it.
func (r Record) over() bool {
	return r.State.over() && (r.State.void() || !r.Inside.owes(r.State.Attempt))
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

// wallSlackMs is the tolerance of market.CheckReceipt, which a head that was signed can be ahead by.
const wallSlackMs = int64(2000)

// watcher counts the time that a job can have run, for the check of receipts.
type watcher struct {
	base  time.Time // the job cannot have run before
	wall  bool      // base comes from a store: it has no monotonic reading, and the wall clock may have been set since
	word  time.Time // the rig's last word on this connection, zero before the first
	begun bool      // the start was seen
	rests bool      // that word said that the job is paused

	rested time.Duration // of the time since base: it was seen not to run
}

// newWatcher makes a watcher from a record of another life of this program.
func newWatcher(s State) watcher {
	at := s.SignedAt
	if s.RunningAt > 0 {
		at = s.RunningAt
	}
	return watcher{base: time.UnixMilli(at), wall: true, begun: s.RunningAt > 0}
}

// hear takes the rig's word that a job is in a state, and reports whether it was the first word of its start. The job
// did not run at the word before it: that is the time from which it counts, for this word itself may have come late.
func (w *watcher) hear(job market.JobState, now time.Time) bool {
	running := job == market.JobRunning
	if job == market.JobPaused && w.rests && !w.word.IsZero() {
		w.rested += now.Sub(w.word) // between two words of a pause nothing ran
	}
	w.rests = job == market.JobPaused
	started := running && !w.begun && !w.word.IsZero()
	if started && w.word.After(w.base) {
		w.base, w.wall = w.word, false
	}
	w.begun = w.begun || running
	w.word = now
	return started
}

// elapsed returns the longest time for which the job can have run, or Unlimited where the clock does not know. A machine
// that slept has a monotonic clock that slept too, while the rig worked on: the larger of both clocks counts.
func (w *watcher) elapsed(now time.Time, agreedMs int64) int64 {
	ms := w.since(now, agreedMs)
	if ms == market.Unlimited {
		return ms
	}
	return max(0, ms-w.rested.Milliseconds())
}

// since returns the longest time since the job's first start, be it running or paused, or Unlimited.
func (w *watcher) since(now time.Time, agreedMs int64) int64 {
	ms := max(now.Sub(w.base), now.Round(0).Sub(w.base.Round(0))).Milliseconds()
	if w.wall && ms+ms/1000+2*wallSlackMs < agreedMs {
		return market.Unlimited // less time has passed than we have signed for: the wall clock was set back
	}
	return max(0, ms)
}
