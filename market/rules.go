package market

// MaxContent bounds an owner's rules for content, in bytes.
const MaxContent = 500

// Who may bid.
const (
	BiddersAnyone  = "anyone"
	BiddersTrusted = "trusted" // owners whose key the rig's owner trusts
)

// Rules is what the rig asks of a lease. Times are milliseconds.
type Rules struct {
	MinMs         int64 `cbor:"1,keyasint" json:"min_ms"`         // shortest lease
	MaxMs         int64 `cbor:"2,keyasint" json:"max_ms"`         // longest lease
	IntervalMs    int64 `cbor:"3,keyasint" json:"interval_ms"`    // between receipts
	FirstMs       int64 `cbor:"4,keyasint" json:"first_ms"`       // to the first receipt
	GraceMs       int64 `cbor:"5,keyasint" json:"grace_ms"`       // to sign a receipt
	NoticeMs      int64 `cbor:"6,keyasint" json:"notice_ms"`      // between SIGTERM and SIGKILL when the rig ends a job
	MaxUnattended int64 `cbor:"7,keyasint" json:"max_unattended"` // longest unattended time, Unlimited is allowed
	Credit        int64 `cbor:"8,keyasint" json:"credit"`         // Micro of use not yet paid; Unlimited in labs
	Egress        bool  `cbor:"9,keyasint" json:"egress"`         // jobs reach the internet

	Bidders string `cbor:"10,keyasint" json:"bidders"`                     // BiddersAnyone or BiddersTrusted
	Content string `cbor:"11,keyasint,omitempty" json:"content,omitempty"` // what the owner allows, for people; at most MaxContent bytes
	Brings  bool   `cbor:"12,keyasint,omitempty" json:"brings,omitempty"`  // renters may bring an image
}

func (r Rules) validate() error {
	if r.Bidders != BiddersAnyone && r.Bidders != BiddersTrusted || len(r.Content) > MaxContent {
		return NewError(CodeBadRecord, "kind", "rules", "why", "who may bid is unknown, or the rules for content are too long")
	}
	for _, ms := range []int64{r.MinMs, r.MaxMs, r.IntervalMs, r.FirstMs, r.GraceMs, r.NoticeMs} {
		if ms < 0 || ms > maxLeaseTime.Milliseconds() {
			return NewError(CodeBadRecord, "kind", "rules", "why", "a time is out of range")
		}
	}
	if r.MinMs > r.MaxMs || r.IntervalMs < 1000 || r.IntervalMs > maxIntervalMs || r.FirstMs < 1000 ||
		r.MaxUnattended < Unlimited || r.Credit < Unlimited {
		return NewError(CodeBadRecord, "kind", "rules", "why", "the limits do not fit together")
	}
	return nil
}
