// Package pay runs payment programs: haggle-pay-NAME, which ask for money, send it, and say whether it has arrived.
//
// A program is a stranger's code with a small right: the rig's can only receive, the agent's can only spend what its own
// configuration lets it. It speaks JSON on stdin and stdout (docs/payments.md), one call a process, within a time limit.
// What it says is bounded and checked before anybody believes it.
package pay

import (
	"errors"
	"time"
)

// Version is the version of what is spoken with payment programs.
const Version = 1

// Bounds of what a program says, and of how long it may take.
const (
	MostAmount    = int64(1e15) // millionths: of an order, and of what a program says of one
	MostText      = 2048        // bytes of an answer's text, QR code or request
	MostReference = 128         // bytes
	MostOutput    = 64 << 10    // bytes of an answer as it is written
	QuickLimit    = 10 * time.Second
	PayLimit      = 60 * time.Second
)

// What goes wrong with a payment program. After ErrTimeout and ErrNonsense it is not known whether the order was paid: the same
// order is tried again, or its status asked for. ErrMissing says that nothing ran.
var (
	ErrMissing  = errors.New("there is no such payment program, or it may not be run")
	ErrTimeout  = errors.New("the payment program did not answer in time")
	ErrNonsense = errors.New("the payment program answers nonsense")
)

// RefusedError is a program's own no: by this call it did nothing, and it says why. An earlier call of the same order may have
// done something. The order may be tried again later.
type RefusedError struct {
	Why string // for people; at most 2048 bytes, printable
}

// Error implements error.
func (e *RefusedError) Error() string { return "the payment program refuses: " + e.Why }

// Side is which end of a payment a program stands at.
type Side string

// Sides of a payment.
const (
	Payee Side = "payee" // a rig's: asks for money and sees whether it came
	Payer Side = "payer" // an agent's: sends money
)

// State says how far a payment is.
type State string

// States of a payment.
const (
	Settled State = "settled" // the money has arrived
	Pending State = "pending" // it is on its way
	Waiting State = "waiting" // a person must act
	Failed  State = "failed"  // it will not come, and nothing was taken
	Unknown State = "unknown" // the program has seen nothing of this payment yet
)

// Order is one payment. Its ID names it for ever: the same order asked for or paid twice is asked for and paid once.
type Order struct {
	ID       string // the lease's id in full, a dash, and the slice's number
	Network  string // empty for the one of Config
	Method   string // the program's name without haggle-pay-
	Currency string
	Amount   int64  // millionths of the currency's unit
	Request  string // what the payee's program asked for; empty when it is asked itself
}

// Answer is what a program says of an order. Text and QR are for people: what to do where the state is Waiting.
type Answer struct {
	State     State
	Amount    int64  // that has arrived, or was sent; millionths. A payer's program never says more than the order's
	Reference string // the program's own name for the payment, at most 128 bytes
	Text      string // at most 2048 bytes, printable
	QR        string // what a QR code for it encodes; empty where there is none
	Request   string // the answer to Request: what the payer's program needs, at most 2048 bytes
}

// Quote says what a payment would cost the payer beside its amount.
type Quote struct {
	Fee     int64 // millionths
	Seconds int64 // until it settles, as a rule
}

// Ways in which a payment settles.
const (
	Instantly = "instant" // the program itself sees that the money has arrived
	ByHand    = "hand"    // a person says that it has
)

// Method is a payment program that this machine has.
type Method struct {
	Name       string
	Settles    string   // Instantly or ByHand
	Currencies []string // that it takes; empty for any
	Text       string   // for people
}
