package market

import (
	"fmt"
	"strconv"

	"github.com/fxamacker/cbor/v2"
)

// MaxFrame is the largest message on any stream, in bytes.
const MaxFrame = 64 << 10

// MessageType numbers the messages of all streams. Numbers are only ever added.
type MessageType uint8

// Message is one frame's content. The types of this file and of message_*.go are all there are.
type Message interface{ Type() MessageType }

// Refuse ends a stream with a coded error. It can stand in for any answer.
type Refuse struct {
	Err Error `cbor:"1,keyasint"`
}

// Hello is the first message of each side on a lease stream.
type Hello struct {
	Instance Nonce    `cbor:"1,keyasint"` // the sender's store; a restored one is another
	WallMs   int64    `cbor:"2,keyasint"` // the sender's wall clock
	Lease    LeaseID  `cbor:"3,keyasint"` // zero: a bid follows
	Seq      uint32   `cbor:"4,keyasint"` // the newest receipt that both signed, as the sender has it
	Hash     Hash     `cbor:"5,keyasint"`
	Speaks   []string `cbor:"6,keyasint,omitempty"` // record kinds and versions, such as lease/1
	Paid     uint32   `cbor:"7,keyasint,omitempty"` // the newest payment of the lease, as the sender has it
}

// BidMessage carries a sealed bid and its job.
type BidMessage struct {
	Bid   []byte `cbor:"1,keyasint"`
	Offer []byte `cbor:"2,keyasint"` // the sealed offer that the bid is for
	Job   Job    `cbor:"3,keyasint"`
	// Guarantee is the sealed guarantee that the bid names; nil where it names none.
	Guarantee []byte `cbor:"4,keyasint,omitempty"`
}

// GrantMessage carries terms that the rig has signed.
type GrantMessage struct {
	Lease []byte `cbor:"1,keyasint"`
}

// AcceptMessage carries terms that both have signed, and what the job needs that may be seen only then.
type AcceptMessage struct {
	Lease   []byte   `cbor:"1,keyasint"`
	Env     Env      `cbor:"2,keyasint,omitempty"`
	Secrets []Secret `cbor:"3,keyasint,omitempty"` // kept in memory alone, on both sides
}

// StatusMessage is the rig's word on a job. Nothing in it is signed.
type StatusMessage struct {
	State    JobState `cbor:"1,keyasint"`
	Reason   Reason   `cbor:"2,keyasint,omitempty"`
	Exit     *Exit    `cbor:"3,keyasint,omitempty"`
	BilledMs int64    `cbor:"4,keyasint"` // so far
	Total    Micro    `cbor:"5,keyasint"` // so far
	SinceMs  int64    `cbor:"6,keyasint"` // in this state, wall time
	// Cards is what the leased cards do at this moment, while the job runs.
	Cards []CardUse `cbor:"7,keyasint,omitempty"`
	// KillAt is the wall time at which a job that stops is killed.
	KillAt int64 `cbor:"8,keyasint,omitempty"`
	// Code says why the job could not be made or started.
	Code Code `cbor:"9,keyasint,omitempty"`
	// In and Out are the bytes that the job received and sent, as billed. DiskUsed is the bytes on its disk now.
	In       int64 `cbor:"10,keyasint,omitempty"`
	Out      int64 `cbor:"11,keyasint,omitempty"`
	DiskUsed int64 `cbor:"12,keyasint,omitempty"`
	DiskFull bool  `cbor:"13,keyasint,omitempty"` // its disk has been full
	// Ready says that the job is made and waits for what the renter sends before the start.
	Ready bool `cbor:"14,keyasint,omitempty"`
	// Attempt counts the starts of a lease whose disk was kept: 0 is the first.
	Attempt uint32 `cbor:"15,keyasint,omitempty"`
	// KeptMs is the time for which the disk was kept at its price while no job ran, so far.
	KeptMs int64 `cbor:"16,keyasint,omitempty"`
	// Paid is what the rig has signed payments for. Dry says that it is used up, and for how many ms the job has run unpaid since.
	Paid Micro `cbor:"17,keyasint,omitempty"`
	Dry  int64 `cbor:"18,keyasint,omitempty"`
}

// CardUse is a card's reading, as its rig says it. An absent number is unknown.
type CardUse struct {
	Index        uint8  `cbor:"1,keyasint" json:"slot"`
	UtilPermille *int64 `cbor:"2,keyasint,omitempty" json:"util_permille"`
	MemoryBytes  *int64 `cbor:"3,keyasint,omitempty" json:"memory_bytes"`
	PowerMW      *int64 `cbor:"4,keyasint,omitempty" json:"power_mw"`
	TempC        *int64 `cbor:"5,keyasint,omitempty" json:"temperature_c"`
}

// ReceiptMessage carries a receipt: from the rig with its signature, from the renter with both.
type ReceiptMessage struct {
	Receipt []byte `cbor:"1,keyasint"`
}

// RejectMessage carries a renter's signed refusal of a receipt.
type RejectMessage struct {
	Reject []byte `cbor:"1,keyasint"`
}

// AckMessage says that the rig has stored a receipt that both signed.
type AckMessage struct {
	Seq uint32 `cbor:"1,keyasint"`
}

// StopMessage is the renter's order to end the job.
type StopMessage struct {
	Kill bool `cbor:"1,keyasint"`           // at once, without SIGTERM
	Keep bool `cbor:"2,keyasint,omitempty"` // the disk is kept at its price: the lease is paused
}

// BeginMessage says that everything that the renter sends before the start has arrived: the job may start.
type BeginMessage struct{}

// ResumeMessage asks the rig to start the job of a paused lease again.
type ResumeMessage struct{}

// ExtendMessage carries an extension of a lease: from the renter with its signature, from the rig with both.
type ExtendMessage struct {
	Extension []byte `cbor:"1,keyasint"`
}

// Orders that a rig may decline.
const (
	OrderBegin  = "begin"
	OrderKeep   = "keep"
	OrderResume = "resume"
	OrderExtend = "extend"
)

// DeclineMessage is the rig's refusal of one order. The conversation goes on.
type DeclineMessage struct {
	What string `cbor:"1,keyasint"` // which order: OrderBegin, …
	Err  Error  `cbor:"2,keyasint"`
}

// OffersRequest asks a rig for its offers.
type OffersRequest struct{}

// OfferMessage carries one sealed offer.
type OfferMessage struct {
	Offer []byte `cbor:"1,keyasint"`
}

// EndMessage ends a list.
type EndMessage struct{}

// Kinds of tunnels.
const (
	TunnelLog   = "log"   // the rig sends the log file's bytes as chunks
	TunnelDoor  = "door"  // bytes both ways between the renter's program and the door of the job
	TunnelImage = "image" // the renter sends the archive of the job's image as chunks
)

// TunnelRequest opens a tunnel into a lease.
type TunnelRequest struct {
	Lease  LeaseID `cbor:"1,keyasint"`
	Kind   string  `cbor:"2,keyasint"`
	Offset int64   `cbor:"3,keyasint"` // first byte of the log file
	Follow bool    `cbor:"4,keyasint"` // stay until the job has ended
}

// OpenMessage is the rig's yes to a tunnel request. What follows depends on the request's kind.
type OpenMessage struct {
	Offset int64 `cbor:"1,keyasint,omitempty"` // of an image: the bytes that the rig has already
}

// ChunkMessage carries bytes of a tunnel, at most MaxChunk.
type ChunkMessage struct {
	Data []byte `cbor:"1,keyasint"`
}

// OutcomeMessage carries the rig's newest statement of what became of what a job left behind.
type OutcomeMessage struct {
	Outcome []byte `cbor:"1,keyasint"`
}

// MaxChunk is the most bytes of one ChunkMessage.
const MaxChunk = 32 << 10

// Type numbers of the messages.
const (
	typeRefuse MessageType = iota + 1
	typeHello
	typeBid
	typeGrant
	typeAccept
	typeStatus
	typeReceipt
	typeReject
	typeAck
	typeStop
	typeOffersRequest
	typeOffer
	typeEnd
	typeTunnelRequest
	typeChunk
	typeOutcome
	typeOpen
	typeBegin
	typeResume
	typeExtend
	typeDecline
	typeAsk
	typePaid
	typePayment
	typeNotice
	typeDispute
	typeHandover
	typeSnapshotRequest
	typeSnapshotEnd
	typeMembersRequest
	typeMembers
)

// Type implements Message.
func (Refuse) Type() MessageType { return typeRefuse }

// Type implements Message.
func (Hello) Type() MessageType { return typeHello }

// Type implements Message.
func (BidMessage) Type() MessageType { return typeBid }

// Type implements Message.
func (GrantMessage) Type() MessageType { return typeGrant }

// Type implements Message.
func (AcceptMessage) Type() MessageType { return typeAccept }

// Type implements Message.
func (StatusMessage) Type() MessageType { return typeStatus }

// Type implements Message.
func (ReceiptMessage) Type() MessageType { return typeReceipt }

// Type implements Message.
func (RejectMessage) Type() MessageType { return typeReject }

// Type implements Message.
func (AckMessage) Type() MessageType { return typeAck }

// Type implements Message.
func (StopMessage) Type() MessageType { return typeStop }

// Type implements Message.
func (OffersRequest) Type() MessageType { return typeOffersRequest }

// Type implements Message.
func (OfferMessage) Type() MessageType { return typeOffer }

// Type implements Message.
func (EndMessage) Type() MessageType { return typeEnd }

// Type implements Message.
func (TunnelRequest) Type() MessageType { return typeTunnelRequest }

// Type implements Message.
func (ChunkMessage) Type() MessageType { return typeChunk }

// Type implements Message.
func (OutcomeMessage) Type() MessageType { return typeOutcome }

// Type implements Message.
func (OpenMessage) Type() MessageType { return typeOpen }

// Type implements Message.
func (BeginMessage) Type() MessageType { return typeBegin }

// Type implements Message.
func (ResumeMessage) Type() MessageType { return typeResume }

// Type implements Message.
func (ExtendMessage) Type() MessageType { return typeExtend }

// Type implements Message.
func (DeclineMessage) Type() MessageType { return typeDecline }

// frame is a message on the wire: an array of its type number and its body.
type frame struct {
	_    struct{} `cbor:",toarray"`
	Type MessageType
	Body cbor.RawMessage
}

// EncodeMessage writes a message as one frame's content. The error has code CodeTooLarge.
func EncodeMessage(m Message) ([]byte, error) {
	data := encode(frame{Type: m.Type(), Body: encode(m)})
	if len(data) > MaxFrame {
		return nil, NewError(CodeTooLarge, "limit", strconv.Itoa(MaxFrame))
	}
	return data, nil
}

// DecodeMessage reads one frame's content. Unknown keys are passed over, so that newer programs can add to a message;
// what is signed inside is opened by its own function. The message is a value, not a pointer.
func DecodeMessage(data []byte) (Message, error) {
	if len(data) > MaxFrame {
		return nil, NewError(CodeTooLarge, "limit", strconv.Itoa(MaxFrame))
	}
	var f frame
	if err := decodeStrict(data, &f); err != nil {
		return nil, err
	}
	read, known := messageReaders()[f.Type]
	if !known {
		return nil, NewError(CodeUnexpected, "got", fmt.Sprintf("of type %d", f.Type))
	}
	return read(f.Body)
}

func messageReaders() map[MessageType]func([]byte) (Message, error) {
	return map[MessageType]func([]byte) (Message, error){
		typeRefuse:        readMessage[Refuse],
		typeHello:         readMessage[Hello],
		typeBid:           readMessage[BidMessage],
		typeGrant:         readMessage[GrantMessage],
		typeAccept:        readMessage[AcceptMessage],
		typeStatus:        readMessage[StatusMessage],
		typeReceipt:       readMessage[ReceiptMessage],
		typeReject:        readMessage[RejectMessage],
		typeAck:           readMessage[AckMessage],
		typeStop:          readMessage[StopMessage],
		typeOffersRequest: readMessage[OffersRequest],
		typeOffer:         readMessage[OfferMessage],
		typeEnd:           readMessage[EndMessage],
		typeTunnelRequest: readMessage[TunnelRequest],
		typeChunk:         readMessage[ChunkMessage],
		typeOutcome:       readMessage[OutcomeMessage],
		typeOpen:          readMessage[OpenMessage],
		typeBegin:         readMessage[BeginMessage],
		typeResume:        readMessage[ResumeMessage],
		typeExtend:        readMessage[ExtendMessage],
		typeDecline:       readMessage[DeclineMessage],
		typeAsk:           readMessage[AskMessage],
		typePaid:          readMessage[PaidMessage],
		typePayment:       readMessage[PaymentMessage],
		typeNotice:        readMessage[NoticeMessage],
		typeDispute:       readMessage[DisputeMessage],
		typeHandover:      readMessage[HandoverMessage],

		typeSnapshotRequest: readMessage[SnapshotRequest],
		typeSnapshotEnd:     readMessage[SnapshotEnd],
		typeMembersRequest:  readMessage[MembersRequest],
		typeMembers:         readMessage[MembersMessage],
	}
}

func readMessage[M Message](body []byte) (Message, error) {
	var m M
	if err := decodeOpen(body, &m); err != nil {
		return nil, err
	}
	return m, nil
}

// Unexpected returns the error for a message that does not fit where it arrived.
func Unexpected(m Message) error {
	if r, ok := m.(Refuse); ok {
		return &r.Err
	}
	return NewError(CodeUnexpected, "got", fmt.Sprintf("%T", m))
}
