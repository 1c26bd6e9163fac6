package market

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"

	"github.com/mr-tron/base58"
)

// Key is an ed25519 public key: a program's or an owner's identity in the market. The zero Key names nobody.
type Key [ed25519.PublicKeySize]byte

// Hash is the SHA-256 of a record's body; it names the record.
type Hash [sha256.Size]byte

// LeaseID names a lease: the hash of the terms that both sides signed.
type LeaseID Hash

// Nonce makes two otherwise equal records differ.
type Nonce [16]byte

// peerPrefix turns a raw ed25519 key into a libp2p peer id: identity multihash (0x00, 36 bytes) of the protobuf
// {type: Ed25519, data: 32 bytes}. Source: libp2p "Peer Ids and Keys" specification.
const peerPrefix = "\x00\x24\x08\x01\x12\x20"

// KeyOf returns the public half of a private key.
func KeyOf(private ed25519.PrivateKey) Key {
	var k Key
	copy(k[:], private[ed25519.SeedSize:])
	return k
}

// String returns the key as a libp2p peer id, "12D3KooW…".
func (k Key) String() string { return base58.Encode(append([]byte(peerPrefix), k[:]...)) }

// Short returns the end of the peer id, enough to tell keys apart on a screen. It must never be used to decide.
func (k Key) Short() string {
	s := k.String()
	return "…" + s[len(s)-6:]
}

// IsZero reports whether the key names nobody.
func (k Key) IsZero() bool { return k == Key{} }

// ParseKey reads a peer id as Key.String writes it. The error is a market error with code ErrBadKey.
func ParseKey(s string) (Key, error) {
	if len(s) > 64 {
		return Key{}, NewError(CodeBadKey, "value", clip(s, 64))
	}
	raw, err := base58.Decode(s)
	if err != nil || len(raw) != len(peerPrefix)+len(Key{}) || string(raw[:len(peerPrefix)]) != peerPrefix {
		return Key{}, NewError(CodeBadKey, "value", clip(s, 64))
	}
	return Key(raw[len(peerPrefix):]), nil
}

// MarshalText writes the key as a peer id.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a peer id.
func (k *Key) UnmarshalText(text []byte) error {
	parsed, err := ParseKey(string(text))
	if err == nil {
		*k = parsed
	}
	return err
}

// HashOf returns the SHA-256 of a record's body.
func HashOf(body []byte) Hash { return sha256.Sum256(body) }

// String returns the hash as 64 hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether the hash names nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// MarshalText writes the hash as hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads 64 hexadecimal digits.
func (h *Hash) UnmarshalText(text []byte) error { return unhex(h[:], text) }

// String returns the lease id as 64 hexadecimal digits.
func (l LeaseID) String() string { return Hash(l).String() }

// Short returns the first eight digits, the form in which people name a lease. It must never be used to decide.
func (l LeaseID) Short() string { return l.String()[:8] }

// IsZero reports whether the id names no lease.
func (l LeaseID) IsZero() bool { return l == LeaseID{} }

// MarshalText writes the id as hexadecimal digits.
func (l LeaseID) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads 64 hexadecimal digits.
func (l *LeaseID) UnmarshalText(text []byte) error { return unhex(l[:], text) }

func unhex(into, text []byte) error {
	if len(text) != hex.EncodedLen(len(into)) {
		return NewError(CodeBadHash, "value", clip(string(text), 64))
	}
	if _, err := hex.Decode(into, text); err != nil {
		return NewError(CodeBadHash, "value", clip(string(text), 64))
	}
	return nil
}

// clip bounds a foreign string before it is put into an error.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
