package market

import (
	"crypto/ed25519"
	"regexp"
)

// Settling says how money of a method arrives.
type Settling string

// Ways of settling.
const (
	SettlesInstantly Settling = "instant" // the payment program itself sees that the money has arrived
	SettlesByHand    Settling = "hand"    // the rig's owner says that it has
)

// Names of payment methods that mean something to the market itself. Any other is only a program's name.
const (
	PayLab     = "lab"     // play money: on labs' networks only
	PayBalance = "balance" // what an owner has left with the rig's owner; a method of payments, never of offers
)

// Bounds of paying.
const (
	MaxPayMethods = 8
	MaxPayText    = 2048 // bytes of what a payment program asks the payer for
	maxReference  = 128  // bytes
)

// payName is compiled once and never written to again.
var payName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// PayMethod is a way in which a rig takes money. It never holds an address.
type PayMethod struct {
	Name    string   `cbor:"1,keyasint" json:"name"` // of the program haggle-pay-NAME
	Settles Settling `cbor:"2,keyasint" json:"settles"`
}

// Slice is money that a rig asks for ahead of the next stretch of a lease. One that was asked for never changes.
type Slice struct {
	Seq     uint32 `cbor:"1,keyasint" json:"slice"` // 1, 2, 3, …
	Amount  Micro  `cbor:"2,keyasint" json:"amount"`
	ForMs   int64  `cbor:"3,keyasint" json:"for_ms"`   // running time that it is for
	AskedAt int64  `cbor:"4,keyasint" json:"asked_ms"` // wall time by the rig's clock
}

// Payment is a payee's signed word that money of a lease has arrived. The newest is the whole statement.
type Payment struct {
	Lease     LeaseID `cbor:"1,keyasint"`
	Seq       uint32  `cbor:"2,keyasint"` // 1, 2, 3, …
	Payee     Key     `cbor:"3,keyasint"` // the owner of the rig
	Payer     Key     `cbor:"4,keyasint"` // the owner of the renter
	Currency  string  `cbor:"5,keyasint"`
	Amount    Micro   `cbor:"6,keyasint"` // that this payment adds
	Total     Micro   `cbor:"7,keyasint"` // paid for the lease so far, this payment in it
	Method    string  `cbor:"8,keyasint"`
	Reference string  `cbor:"9,keyasint"`            // the payment program's own, at most 128 bytes
	Wall      int64   `cbor:"10,keyasint"`           // the rig's clock; information, no rule reads it
	Slice     uint32  `cbor:"11,keyasint,omitempty"` // that it answers; 0 for money that was not asked for
}

// SealPayment signs a payment as the rig that received it.
func SealPayment(network string, rig ed25519.PrivateKey, p Payment) Sealed {
	return seal(network, KindPayment, RoleRig, rig, p)
}

// OpenPayment verifies, decodes and validates a sealed payment for a lease's terms. It does not check whether it follows
// another: see CheckPayment.
func OpenPayment(network string, raw []byte, t Terms) (Payment, Sealed, error) {
	var p Payment
	s, err := DecodeSealed(raw)
	if err != nil {
		return p, s, err
	}
	signer, err := s.open(network, KindPayment, RoleRig, &p, decodeStrict)
	switch {
	case err != nil:
		return p, s, err
	case signer != t.Rig:
		return p, s, NewError(CodeBadSignature, "kind", string(KindPayment), "role", string(RoleRig))
	}
	return p, s, p.validate(t)
}

func (p Payment) validate(t Terms) error {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", string(KindPayment), "why", why) }
	switch {
	case p.Payee != t.RigOwner || p.Payer != t.RenterOwner:
		return bad("its payee or payer is not the lease's")
	case p.Currency != t.Prices.Currency:
		return bad("it is in another currency than the lease")
	case p.Seq == 0 || p.Amount <= 0 || p.Amount > maxMoney || p.Total < p.Amount || p.Total > maxMoney:
		return bad("its number or an amount is out of range")
	case !payName.MatchString(p.Method) || len(p.Reference) > maxReference:
		return bad("its method or reference is out of bounds")
	}
	return nil
}

// CheckPayment reports whether a payment follows those before it: their number and their total.
func CheckPayment(lease LeaseID, seq uint32, total Micro, p Payment) error {
	bad := func(why string) error { return NewError(CodeBadRecord, "kind", string(KindPayment), "why", why) }
	switch {
	case p.Lease != lease:
		return bad("it belongs to another lease")
	case p.Seq != seq+1:
		return bad("its number is not the next")
	case p.Total != total+p.Amount:
		return bad("its total is not the sum")
	}
	return nil
}
