package market

// AskMessage is the rig's request to be paid a slice. The same slice always has the same text.
type AskMessage struct {
	Slice    Slice  `cbor:"1,keyasint"`
	Method   string `cbor:"2,keyasint"`
	Currency string `cbor:"3,keyasint"`
	Text     string `cbor:"4,keyasint"` // what the rig's payment program wants the payer's to know: an address, an invoice; at most MaxPayText bytes
}

// PaidMessage is the renter's word that it has paid a slice. It proves nothing: the rig asks its own payment program.
type PaidMessage struct {
	Slice     uint32 `cbor:"1,keyasint"`
	Amount    Micro  `cbor:"2,keyasint"` // at least the slice's; what is more is paid ahead
	Reference string `cbor:"3,keyasint,omitempty"`
}

// PaymentMessage carries a payment that the rig has signed.
type PaymentMessage struct {
	Payment []byte `cbor:"1,keyasint"`
}

// NoticeMessage carries the rig's signed word that a job will be ended.
type NoticeMessage struct {
	Notice []byte `cbor:"1,keyasint"`
}

// DisputeMessage carries either side's signed complaint.
type DisputeMessage struct {
	Dispute []byte `cbor:"1,keyasint"`
}

// HandoverMessage hands a lease to a deputy, or tells it what is new. The deputy answers with an Ack of the receipt's number.
type HandoverMessage struct {
	Offer     []byte   `cbor:"1,keyasint"`
	Bid       []byte   `cbor:"2,keyasint"`
	Lease     []byte   `cbor:"3,keyasint"`
	Job       Job      `cbor:"4,keyasint"`
	Extension []byte   `cbor:"5,keyasint,omitempty"`  // the newest that both signed
	Receipt   []byte   `cbor:"6,keyasint,omitempty"`  // the newest that both signed
	Payment   []byte   `cbor:"7,keyasint,omitempty"`  // the newest
	Cap       Micro    `cbor:"8,keyasint"`            // what the deputy may pay for the lease, in all
	Collects  []string `cbor:"9,keyasint,omitempty"`  // folders of the job that come home when it has ended
	Release   bool     `cbor:"10,keyasint,omitempty"` // the agent needs no deputy for this lease any more
	Name      string   `cbor:"11,keyasint,omitempty"` // the lease's name, for people
}

// Type implements Message.
func (AskMessage) Type() MessageType { return typeAsk }

// Type implements Message.
func (PaidMessage) Type() MessageType { return typePaid }

// Type implements Message.
func (PaymentMessage) Type() MessageType { return typePayment }

// Type implements Message.
func (NoticeMessage) Type() MessageType { return typeNotice }

// Type implements Message.
func (DisputeMessage) Type() MessageType { return typeDispute }

// Type implements Message.
func (HandoverMessage) Type() MessageType { return typeHandover }
