package market

// MembersRequest asks a program of a private network for the network's newest list of members.
type MembersRequest struct {
	Seq int64 `cbor:"1,keyasint"` // of the list that the asker has; 0 is none
}

// MembersMessage carries a sealed list of members, or nothing where the asker's is the newest.
type MembersMessage struct {
	Members []byte `cbor:"1,keyasint,omitempty"`
}

// Type implements Message.
func (MembersRequest) Type() MessageType { return typeMembersRequest }

// Type implements Message.
func (MembersMessage) Type() MessageType { return typeMembers }
