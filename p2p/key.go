package p2p

import (
	"fmt"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"haggle/market"
)

// peerID returns a key's name in libp2p.
func peerID(key market.Key) (peer.ID, error) {
	public, err := crypto.UnmarshalEd25519PublicKey(key[:])
	if err != nil {
		return "", err
	}
	return peer.IDFromPublicKey(public)
}

// keyOf returns the key behind a libp2p name. Peers with other than ed25519 keys have no place in the market.
func keyOf(id peer.ID) (market.Key, error) {
	public, err := id.ExtractPublicKey()
	if err != nil {
		return market.Key{}, fmt.Errorf("peer %s: %w", id, err)
	}
	raw, err := public.Raw()
	if err != nil || public.Type() != crypto.Ed25519 || len(raw) != len(market.Key{}) {
		return market.Key{}, fmt.Errorf("peer %s has no ed25519 key", id)
	}
	return market.Key(raw), nil
}

func unreachable(key market.Key) error {
	return market.NewError(market.CodeUnreachable, "peer", key.String())
}
