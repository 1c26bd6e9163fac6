package market

// Tolerances of a measure. Milliseconds.
const (
	// lateWordMs is how long a rig's word may have been on its way when the network stalls; a connection that hears nothing for longer
	// is dead. The start of a job is believed to be so much earlier than the word before it came, but never before the renter's own
	// signature.
	lateWordMs = int64(30_000)
	// missedProbes is the number of probes in a row without an answer that shows that a job does not run.
	missedProbes = 2
)

// Measure is what a renter saw itself of a job's running time: the longest time for which it can have run. It is a value;
// each method returns a new one, and the zero value has measured nothing. Times are milliseconds. In every Instant that a measure
// is given, Mono is the machine's boot clock, which goes on while the machine sleeps.
type Measure struct {
	Boot     Nonce `cbor:"1,keyasint"`           // of the machine, when it was last stored: its clocks mean nothing after another boot
	SinceMs  int64 `cbor:"2,keyasint"`           // the longest time since the job's first start
	RestedMs int64 `cbor:"3,keyasint"`           // of that: it was seen not to run
	At       int64 `cbor:"4,keyasint"`           // the boot clock's reading to which SinceMs counts
	Wall     int64 `cbor:"5,keyasint"`           // the wall clock's
	Began    bool  `cbor:"6,keyasint"`           // the start was seen
	GapMs    int64 `cbor:"7,keyasint,omitempty"` // of SinceMs: time that no clock of this side measured

	Heard  bool  `cbor:"8,keyasint,omitempty"`  // there was a word of the rig on this connection
	Word   int64 `cbor:"9,keyasint,omitempty"`  // SinceMs at that word
	Rests  bool  `cbor:"10,keyasint,omitempty"` // it said that the job is paused
	Missed int   `cbor:"11,keyasint,omitempty"` // probes in a row that had no answer
	MissAt int64 `cbor:"12,keyasint,omitempty"` // SinceMs when the last of them was sent
	Back   bool  `cbor:"13,keyasint,omitempty"` // it comes from a store that was put back: see PutBack
}

// Seen is what a renter can believe at a moment: the longest times that its own measure allows, or Unlimited.
type Seen struct {
	RanMs   int64 // the job ran
	SinceMs int64 // it began to run, for the first time: what it did not run of that, its disk may have been kept
}

// IsZero reports whether nothing was measured.
func (m Measure) IsZero() bool { return m == Measure{} }

// Begin starts a measure with the renter's signature under the terms: the job cannot have run before. boot names the machine's
// boot; the zero Nonce says that there is no clock that goes on while the machine sleeps: then the larger of both clocks counts.
func (m Measure) Begin(boot Nonce, now Instant) Measure {
	return Measure{Boot: boot, At: now.Mono, Wall: now.Wall}
}

// PutBack marks a measure of a store that is put back in place of a lost one: the renter may have been there all the time since.
func (m Measure) PutBack() Measure {
	m.Back = !m.IsZero()
	return m
}

// Wake goes on with a measure that was stored in another life of this program. After another boot only the wall clock says how
// much time has passed, give or take what clocks may differ by, and it may have been set meanwhile: the job is believed to have run
// for as long as the terms let it run while the renter is away, and no longer.
func (m Measure) Wake(boot Nonce, now Instant, t Terms, head Head) Measure {
	if m.IsZero() {
		return m
	}
	back := m.Back
	m.Back = false
	if m.Boot == boot && boot != (Nonce{}) && now.Mono >= m.At {
		return m.pass(now).Lost().Signed(head, t, now)
	}
	least := t.IntervalMs + t.GraceMs
	gap, most := max(now.Wall-m.Wall+MaxClockSkew.Milliseconds(), least), Unlimited
	if t.Limits.UnattendedMs != Unlimited && len(t.Deputies) == 0 && !back { // a deputy attends while the renter is away
		most = t.Limits.UnattendedMs + least
	}
	switch {
	case now.Wall >= m.Wall:
	case most == Unlimited:
		gap = maxLeaseTime.Milliseconds() // the clock was set back: by how much, nobody knows
	default:
		gap = most
	}
	m.SinceMs, m.GapMs = m.SinceMs+gap, m.GapMs+gap
	if most != Unlimited {
		m.RestedMs += max(0, gap-most)
	}
	m.Boot, m.At, m.Wall = boot, now.Mono, now.Wall
	return m.Lost().Signed(head, t, now)
}

// Hear takes the rig's word on a job, and reports whether it was the first word of its start. The job did not run at the word
// before it on the same connection: that is the time from which it counts, for this word itself may have come late.
func (m Measure) Hear(word StatusMessage, now Instant) (Measure, bool) {
	if m.IsZero() {
		return m, false
	}
	job := word.State
	m.Began = m.Began || job == JobPaused || word.Attempt > 0 // a start was missed
	m = m.pass(now)
	switch {
	case m.Heard && m.Rests && job == JobPaused:
		m.RestedMs += m.SinceMs - m.Word // between two words of a pause nothing ran
	case m.Rests && job != JobEnded:
		m.RestedMs = max(0, m.RestedMs-lateWordMs) // the last of them may have come after the new start
	}
	started := job == JobRunning && !m.Began && m.Heard
	if started {
		m.SinceMs -= max(0, m.Word-lateWordMs)
		m.RestedMs, m.GapMs = 0, min(m.GapMs, m.SinceMs)
	}
	if job != JobRunning {
		m.Missed = 0
	}
	m.Began = m.Began || job == JobRunning
	m.Heard, m.Rests, m.Word = true, job == JobPaused, m.SinceMs
	return m, started
}

// Lost notes that the connection to the rig has ended: what was not seen on one connection was not seen.
func (m Measure) Lost() Measure {
	m.Heard, m.Missed = false, 0
	return m
}

// Probe takes the end of a probe into a running job that was sent at a moment: an answer, or none in time. One without an answer
// counts only where a word of the rig has come since: else it is the network that is silent. Between the first and the last of a
// row of them the job did not run, if there are at least two, but for what one reading of the rig's clock may bill. Probes are
// sent one after the other, and each has as long for its answer as a connection may be silent.
func (m Measure) Probe(answered bool, sent Instant) Measure {
	switch {
	case m.IsZero():
		return m
	case answered:
		m.Missed = 0
		return m
	}
	at := m.SinceMs - max(0, m.At-sent.Mono)
	if !m.Heard || m.Word <= at {
		m.Missed = 0
		return m
	}
	switch m.Missed++; m.Missed {
	case 1:
		m.MissAt = at
	case missedProbes:
		m.RestedMs += max(0, at-m.MissAt-MaxTickMs)
		m.MissAt = max(at, m.MissAt)
	default:
		m.RestedMs += max(0, at-m.MissAt)
		m.MissAt = max(at, m.MissAt)
	}
	return m
}

// Signed takes in a receipt that this side has signed: if it is for more time than was measured, the measure was lost, as when an
// older store was put back, and the receipt may be as old as the next one can be late. The tolerance of a receipt's check is no
// such thing.
func (m Measure) Signed(head Head, t Terms, now Instant) Measure {
	if m.IsZero() {
		return m
	}
	m = m.pass(now)
	old := t.IntervalMs + t.GraceMs
	if ran := m.ran(); ran+slackFor(ran)+timeSlackMs < head.BilledMs {
		more := head.BilledMs - ran + old
		m.SinceMs, m.GapMs = m.SinceMs+more, m.GapMs+more
	}
	if all := head.BilledMs + head.KeptMs; m.SinceMs+slackFor(m.SinceMs)+timeSlackMs < all {
		more := all - m.SinceMs + old
		m.SinceMs, m.RestedMs, m.GapMs = m.SinceMs+more, m.RestedMs+more, m.GapMs+more
	}
	return m
}

// Seen returns what can be believed at a moment. A measure that measured nothing believes all: nobody watched.
func (m Measure) Seen(now Instant) Seen {
	if m.IsZero() {
		return Seen{RanMs: Unlimited, SinceMs: Unlimited}
	}
	m = m.pass(now)
	return Seen{RanMs: m.ran(), SinceMs: m.SinceMs}
}

func (m Measure) ran() int64 { return max(0, m.SinceMs-m.RestedMs) }

// pass counts the time to a moment. Moments come out of order where a probe's end is told late: the past adds nothing.
func (m Measure) pass(now Instant) Measure {
	passed := now.Mono - m.At
	if m.Boot == (Nonce{}) {
		passed = max(passed, now.Wall-m.Wall)
	}
	if passed <= 0 {
		return m
	}
	m.SinceMs += passed
	m.At, m.Wall = now.Mono, now.Wall
	return m
}

// slackFor is the tolerance of a renter's own count of a time.
func slackFor(ms int64) int64 { return ms*timeSlackPerMil/1000 + timeSlackMs }
