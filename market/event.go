package market

import "fmt"

// Event is something that happened to a lease. Step takes them one at a time, in the order in which the shell saw them.
type Event interface{ event() string }

// Events of a lease.
type (
	// Signed says that the renter's signature under the terms was verified and stored.
	Signed struct{}
	// Prepared says that the container exists and only has to be started.
	Prepared struct{}
	// Failed says that preparing or starting did not work. Code says why in a way that the renter understands; it may be empty.
	Failed struct {
		Reason Reason
		Code   Code
	}
	// Started says that the engine has seen the job run.
	Started struct{}
	// Exited says that the job is over. RanMs is the engine's own figure of its running time, 0 where it has none: it can
	// only lower the bill. In and Out are the cumulative traffic in bytes, 0 where it is unknown. All three are of this attempt.
	Exited struct {
		Code     int64
		OOM      bool
		DiskFull bool
		Lost     bool // the engine knows nothing of the job
		RanMs    int64
		In, Out  int64
	}
	// Tick says that time has passed, with the cumulative traffic of this attempt and evidence about the slots. Shells send one a
	// second. Read says that the use of every leased card was read anew: without it nobody knows whether the cards are idle.
	Tick struct {
		In, Out int64
		Slots   []SlotUse
		Read    bool
	}
	// Unseen says that since the last event nobody could see whether the job runs, and that it is seen again now.
	Unseen struct{}
	// Contact says that the renter's agent has connected, or has gone. Seq and Paid are the newest receipt that both signed and the
	// newest payment, as its hello says. Deputy says that it is only a deputy, which may lack what the renter has.
	Contact struct {
		Away      bool
		Seq, Paid uint32
		Deputy    bool
	}
	// Agreed says that a receipt with both signatures has come back. The shell has verified both.
	Agreed struct {
		Receipt Receipt
		Hash    Hash
	}
	// Rejected says that the renter signed its refusal of the draft.
	Rejected struct{}
	// Stop says that somebody wants the job ended. Kill leaves it no notice. Keep is the renter's wish to keep the disk at its
	// price: the lease is paused and can be resumed. A Stop of a paused lease ends it.
	Stop struct {
		Reason Reason
		Kill   bool
		Keep   bool
	}
	// Begin says that all that the renter sends before the start has arrived.
	Begin struct{}
	// Resume says that a paused lease starts again. The shell has checked that the lease's own cards are free.
	Resume struct{}
	// Extend says that both have signed an extension. The shell has verified both signatures.
	Extend struct{ Extension Extension }
	// Restarted says that this is the first event in a new process: the monotonic clock has another origin. DownMs is the time since
	// the last reading of the old one, by the clock that runs on while no program does; below 0 counts as nothing.
	Restarted struct{ DownMs int64 }
	// Paid says that money has arrived and that the rig has signed for it. The shell has stored the sealed payment.
	Paid struct{ Payment Payment }
	// Scrubbed says that the memory of the lease's cards was overwritten, or why it was not.
	Scrubbed struct{ Cards []CardWipe }
	// Removed says that nothing of the job is left in the engine.
	Removed struct{}
)

func (Signed) event() string   { return "signed" }
func (Prepared) event() string { return "prepared" }
func (e Failed) event() string { return "failed " + string(e.Reason) }
func (Started) event() string  { return "started" }
func (e Exited) event() string { return fmt.Sprintf("exited %d", e.Code) }
func (Tick) event() string     { return "tick" }
func (e Contact) event() string {
	return map[bool]string{true: "renter gone", false: "renter here"}[e.Away]
}
func (e Agreed) event() string  { return fmt.Sprintf("agreed #%d", e.Receipt.Seq) }
func (Rejected) event() string  { return "rejected" }
func (e Stop) event() string    { return "stop " + string(e.Reason) }
func (Begin) event() string     { return "begin" }
func (Resume) event() string    { return "resume" }
func (e Extend) event() string  { return fmt.Sprintf("extension %d", e.Extension.Seq) }
func (Restarted) event() string { return "restarted" }
func (Unseen) event() string    { return "unseen" }
func (e Paid) event() string    { return fmt.Sprintf("payment %d", e.Payment.Seq) }
func (Scrubbed) event() string  { return "scrubbed" }
func (Removed) event() string   { return "removed" }

// Action is something that the shell must do after it has stored the new state. Every action may come again after a
// restart and must be harmless then.
type Action interface{ String() string }

// Actions of a lease.
type (
	// Prepare makes the container, without starting it.
	Prepare struct{}
	// Start starts it.
	Start struct{}
	// EndJob ends the job: SIGTERM, and SIGKILL after GraceMs; at once where GraceMs is 0.
	EndJob struct{ GraceMs int64 }
	// Propose seals the receipt, stores it with the state in one transaction, and sends it. It is the lease's Draft.
	Propose struct{ Receipt Receipt }
	// Scrub overwrites the memory of the lease's cards, which no job uses any more, and gives them back their own settings. Until
	// Scrubbed the lease holds its slots.
	Scrub struct{}
	// Remove wipes the job from the engine.
	Remove struct{}
	// AskPay asks the renter for the money of a slice. It comes again until the slice is paid; the same slice is always the same.
	AskPay struct{ Slice Slice }
	// Warn seals the notice, stores it with the state in one transaction, and sends it: the rig is about to end the job.
	Warn struct{ Notice Notice }
	// Attest seals the outcome, stores it with the state in one transaction, and sends it.
	Attest struct{ Outcome Outcome }
)

// String implements Action.
func (Prepare) String() string { return "prepare" }

// String implements Action.
func (Start) String() string { return "start" }

// String implements Action.
func (a EndJob) String() string { return fmt.Sprintf("end job, grace %s", span(a.GraceMs)) }

// String implements Action.
func (a Propose) String() string {
	return fmt.Sprintf("propose #%d %s billed %dms total %s", a.Receipt.Seq, a.Receipt.Kind, a.Receipt.BilledMs, a.Receipt.Bill.Total)
}

// String implements Action.
func (Scrub) String() string { return "scrub" }

// String implements Action.
func (Remove) String() string { return "remove" }

// String implements Action.
func (a AskPay) String() string {
	return fmt.Sprintf("ask for slice %d of %s for %s", a.Slice.Seq, a.Slice.Amount, span(a.Slice.ForMs))
}

// String implements Action.
func (a Warn) String() string { return fmt.Sprintf("warn #%d %s", a.Notice.Seq, a.Notice.Reason) }

// String implements Action.
func (a Attest) String() string { return "attest " + a.Outcome.String() }
