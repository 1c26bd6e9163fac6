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
