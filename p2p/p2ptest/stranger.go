package p2ptest

import (
	"context"
	"crypto/ed25519"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"haggle/p2p"
)

// Stranger is a peer that keeps none of our rules: it opens as many streams as it likes and writes any bytes into them.
type Stranger struct {
	Key  ed25519.PrivateKey
	host host.Host
	to   peer.ID
}

// NewStranger makes a peer that nobody can call and connects it to a node by one of its addresses. It is gone with the test.
func NewStranger(t testing.TB, address string) *Stranger {
	t.Helper()
	s := &Stranger{Key: Key(t)}
	key, err := crypto.UnmarshalEd25519PrivateKey(s.Key)
	if err != nil {
		t.Fatal(err)
	}
	s.host, err = libp2p.New(libp2p.Identity(key), libp2p.NoListenAddrs, libp2p.DisableRelay(), libp2p.ResourceManager(&network.NullResourceManager{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.host.Close(); err != nil {
			t.Errorf("close stranger: %v", err)
		}
	})
	info, err := peer.AddrInfoFromString(address)
	if err != nil {
		t.Fatal(err)
	}
	s.to = info.ID
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.host.Connect(ctx, *info); err != nil {
		t.Fatalf("connect to %s: %v", address, err)
	}
	return s
}

// Open opens a stream to the node that the stranger is connected to. The caller must Close or Reset it.
func (s *Stranger) Open(ctx context.Context, p p2p.Protocol) (network.Stream, error) {
	return s.host.NewStream(ctx, s.to, protocol.ID(p))
}
