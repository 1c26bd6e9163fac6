package market

import (
	"crypto/ed25519"
	"slices"
)

// Roles that an owner gives to a program's key.
const (
	DelegateRig   = "rig"   // offers and leases in the owner's name
	DelegateAgent = "agent" // bids and countersigns in the owner's name
)

// Delegate is an owner's signed word that a program's key acts for it. Times are Unix milliseconds.
type Delegate struct {
	Owner   Key      `cbor:"1,keyasint"`
	Program Key      `cbor:"2,keyasint"`
	Roles   []string `cbor:"3,keyasint"`
	Issued  int64    `cbor:"4,keyasint"`
	Expires int64    `cbor:"5,keyasint"`
}

// SealDelegate signs a delegate as its owner.
func SealDelegate(network string, owner ed25519.PrivateKey, d Delegate) Sealed {
	return seal(network, KindDelegate, RoleOwner, owner, d)
}

// OpenDelegate verifies, decodes and validates a sealed delegate's bytes.
func OpenDelegate(network string, raw []byte) (Delegate, error) {
	var d Delegate
	s, err := DecodeSealed(raw)
	if err != nil {
		return d, err
	}
	signer, err := s.open(network, KindDelegate, RoleOwner, &d, decodeStrict)
	switch {
	case err != nil:
		return d, err
	case signer != d.Owner:
		return d, NewError(CodeBadSignature, "kind", string(KindDelegate), "role", string(RoleOwner))
	case len(d.Roles) == 0 || len(d.Roles) > 8 || d.Expires <= d.Issued:
		return d, NewError(CodeBadRecord, "kind", string(KindDelegate), "why", "it names no role or is valid for no time")
	}
	return d, nil
}

// checkOwner reports whether a program may act for an owner at a time: it owns itself, or the delegate says so.
func checkOwner(network string, owner, program Key, delegate []byte, role string, at int64) error {
	if owner == program && len(delegate) == 0 {
		return nil
	}
	d, err := OpenDelegate(network, delegate)
	if err != nil {
		return err
	}
	if d.Owner != owner || d.Program != program || !slices.Contains(d.Roles, role) || at < d.Issued || at >= d.Expires {
		return NewError(CodeBadRecord, "kind", string(KindDelegate), "why", "it does not cover this key, role or time")
	}
	return nil
}

// SignsAsRenter reports whether a key may countersign for the renter: its own, or that of a deputy that the terms name.
func (t Terms) SignsAsRenter(k Key) bool { return k == t.Renter || slices.Contains(t.Deputies, k) }
