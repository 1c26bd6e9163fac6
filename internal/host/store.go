package host

import (
	"context"
	"slices"

	"haggle/market"
)

// Record is everything that a rig keeps about one lease.
type Record struct {
	Lease  market.Lease // the state
	Sealed []byte       // the terms: signed by the rig, and by the renter once it has
	Offer  []byte       // the sealed offer that the bid was for
	Bid    []byte       // the sealed bid
	Job    market.Job   // what runs
	Env    market.Env   // its environment; deleted when the lease has ended
	Image  market.ImageName
	// Outcome is the sealed statement of what became of what the job left behind; nil before there is one.
	Outcome []byte
}

// Receipt is a sealed receipt as the rig keeps it: a draft until Agreed.
type Receipt struct {
	Lease  market.LeaseID
	Seq    uint32
	Sealed []byte
	Agreed bool // both signatures are in Sealed
}

// Settings are the owner's choices that outlive a restart.
type Settings struct {
	Paused   bool
	Draining bool
	Prices   market.Prices // zero Currency: as configured
	OfferSeq int64         // the highest sequence number that an offer was signed with
	Trusted  []Trusted     // owners that may bid, in the order in which they were added
	Withheld []Withheld    // cards that are not offered, whatever their health
	Seen     Seen          // when this rig's program was last known to run
}

// Trusted is an owner whose bids are taken.
type Trusted struct {
	Owner market.Key `cbor:"1,keyasint"`
	Name  string     `cbor:"2,keyasint"` // the rig's owner's own word for it
	Since int64      `cbor:"3,keyasint"` // wall time
	// Credit is what it may owe, in millionths of the currency of the prices; nil is the rig's own rule.
	Credit *int64 `cbor:"4,keyasint,omitempty"`
	// Guarantor says that what this owner guarantees for others is taken.
	Guarantor bool `cbor:"5,keyasint,omitempty"`
}

// Withheld is a card that is kept from new leases until its owner gives it back.
type Withheld struct {
	UUID  string `cbor:"1,keyasint"`
	Why   string `cbor:"2,keyasint"` // a sentence for the owner
	Since int64  `cbor:"3,keyasint"` // wall time
}

func (s Settings) trusts(owner market.Key) bool {
	_, found := s.trusted(owner)
	return found
}

// trusted returns what is kept of an owner that is trusted.
func (s Settings) trusted(owner market.Key) (Trusted, bool) {
	i := slices.IndexFunc(s.Trusted, func(t Trusted) bool { return t.Owner == owner })
	if i < 0 {
		return Trusted{}, false
	}
	return s.Trusted[i], true
}

func (s Settings) guarantees(owner market.Key) bool {
	t, found := s.trusted(owner)
	return found && t.Guarantor
}

func (s Settings) withholds(uuid string) bool {
	return slices.ContainsFunc(s.Withheld, func(w Withheld) bool { return w.UUID == uuid })
}

// Store is the durable state that a rig needs. Every method is one transaction that is on disk when it returns; methods
// may be called concurrently. Unknown leases are market errors with code CodeLeaseUnknown.
type Store interface {
	// Instance returns the store's random id, made with it.
	Instance(ctx context.Context) (market.Nonce, error)
	// Create adds a lease. A lease whose bid was granted before is an error that Granted answers first.
	Create(ctx context.Context, r Record) error
	// Granted returns the record of the lease that a bid got, so that a repeated bid gets the same answer.
	Granted(ctx context.Context, bid market.Hash) (Record, bool, error)
	// Sign replaces a lease's sealed terms and environment and saves its state.
	Sign(ctx context.Context, l market.Lease, sealed []byte, env market.Env) error
	// Extend saves a lease's state together with a sealed extension of its terms that both signed.
	Extend(ctx context.Context, l market.Lease, seq uint32, sealed []byte) error
	// Extensions returns a lease's extensions, sealed, in order from number 1.
	Extensions(ctx context.Context, id market.LeaseID) ([][]byte, error)
	// Save saves a lease's state, together with the receipts that came of the same step.
	Save(ctx context.Context, l market.Lease, receipts ...Receipt) error
	// File saves a lease's state together with receipts and papers that came of the same step. A paper of a kind and number that
	// is there already is replaced.
	File(ctx context.Context, l market.Lease, receipts []Receipt, papers []market.Paper) error
	// Papers returns a lease's papers of a kind, by number; PapersOf those of all leases, in the order in which they were filed.
	Papers(ctx context.Context, id market.LeaseID, kind market.Kind) ([]market.Paper, error)
	PapersOf(ctx context.Context, kind market.Kind) ([]market.Paper, error)
	// Conclude saves a lease's state together with the newest sealed outcome.
	Conclude(ctx context.Context, l market.Lease, outcome []byte) error
	// Record returns one lease.
	Record(ctx context.Context, id market.LeaseID) (Record, error)
	// Records returns all leases that are not closed, or all there are, oldest first.
	Records(ctx context.Context, closed bool) ([]Record, error)
	// Receipts returns a lease's receipts with a number above after, in order.
	Receipts(ctx context.Context, id market.LeaseID, after uint32) ([]Receipt, error)
	// Settings returns the owner's choices.
	Settings(ctx context.Context) (Settings, error)
	// SaveSettings keeps them.
	SaveSettings(ctx context.Context, s Settings) error
}
