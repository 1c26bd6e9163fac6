package market

import (
	"crypto/ed25519"
	"slices"
	"strconv"
)

// Kind names a kind of record.
type Kind string

// Role says as what a key signs. It is part of the signed bytes: one side's signature never passes for the other's.
type Role string

// Kinds of records and the roles that sign them.
const (
	KindOffer     Kind = "offer"
	KindBid       Kind = "bid"
	KindLease     Kind = "lease"
	KindReceipt   Kind = "receipt"
	KindReject    Kind = "reject"
	KindExtend    Kind = "extend"
	KindOutcome   Kind = "outcome"
	KindDelegate  Kind = "delegate"
	KindPayment   Kind = "payment"
	KindNotice    Kind = "notice"
	KindGuarantee Kind = "guarantee"
	KindDispute   Kind = "dispute"
	KindMembers   Kind = "members"

	RoleRig       Role = "rig"
	RoleRenter    Role = "renter"
	RoleOwner     Role = "owner"
	RoleGuarantor Role = "guarantor"
)

// recordVersion is the version of every record kind so far; it is part of the signed bytes.
const recordVersion = 1

// Bounds of a sealed record.
const (
	MaxOffer  = 8 << 10  // bytes of a sealed offer
	MaxRecord = 16 << 10 // bytes of any other sealed record
	maxSigs   = 2
)

// Signature is one key's signature under a record, made in a role.
type Signature struct {
	Role  Role   `cbor:"1,keyasint"`
	Key   Key    `cbor:"2,keyasint"`
	Bytes []byte `cbor:"3,keyasint"`
}

// Sealed is a record as it travels and is kept: the body's bytes and the signatures over them. A Sealed that was decoded
// proves nothing until Verify, or an Open function of its kind, has returned without error.
type Sealed struct {
	Network string      `cbor:"1,keyasint"`
	Kind    Kind        `cbor:"2,keyasint"`
	Version uint16      `cbor:"3,keyasint"`
	Body    []byte      `cbor:"4,keyasint"`
	Sigs    []Signature `cbor:"5,keyasint"`
}

// seal makes a record of a body, signed by one key.
func seal(network string, kind Kind, role Role, private ed25519.PrivateKey, body any) Sealed {
	s := Sealed{Network: network, Kind: kind, Version: recordVersion, Body: encode(body)}
	return s.Sign(role, private)
}

// Sign returns the record with one more signature; a role that has signed already keeps its first signature. ed25519 is
// deterministic, so signing the same body again gives the same bytes.
func (s Sealed) Sign(role Role, private ed25519.PrivateKey) Sealed {
	if _, ok := s.signer(role); ok {
		return s
	}
	sig := Signature{Role: role, Key: KeyOf(private), Bytes: ed25519.Sign(private, s.message(role))}
	s.Sigs = append(slices.Clone(s.Sigs), sig)
	return s
}

// Verify returns the key that signed in a role. The error has code CodeBadSignature if none did or the signature is wrong.
func (s Sealed) Verify(role Role) (Key, error) {
	sig, ok := s.signer(role)
	if !ok || !verifies(sig.Key, s.message(role), sig.Bytes) {
		return Key{}, NewError(CodeBadSignature, "kind", string(s.Kind), "role", string(role))
	}
	return sig.Key, nil
}

// verifies reports whether a signature of any size is a key's under a message.
func verifies(key Key, message, signature []byte) bool {
	return len(signature) == ed25519.SignatureSize && ed25519.Verify(key[:], message, signature)
}

// Hash names the record: the SHA-256 of its body.
func (s Sealed) Hash() Hash { return HashOf(s.Body) }

// SignedBy reports whether a role has signed, without checking the signature.
func (s Sealed) SignedBy(role Role) bool {
	_, ok := s.signer(role)
	return ok
}

// Encode returns the bytes that travel and are kept.
func (s Sealed) Encode() []byte { return encode(s) }

// DecodeSealed reads a record's envelope. It checks form and bounds, not signatures.
func DecodeSealed(data []byte) (Sealed, error) { return decodeEnvelope(data, MaxRecord) }

// decodeEnvelope is DecodeSealed for a record of at most limit bytes.
func decodeEnvelope(data []byte, limit int) (Sealed, error) {
	var s Sealed
	if len(data) > limit {
		return s, NewError(CodeTooLarge, "limit", strconv.Itoa(limit))
	}
	if err := decodeStrict(data, &s); err != nil {
		return s, err
	}
	if len(s.Sigs) == 0 || len(s.Sigs) > maxSigs || len(s.Network) > maxNetworkName {
		return s, NewError(CodeBadRecord, "kind", string(s.Kind), "why", "its envelope is out of bounds")
	}
	if len(s.Sigs) == 2 && s.Sigs[0].Role == s.Sigs[1].Role {
		return s, NewError(CodeBadRecord, "kind", string(s.Kind), "why", "one role signed twice")
	}
	for _, sig := range s.Sigs {
		if sig.Role != RoleRig && sig.Role != RoleRenter && sig.Role != RoleOwner && sig.Role != RoleGuarantor {
			return s, NewError(CodeBadRecord, "kind", string(s.Kind), "why", "a signature's role is unknown")
		}
	}
	return s, nil
}

// open verifies a record's network, kind, version and the signature of one role, then decodes its body with the decoder
// of its kind. It returns the signer.
func (s Sealed) open(network string, kind Kind, role Role, body any, decoder func([]byte, any) error) (Key, error) {
	switch {
	case s.Network != network:
		return Key{}, NewError(CodeWrongNetwork, "theirs", s.Network, "ours", network)
	case s.Kind != kind || s.Version != recordVersion:
		return Key{}, NewError(CodeBadRecord, "kind", string(kind), "why", "it is of another kind or version")
	}
	signer, err := s.Verify(role)
	if err != nil {
		return Key{}, err
	}
	return signer, decoder(s.Body, body)
}

func (s Sealed) signer(role Role) (Signature, bool) {
	i := slices.IndexFunc(s.Sigs, func(sig Signature) bool { return sig.Role == role })
	if i < 0 {
		return Signature{}, false
	}
	return s.Sigs[i], true
}

// message returns the signed bytes: a domain that names network, kind, version and role, a zero byte, and the hash of the
// body. The domain keeps a lab's receipt from passing elsewhere and one kind or role from passing for another.
func (s Sealed) message(role Role) []byte {
	domain := "haggle/" + s.Network + "/" + string(s.Kind) + "/" + strconv.Itoa(int(s.Version)) + "/" + string(role)
	hash := HashOf(s.Body)
	return append(append([]byte(domain), 0), hash[:]...)
}
