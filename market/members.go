package market

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base32"
	"slices"
	"strconv"
	"strings"
)

// A private network is one whose programs talk only to the keys on a list that its creator signs. Its name ends with a part of the
// hash of the creator's key: nobody else can sign a list for that name, and it cannot be taken for a public network's.

// Bounds of a list of members. A list of the most members with the longest names fits into one frame.
const (
	MaxMembers     = 512
	MaxMemberName  = 32       // bytes
	maxMembersSize = 48 << 10 // bytes of a sealed list: 512 of at most 70, and the envelope
	maxPrivateName = 40       // of the part that the creator chooses
	creatorDigits  = 8        // base32 digits of the hash: 40 bits
)

// Members says who belongs to a private network. The creator belongs to it, listed or not.
type Members struct {
	Network string   `cbor:"1,keyasint"`
	Seq     int64    `cbor:"2,keyasint"` // the newest of the creator's lists is the one that counts; at least 1
	Issued  int64    `cbor:"3,keyasint"` // Unix milliseconds
	List    []Member `cbor:"4,keyasint"` // in ascending order of the keys, each once
}

// Member is one program that belongs to a private network.
type Member struct {
	Key  Key    `cbor:"1,keyasint"`
	Name string `cbor:"2,keyasint"` // what the creator calls it; may be empty
}

// PrivateNetwork returns the name of the private network of a creator: the name that the creator chose, a dash, and 8 digits of the
// hash of its key. The error has code CodeBadRequest.
func PrivateNetwork(name string, creator Key) (string, error) {
	full := name + "-" + creatorMark(creator)
	if len(name) > maxPrivateName || strings.HasSuffix(name, "-") || IsLab(full) || CheckNetwork(full) != nil {
		return "", NewError(CodeBadRequest, "why", "a private network's name is made of small letters, digits and dashes, at most "+
			strconv.Itoa(maxPrivateName)+", and does not begin with "+labPrefix)
	}
	return full, nil
}

// IsCreator reports whether a private network of this name is the key's: whether its name ends with the mark of the key.
func IsCreator(network string, key Key) bool {
	return CheckNetwork(network) == nil && strings.HasSuffix(network, "-"+creatorMark(key))
}

func creatorMark(creator Key) string {
	hash := HashOf([]byte("haggle/creator/1\x00" + string(creator[:])))
	return strings.ToLower(base32.StdEncoding.EncodeToString(hash[:5]))[:creatorDigits]
}

// SealMembers signs a list as the network's creator. It puts the list in order. The error says what is wrong with it.
func SealMembers(creator ed25519.PrivateKey, m Members) (Sealed, error) {
	m.List = slices.Clone(m.List)
	slices.SortFunc(m.List, func(a, b Member) int { return bytes.Compare(a.Key[:], b.Key[:]) })
	if err := m.validate(m.Network, KeyOf(creator)); err != nil {
		return Sealed{}, err
	}
	return seal(m.Network, KindMembers, RoleOwner, creator, m), nil
}

// OpenMembers verifies, decodes and validates a sealed list of a network whose creator is known.
func OpenMembers(network string, creator Key, raw []byte) (Members, error) {
	var m Members
	s, err := decodeEnvelope(raw, maxMembersSize)
	if err != nil {
		return Members{}, err
	}
	signer, err := s.open(network, KindMembers, RoleOwner, &m, decodeStrict)
	switch {
	case err != nil:
		return Members{}, err
	case signer != creator:
		return Members{}, NewError(CodeBadSignature, "kind", string(KindMembers), "role", string(RoleOwner))
	}
	if err := m.validate(network, creator); err != nil {
		return Members{}, err
	}
	return m, nil
}

func (m Members) validate(network string, creator Key) error {
	why := ""
	switch {
	case m.Network != network:
		why = "it names another network"
	case !IsCreator(network, creator):
		why = "the network's name is not of this creator"
	case m.Seq < 1 || m.Issued < 0:
		why = "its number or its time is out of bounds"
	case len(m.List) > MaxMembers:
		why = "it has more than " + strconv.Itoa(MaxMembers) + " members"
	}
	for i, member := range m.List[:min(len(m.List), MaxMembers)] {
		switch {
		case member.Key.IsZero():
			why = "a member has no key"
		case len(member.Name) > MaxMemberName || Printable(member.Name) != member.Name:
			why = "a member's name is longer than " + strconv.Itoa(MaxMemberName) + " bytes or cannot be shown"
		case i > 0 && bytes.Compare(m.List[i-1].Key[:], member.Key[:]) >= 0:
			why = "its members are not in order, or one stands there twice"
		}
	}
	if why != "" {
		return NewError(CodeBadRecord, "kind", string(KindMembers), "why", why)
	}
	return nil
}

// Has reports whether a key is on the list.
func (m Members) Has(key Key) bool { return m.index(key) >= 0 }

// Name returns what the creator calls a member; "" where it has no name or is none.
func (m Members) Name(key Key) string {
	if i := m.index(key); i >= 0 {
		return m.List[i].Name
	}
	return ""
}

// index finds a key in a list that is in order.
func (m Members) index(key Key) int {
	i, found := slices.BinarySearchFunc(m.List, key, func(a Member, k Key) int { return bytes.Compare(a.Key[:], k[:]) })
	if !found {
		return -1
	}
	return i
}
