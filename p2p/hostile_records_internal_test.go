package p2p

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p-kad-dht/records"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/host/peerstore/pstoremem"

	"haggle/market"
)

// newKeeper makes the library's keeper of announcements on a store of ours.
func newKeeper(t *testing.T, store *recordStore) *records.ProviderManager {
	t.Helper()
	book, err := pstoremem.NewPeerstore()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = book.Close() })
	keeper, err := records.NewProviderManager("self", book, store, records.ProvideValidity(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keeper.Close() })
	return keeper
}

// numbered makes up a peer.
func numbered(t *testing.T, n int) peer.AddrInfo {
	t.Helper()
	seed := make([]byte, ed25519.SeedSize)
	binary.LittleEndian.PutUint64(seed, uint64(n))
	id, err := peerID(market.KeyOf(ed25519.NewKeyFromSeed(seed)))
	if err != nil {
		t.Fatal(err)
	}
	return peer.AddrInfo{ID: id}
}

func TestOnePeerAnnouncesNoMoreThanItsShare(t *testing.T) {
	store := newRecordStore(10_000, 256)
	keeper := newKeeper(t, store)
	flood, honest := numbered(t, 1), numbered(t, 2)
	if err := keeper.AddProvider(t.Context(), []byte("key 7"), honest); err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		if err := keeper.AddProvider(t.Context(), fmt.Appendf(nil, "key %d", i), flood); err != nil {
			t.Fatal(err)
		}
	}
	if store.count > 257 {
		t.Errorf("%d announcements are kept of two peers", store.count)
	}
	found, err := keeper.GetProviders(t.Context(), []byte("key 7"))
	if err != nil || len(found) != 2 {
		t.Errorf("%d peers are found under a key, want 2: %v", len(found), err)
	}
}

func TestAnnouncementsOfManyPeersAreBounded(t *testing.T) {
	store := newRecordStore(1000, 256)
	keeper := newKeeper(t, store)
	for i := range 4000 {
		if err := keeper.AddProvider(t.Context(), []byte("any"), numbered(t, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := keeper.Close(); err != nil { // writes what waits
		t.Fatal(err)
	}
	sum := 0
	for _, n := range store.peers {
		sum += n
	}
	if store.count != 1000 || sum != 1000 || len(store.keys) != 1 {
		t.Errorf("%d announcements of %d peers under %d keys are kept, want 1000", store.count, len(store.peers), len(store.keys))
	}
}

func TestAnnouncementsThatAreOverAreDropped(t *testing.T) {
	store := newRecordStore(1000, 256)
	book, err := pstoremem.NewPeerstore()
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	keeper, err := records.NewProviderManager("self", book, store, records.ProvideValidity(time.Nanosecond))
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.AddProvider(t.Context(), []byte("any"), numbered(t, 1)); err != nil {
		t.Fatal(err)
	}
	_ = keeper.Close() // writes what waits
	again, err := records.NewProviderManager("self", book, store, records.ProvideValidity(time.Nanosecond))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if found, err := again.GetProviders(t.Context(), []byte("any")); err != nil || len(found) != 0 || store.count != 0 {
		t.Errorf("%d are found and %d kept: %v", len(found), store.count, err)
	}
}

func TestANodeKeepsNoMoreAnnouncementsOfAPeerThanItsShare(t *testing.T) {
	keeper := labNode(t, 1).dht.ProviderStore()
	flood, kept := numbered(t, 7), 0
	const many = 2000
	for i := range many {
		if err := keeper.AddProvider(t.Context(), fmt.Appendf(nil, "key %d", i), flood); err != nil {
			t.Fatal(err)
		}
	}
	for i := range many {
		found, err := keeper.GetProviders(t.Context(), fmt.Appendf(nil, "key %d", i))
		if err != nil {
			t.Fatal(err)
		}
		kept += len(found)
	}
	if kept < recordsPerPeer || kept > 2*recordsPerPeer+64 { // with those that wait to be written
		t.Errorf("%d announcements of one peer are kept", kept)
	}
}
