package renter

import (
	"context"

	"haggle/market"
)

// Record is everything that an agent keeps about one lease. A record is stored before its bid is sent: Terms and Sealed
// are empty until the rig has granted it.
type Record struct {
	Bid       market.Hash // names the record: a bid exists before its lease does
	Lease     market.LeaseID
	Terms     market.Terms
	Sealed    []byte // the terms, signed by both once the agent has
	Offer     []byte // the sealed offer
	SealedBid []byte
	Job       market.Job
	Env       market.Env // deleted when the lease has ended
	RigName   string
	Model     string
	Image     string // the image's name, for people
	State     State
	Head      market.Head // the newest receipt that both signed
	Outcome   []byte      // what the rig signed of what became of what the job left behind; nil before it has
	// Inside is what is done inside the lease. Save keeps it with a record that is new, and SaveInside changes it.
	Inside Inside
	// Cards is what the rig said last of the leased cards. It is not stored: nobody asks for it after a restart.
	Cards []market.CardUse
}

// State is what the agent knows of a lease, most of it from the rig's unsigned word.
type State struct {
	Job       market.JobState `cbor:"1,keyasint"` // "" while the bid waits for its answer
	Reason    market.Reason   `cbor:"2,keyasint,omitempty"`
	Exit      *market.Exit    `cbor:"3,keyasint,omitempty"`
	BilledMs  int64           `cbor:"4,keyasint"`           // as the rig says
	Total     market.Micro    `cbor:"5,keyasint"`           // as the rig says
	Since     int64           `cbor:"6,keyasint"`           // wall time, Unix milliseconds
	SignedAt  int64           `cbor:"7,keyasint"`           // wall time of the agent's signature: the job cannot have run before
	RunningAt int64           `cbor:"8,keyasint"`           // wall time at which the agent saw it run, 0 if it has not
	Refused   *market.Error   `cbor:"9,keyasint,omitempty"` // why there is no lease
	Disputed  bool            `cbor:"10,keyasint"`
	Seen      int64           `cbor:"11,keyasint"`           // wall time of the rig's last word
	Created   int64           `cbor:"12,keyasint"`           // wall time of the bid
	Acked     bool            `cbor:"13,keyasint"`           // the rig has stored the final receipt
	Isolation string          `cbor:"14,keyasint,omitempty"` // as the offer said
	KillAt    int64           `cbor:"15,keyasint,omitempty"` // while stopping: wall time of SIGKILL, by the rig's clock
	Code      market.Code     `cbor:"16,keyasint,omitempty"` // why the job could not run
	In        int64           `cbor:"17,keyasint,omitempty"` // as the rig says
	Out       int64           `cbor:"18,keyasint,omitempty"`
	DiskUsed  int64           `cbor:"19,keyasint,omitempty"`
	DiskFull  bool            `cbor:"20,keyasint,omitempty"` // it has been
	Ready     bool            `cbor:"21,keyasint,omitempty"` // while preparing: the rig waits for what comes before the start
	Attempt   uint32          `cbor:"22,keyasint,omitempty"` // how often the job was started again
	KeptMs    int64           `cbor:"23,keyasint,omitempty"` // as the rig says
	// Extension is the newest that both signed; nil where there is none.
	Extension *market.Extension `cbor:"24,keyasint,omitempty"`
	// Paid and PaidSeq are of the newest payment that the rig signed. Sent is what this side has sent, in all.
	Paid    market.Micro `cbor:"25,keyasint,omitempty"`
	PaidSeq uint32       `cbor:"26,keyasint,omitempty"`
	Sent    market.Micro `cbor:"27,keyasint,omitempty"`
	// Paying is the slice that is being paid: stored before the payment program is asked, and until the rig's signature has come.
	Paying *Paying `cbor:"28,keyasint,omitempty"`
	DryMs  int64   `cbor:"29,keyasint,omitempty"` // how long the job has run unpaid, as the rig says
	// Handed are the deputies that have the lease. Serves is the agent for which this one is a deputy; zero where it is not.
	Handed  []market.Key `cbor:"30,keyasint,omitempty"`
	Serves  market.Key   `cbor:"31,keyasint,omitzero"`
	Cap     market.Micro `cbor:"32,keyasint,omitempty"` // what a deputy may pay, in all
	Alerted int          `cbor:"33,keyasint,omitempty"` // the highest part of the budget, in percent, that the user was told of
	// Released says of a lease in care that its agent needs no deputy any more.
	Released bool           `cbor:"40,keyasint,omitempty"`
	Measure  market.Measure `cbor:"34,keyasint,omitzero"` // what this side saw of the running time, as it was last stored

	Moved     market.Micro `cbor:"35,keyasint,omitempty"` // of Paid: it was left with the rig's owner from other leases
	Slices    uint32       `cbor:"36,keyasint,omitempty"` // the highest number of a slice that was taken up
	Alerts    []Alerted    `cbor:"37,keyasint,omitempty"` // that the user was told, oldest first
	Guarantee []byte       `cbor:"38,keyasint,omitempty"` // the sealed guarantee that the bid names
	ByDeputy  bool         `cbor:"41,keyasint,omitempty"` // the newest receipt was signed by a deputy
	// What this side had spent on the lease when the day and the month began in which it last spent anything: by their first
	// moments, wall time.
	Day       int64        `cbor:"42,keyasint,omitempty"`
	DayBase   market.Micro `cbor:"43,keyasint,omitempty"`
	Month     int64        `cbor:"44,keyasint,omitempty"`
	MonthBase market.Micro `cbor:"45,keyasint,omitempty"`
	Wishes    uint32       `cbor:"46,keyasint,omitempty"` // payments that the rig did not ask for, so far
	Untold    bool         `cbor:"47,keyasint,omitempty"` // the rig has not heard of a complaint or a decision yet
}

// Alerted is a part of a budget that the user was told of.
type Alerted struct {
	Percent int   `cbor:"1,keyasint"`
	At      int64 `cbor:"2,keyasint"` // wall time
}

// Paying is a slice on its way.
type Paying struct {
	Slice     market.Slice `cbor:"1,keyasint"`
	Method    string       `cbor:"2,keyasint"`
	Amount    market.Micro `cbor:"3,keyasint"` // that is sent: the slice's, or more where more is paid ahead
	Text      string       `cbor:"4,keyasint"` // what the rig's program asked for
	State     string       `cbor:"5,keyasint"` // wished, asked, pending, waiting, failed, held, sent
	Reference string       `cbor:"6,keyasint,omitempty"`
	Words     string       `cbor:"7,keyasint,omitempty"` // what a person must do
	QR        string       `cbor:"8,keyasint,omitempty"`
	Why       string       `cbor:"9,keyasint,omitempty"`
	Final     bool         `cbor:"10,keyasint,omitempty"` // it failed for good: the program said so
	Tried     bool         `cbor:"11,keyasint,omitempty"` // the program was told to send it: some of it may have left
}

// Settings are the user's choices that outlive a restart.
type Settings struct {
	Budgets  []Budget `cbor:"1,keyasint,omitempty"` // one a currency
	Deputies []Deputy `cbor:"2,keyasint,omitempty"`
	// Alerts are what the user was told of the budgets of a day and of a month, oldest first.
	Alerts []BudgetAlert `cbor:"4,keyasint,omitempty"`
	// Queries are saved queries by name.
	Queries []SavedQuery `cbor:"5,keyasint,omitempty"`
}

// BudgetAlert is a part of a day's or a month's budget that the user was told of.
type BudgetAlert struct {
	Scope    string `cbor:"1,keyasint"` // day or month
	Currency string `cbor:"2,keyasint"`
	Since    int64  `cbor:"3,keyasint"` // wall time at which the day or the month began
	Percent  int    `cbor:"4,keyasint"`
	At       int64  `cbor:"5,keyasint"` // wall time
}

// Budget is the most that an agent spends over all its leases in one currency. market.Unlimited is no limit.
type Budget struct {
	Currency string       `cbor:"1,keyasint"`
	Day      market.Micro `cbor:"2,keyasint"`
	Month    market.Micro `cbor:"3,keyasint"`
}

// Deputy is a program on another machine: one that acts for this agent, or one for which this agent acts.
type Deputy struct {
	Key    market.Key   `cbor:"1,keyasint"`
	Name   string       `cbor:"2,keyasint,omitempty"`
	Serves bool         `cbor:"3,keyasint,omitempty"` // this agent acts for it
	Cap    market.Micro `cbor:"4,keyasint,omitempty"` // that may be paid for one lease; 0 is the lease's budget
}

// Receipt is a sealed receipt as the agent keeps it; both sides have signed it.
type Receipt struct {
	Lease  market.LeaseID
	Seq    uint32
	Sealed []byte
}

// Store is the durable state that an agent needs. Every method is one transaction that is on disk when it returns; methods
// may be called concurrently. Unknown leases are market errors with code CodeLeaseUnknown.
type Store interface {
	// Instance returns the store's random id, made with it.
	Instance(ctx context.Context) (market.Nonce, error)
	// Save adds or replaces a record by its bid.
	Save(ctx context.Context, r Record) error
	// Sign keeps a receipt that the agent has just signed, with the record's new head, before it is sent.
	Sign(ctx context.Context, r Record, receipt Receipt) error
	// Dispute keeps a signed refusal of a receipt with the record's new state, before it is sent.
	Dispute(ctx context.Context, r Record, seq uint32, reject []byte) error
	// File keeps a record's new state together with papers that came of the same step. A paper of a kind and number that is there
	// already is replaced.
	File(ctx context.Context, r Record, papers ...market.Paper) error
	// Papers returns a lease's papers of a kind, by number.
	Papers(ctx context.Context, id market.LeaseID, kind market.Kind) ([]market.Paper, error)
	// Settings returns the user's choices; SaveSettings keeps them.
	Settings(ctx context.Context) (Settings, error)
	SaveSettings(ctx context.Context, s Settings) error
	// SaveInside replaces what is kept about the inside of a bid's lease, and nothing else.
	SaveInside(ctx context.Context, bid market.Hash, in Inside) error
	// Extend keeps a sealed extension that both signed, together with the record's new state. There is one of a number.
	Extend(ctx context.Context, r Record, seq uint32, extension []byte) error
	// Extensions returns the sealed extensions of a lease that both signed, in order.
	Extensions(ctx context.Context, id market.LeaseID) ([][]byte, error)
	// Record returns the record of a lease.
	Record(ctx context.Context, id market.LeaseID) (Record, error)
	// Records returns all records, newest first.
	Records(ctx context.Context) ([]Record, error)
	// Receipts returns a lease's receipts in order.
	Receipts(ctx context.Context, id market.LeaseID) ([]Receipt, error)
	// Rejects returns the sealed refusals of a lease's receipts in order.
	Rejects(ctx context.Context, id market.LeaseID) ([][]byte, error)
}
