package market

// JobState is where a lease's job stands.
type JobState string

// States of a job, in order. Each has a deadline in the terms, and every way out has a named reason.
//
//	granted → preparing → starting → running → stopping → ended
//	   │          │ ▲         │         │          │        ▲
//	   │          │ └─────────┼─────────┼──── paused ───────┤
//	   └──────────┴───────────┴─────────┴───────────────────┘
const (
	JobGranted   JobState = "granted"   // the rig signed and holds the slots; the renter has not signed yet
	JobPreparing JobState = "preparing" // both signed; the container is being made
	JobStarting  JobState = "starting"  // the order to start is out
	JobRunning   JobState = "running"   // billed
	JobStopping  JobState = "stopping"  // SIGTERM is out; no longer billed
	JobPaused    JobState = "paused"    // the disk is kept at its price; the slots are free
	JobEnded     JobState = "ended"     // the slots are free
)

// DebtState is where a lease's debt stands.
type DebtState string

// States of a debt.
const (
	DebtOpen     DebtState = "open"     // receipts are still due
	DebtFinal    DebtState = "final"    // both signed the final receipt, or nothing was ever owed
	DebtDisputed DebtState = "disputed" // the renter refused a receipt
)

// Reason names why a job ended or stops.
type Reason string

// Reasons.
const (
	ReasonCompleted   Reason = "completed"    // the job's own end
	ReasonRenter      Reason = "renter"       // the renter's order
	ReasonBudget      Reason = "budget"       // the next second would cost more than the budget
	ReasonExpired     Reason = "expired"      // the leased time is over
	ReasonDeadline    Reason = "deadline"     // the window is over, though not all of the time was used
	ReasonUnsigned    Reason = "unsigned"     // the renter answers and does not sign
	ReasonUnattended  Reason = "unattended"   // the renter's agent was away for longer than it allowed
	ReasonDisputed    Reason = "disputed"     // the renter refused a receipt
	ReasonHoldExpired Reason = "hold_expired" // the renter did not sign the grant in time
	ReasonPrepare     Reason = "prepare"      // the job could not be made ready
	ReasonStart       Reason = "start"        // the job could not be started
	ReasonLost        Reason = "lost"         // the job vanished from the engine
	ReasonOOM         Reason = "oom"          // the kernel killed the job for memory
	ReasonDiskFull    Reason = "disk_full"    // the job failed with its disk full
	ReasonCredit      Reason = "credit"       // the renter's owner owes the rig as much as it may
	ReasonTakeback    Reason = "takeback"     // the rig's owner takes a card back
	ReasonFault       Reason = "fault"        // a card failed
	ReasonRig         Reason = "rig"          // the rig's owner ended it
	ReasonUnpaid      Reason = "unpaid"       // what was paid ahead is used up, and no more came
	ReasonIdle        Reason = "idle"         // its cards did nothing for as long as the renter allowed
)

// Instant is a moment as a shell sees it: a monotonic reading, for money, and the wall clock, for windows. Milliseconds.
type Instant struct {
	Mono int64 // since the process began
	Wall int64 // Unix
}

// Lease is a lease's state on the rig. It is a value: Step returns a new one, and whoever holds one may keep it.
type Lease struct {
	ID     LeaseID   `cbor:"1,keyasint"`
	Terms  Terms     `cbor:"2,keyasint"`
	Job    JobState  `cbor:"3,keyasint"`
	Debt   DebtState `cbor:"4,keyasint"`
	Since  int64     `cbor:"5,keyasint"`           // wall time at which the job came into its state
	Reason Reason    `cbor:"6,keyasint,omitempty"` // why it stops or ended
	Exit   *Exit     `cbor:"7,keyasint,omitempty"` // once ended
	Meter  Meter     `cbor:"8,keyasint"`
	Head   Head      `cbor:"9,keyasint"`            // the newest receipt that both signed
	Draft  *Receipt  `cbor:"10,keyasint,omitempty"` // the receipt that waits for the renter's signature; it never changes
	Away   bool      `cbor:"11,keyasint"`           // the renter's agent is not connected
	AwayMs int64     `cbor:"12,keyasint"`           // billed, unsigned time while it was away: coming back does not clear it, signing does
	Gone   bool      `cbor:"13,keyasint"`           // nothing of the job is left in the engine
	Early  bool      `cbor:"14,keyasint"`           // the container is made while the grant is on its way
	Ready  bool      `cbor:"15,keyasint"`           // it is made already

	KillAt  int64      `cbor:"16,keyasint,omitempty"` // while stopping: the wall time of SIGKILL
	Code    Code       `cbor:"17,keyasint,omitempty"` // why the job could not be made or started
	Touched bool       `cbor:"18,keyasint,omitempty"` // the order to start was given: the job may have used its cards
	Wiping  bool       `cbor:"19,keyasint,omitempty"` // the job has ended, and the memory of its cards is not overwritten yet
	Cards   []CardWipe `cbor:"20,keyasint,omitempty"` // what became of that memory
	WipedAt int64      `cbor:"21,keyasint,omitempty"` // wall time of Scrubbed
	GoneAt  int64      `cbor:"22,keyasint,omitempty"` // wall time of Removed

	Begun     bool       `cbor:"23,keyasint,omitempty"` // all that the renter sends before the start has arrived
	Keeping   bool       `cbor:"24,keyasint,omitempty"` // while stopping: the disk is kept, and the lease is paused after it
	Attempt   uint32     `cbor:"25,keyasint,omitempty"` // starts of a paused lease, never falls; 0 is the first job
	PausedMs  int64      `cbor:"26,keyasint,omitempty"` // by which pauses have moved the deadline
	Base      Base       `cbor:"27,keyasint"`           // the meter as this attempt began
	Extension *Extension `cbor:"28,keyasint,omitempty"` // the newest that both signed
	Discard   bool       `cbor:"29,keyasint,omitempty"` // the kept disk is given up: it is removed without retention
	Disk      uint32     `cbor:"30,keyasint,omitempty"` // the attempt whose job has the disk: the newest that was made

	Paid    Micro      `cbor:"31,keyasint,omitempty"` // total of the payments that the rig has signed
	PaidSeq uint32     `cbor:"32,keyasint,omitempty"` // number of the newest of them
	Slices  uint32     `cbor:"33,keyasint,omitempty"` // asked for so far
	Slice   *Slice     `cbor:"34,keyasint,omitempty"` // that is asked for and not paid; it never changes
	DryMs   int64      `cbor:"35,keyasint,omitempty"` // how long the job has run with what was paid used up, since a slice was last paid in full
	IdleMs  int64      `cbor:"36,keyasint,omitempty"` // how long its cards have done nothing, to the last reading of their use
	IdleAt  int64      `cbor:"37,keyasint,omitempty"` // running time, billed or not, at that reading
	Gaps    []Unbilled `cbor:"38,keyasint,omitempty"` // time that is not billed, by reason, ascending
	Need    Micro      `cbor:"39,keyasint,omitempty"` // the total of payments at which Slice is paid
	// Unsure says that the rig's store was put back: nothing new is signed before the renter's head is known. Wait and WaitPaid are
	// the newest receipt and payment that the renter has then: they come first.
	Unsure   bool   `cbor:"41,keyasint,omitempty"`
	Wait     uint32 `cbor:"42,keyasint,omitempty"`
	WaitPaid uint32 `cbor:"43,keyasint,omitempty"`
}

// Unbilled is time that is not billed, and why. Milliseconds, cumulative.
type Unbilled struct {
	Reason UnbilledReason `cbor:"1,keyasint" json:"reason"`
	Ms     int64          `cbor:"2,keyasint" json:"ms"`
}

// UnbilledReason says why time is not billed.
type UnbilledReason string

// Reasons of unbilled time.
const (
	UnbilledPull    UnbilledReason = "pull"    // the job is made ready
	UnbilledStart   UnbilledReason = "start"   // it starts
	UnbilledNotice  UnbilledReason = "notice"  // it was told to end
	UnbilledPause   UnbilledReason = "pause"   // only its disk is kept
	UnbilledFault   UnbilledReason = "fault"   // nobody could see that it ran
	UnbilledDown    UnbilledReason = "down"    // the rig's program did not run
	UnbilledStalled UnbilledReason = "stalled" // the rig's clock jumped: more than a tick passed in one reading
	UnbilledUnpaid  UnbilledReason = "unpaid"  // what was paid, or the budget, did not cover it
)

// Base is what the meter said when an attempt began: an engine counts each attempt from nothing.
type Base struct {
	BilledMs int64 `cbor:"1,keyasint,omitempty"`
	In       int64 `cbor:"2,keyasint,omitempty"`
	Out      int64 `cbor:"3,keyasint,omitempty"`
}

// Meter counts a job's time. Only observed running time is billed.
type Meter struct {
	BilledMs   int64     `cbor:"1,keyasint"`
	UnbilledMs int64     `cbor:"2,keyasint"`
	In         int64     `cbor:"3,keyasint"`
	Out        int64     `cbor:"4,keyasint"`
	Slots      []SlotUse `cbor:"5,keyasint,omitempty"`
	LastMono   int64     `cbor:"6,keyasint"` // the last reading; means nothing in another process
	LastWall   int64     `cbor:"7,keyasint"`
	SeenIn     int64     `cbor:"8,keyasint"` // as the engine counts; In and Out are the part of it that is billed
	SeenOut    int64     `cbor:"9,keyasint"`
	KeptMs     int64     `cbor:"10,keyasint,omitempty"` // the disk was kept and no job ran
}

// MaxTickMs is the most time that one reading of the clock can add to a bill: twice the tick of one second. A stopped
// machine, a debugger or a long pause of the program cannot bill a lump.
const MaxTickMs = int64(2000)

// NewLease returns the state of a lease that the rig has just granted. Where the job needs nothing that comes only with the
// renter's signature, early lets the rig make the container meanwhile: it starts sooner, and a hold that runs out removes it.
func NewLease(id LeaseID, t Terms, now Instant, early bool) Lease {
	return Lease{
		ID: id, Terms: t, Job: JobGranted, Debt: DebtOpen, Since: now.Wall, Early: early,
		Meter: Meter{LastMono: now.Mono, LastWall: now.Wall},
	}
}

// Total returns what the lease costs so far, countersigned or not.
func (l Lease) Total() Micro {
	b, err := l.Terms.Prices.Bill(l.usage())
	if err != nil {
		return l.Head.Total
	}
	return b.Total
}

// Holds reports whether the lease keeps its slots from others.
func (l Lease) Holds() bool { return l.Job != JobEnded && l.Job != JobPaused || l.Wiping }

// Closed reports whether nothing is left to do for the lease.
func (l Lease) Closed() bool { return !l.Holds() && l.Gone && l.Debt != DebtOpen }

// Status returns what the rig tells the renter.
func (l Lease) Status() StatusMessage {
	m := StatusMessage{
		State: l.Job, Reason: l.Reason, Exit: l.Exit, BilledMs: l.Meter.BilledMs, Total: l.Total(), SinceMs: l.Since, Code: l.Code,
		In: l.Meter.In, Out: l.Meter.Out, Ready: l.Job == JobPreparing && l.Ready && l.Awaits(), Attempt: l.Attempt, KeptMs: l.Meter.KeptMs,
		Paid: l.Paid,
	}
	if l.Dry() {
		m.Dry = l.DryMs
	}
	if l.Job == JobStopping {
		m.KillAt = l.KillAt
	}
	return m
}

func (l Lease) usage() Usage {
	return l.Terms.UsedBy(l.Meter.BilledMs, l.Meter.KeptMs, l.Meter.In, l.Meter.Out)
}
