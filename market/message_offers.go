package market

// Bounds of a snapshot, which is what one program tells another of the offers that it knows.
const (
	MaxSnapshotCells = 16   // cells of one request
	MaxSnapshotHave  = 4096 // offers that the asker has already
	SnapshotNameSize = 8    // bytes of an offer's hash in SnapshotRequest.Have
	MaxSnapshotPage  = 512  // offers of one page
)

// Cursor is a place in what one program has learnt of offers, in the order in which it learnt it. Only the program that gave it
// can read it; one of another instance means the beginning.
type Cursor struct {
	Instance Nonce  `cbor:"1,keyasint"`
	Seq      uint64 `cbor:"2,keyasint"`
}

// SnapshotRequest asks a program for the offers of some cells that it has learnt since a cursor, without those that the asker has.
// The answer is one OfferMessage for each, withdrawn ones included, then a SnapshotEnd.
type SnapshotRequest struct {
	Cells []string `cbor:"1,keyasint"`           // as Cells names them; at most MaxSnapshotCells
	Have  []byte   `cbor:"2,keyasint,omitempty"` // the first SnapshotNameSize bytes of each hash, put together
	Since Cursor   `cbor:"3,keyasint"`           // zero: from the beginning
	Max   uint16   `cbor:"4,keyasint,omitempty"` // offers at most; 0 is MaxSnapshotPage
	// Mate says that the asker keeps a shelf of these cells itself: its own offers belong to them.
	Mate bool `cbor:"5,keyasint,omitempty"`
}

// SnapshotEnd ends a page.
type SnapshotEnd struct {
	Next Cursor `cbor:"1,keyasint"`           // where the next page, or the next visit, begins
	More bool   `cbor:"2,keyasint,omitempty"` // there is a next page now
	Held uint32 `cbor:"3,keyasint"`           // open offers of these cells that the program holds, those that it did not send included
	// Depth is that of the cell of which the program keeps a shelf, in the bucket of the first cell asked.
	Depth uint8 `cbor:"4,keyasint,omitempty"`
}

// Type implements Message.
func (SnapshotRequest) Type() MessageType { return typeSnapshotRequest }

// Type implements Message.
func (SnapshotEnd) Type() MessageType { return typeSnapshotEnd }
