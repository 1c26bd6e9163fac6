package store_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"haggle/internal/host"
	"haggle/internal/renter"
	"haggle/internal/store"
	"haggle/market"
)

const network = "lab-store"

// seed makes a key that is the same in every run.
func seed(name byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), name))
}

func rigKey() ed25519.PrivateKey    { return seed(1) }
func renterKey() ed25519.PrivateKey { return seed(2) }

// termsOf makes the terms of the n-th lease.
func termsOf(n byte) market.Terms {
	return market.Terms{
		Bid: market.HashOf([]byte{n}), Rig: market.KeyOf(rigKey()), Renter: market.KeyOf(renterKey()),
		Slots:  []market.GrantedSlot{{Index: n, Card: market.HashOf([]byte("card")), Model: "RTX_4090"}},
		Mode:   market.ModeFirm,
		Prices: market.Prices{Currency: "USD", Slot: 400_000}, Budget: 3_000_000, DurationMs: 7_200_000,
		Issued: 1_700_000_000_000 + int64(n), Limits: market.Limits{UnsignedMs: 180_000, Credit: market.Unlimited},
	}
}

// rigRecord makes the record of the n-th lease as the rig has it at the grant.
func rigRecord(n byte) host.Record {
	t := termsOf(n)
	sealed := market.SealTerms(network, rigKey(), t)
	l := market.NewLease(sealed.ID(), t, market.Instant{Mono: 5, Wall: t.Issued}, false)
	return host.Record{
		Lease: l, Sealed: sealed.Encode(), Offer: []byte("offer"), Bid: []byte("bid"),
		Job: market.Job{Salt: market.Nonce{n}, Image: "sha256:00", Args: []string{"train", "--fast"}},
		Env: market.Env{"TOKEN=secret-token"}, Image: market.ImageName{Name: "lab", Digest: "sha256:00", Size: 12},
	}
}

// bidRecord makes the record of the n-th bid as the agent has it before the grant.
func bidRecord(n byte) renter.Record {
	t := termsOf(n)
	return renter.Record{
		Bid: t.Bid, Offer: []byte("offer"), SealedBid: []byte("bid"), RigName: "attic", Model: "RTX_4090", Image: "lab",
		Job: market.Job{Salt: market.Nonce{n}, Image: "sha256:00", Args: []string{"train"}}, Env: market.Env{"TOKEN=secret-token"},
		State: renter.State{Created: t.Issued},
		Inside: renter.Inside{
			Name: "trial", Labels: []string{"a"}, Ports: []renter.Port{{Name: "ui", Port: 80}}, Src: "/home/src", Secrets: true,
			Collects: []renter.Collect{{Remote: "out", Local: "/home/out"}}, Resumed: &renter.Restoration{Lease: market.LeaseID{n}, Seq: 2},
			Checkpoint: &renter.Checkpoint{Dir: "/work/ckpt", EveryMs: 5, To: []string{"renter"}},
		},
	}
}

// sealExtension makes an extension that both signed; budget decides its content.
func sealExtension(id market.LeaseID, seq uint32, budget market.Micro) []byte {
	e := market.Extension{Lease: id, Seq: seq, DurationMs: 9_000_000, Budget: budget}
	return market.Consent(market.SealExtension(network, renterKey(), e), rigKey()).Encode()
}

// leaseRecord makes the record of the n-th lease as the agent has it after the grant.
func leaseRecord(n byte) renter.Record {
	r := bidRecord(n)
	r.Terms = termsOf(n)
	sealed := market.SealTerms(network, rigKey(), r.Terms).Sign(market.RoleRenter, renterKey())
	r.Lease, r.Sealed = sealed.ID(), sealed.Encode()
	r.State.Job = market.JobRunning
	return r
}

// sealReceipt makes a receipt; billed decides its content.
func sealReceipt(id market.LeaseID, seq uint32, billed int64, agreed bool) []byte {
	s := market.SealReceipt(network, rigKey(), market.Receipt{Lease: id, Seq: seq, Kind: market.ReceiptInterval, BilledMs: billed})
	if agreed {
		s = s.Sign(market.RoleRenter, renterKey())
	}
	return s.Encode()
}

func openRig(t *testing.T, path string) *store.Rig {
	t.Helper()
	r, err := store.OpenRig(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func openAgent(t *testing.T, path string) *store.Agent {
	t.Helper()
	a, err := store.OpenAgent(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// path is where a test keeps its database.
func path(t *testing.T) string { return filepath.Join(t.TempDir(), "haggle.db") }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

// unknownLease is what a store says of a lease that it has not.
func unknownLease() error { return market.NewError(market.CodeLeaseUnknown) }

// TestMain lets the test binary be the process that TestKeepsWhatItAcknowledgedWhenKilled kills.
func TestMain(m *testing.M) {
	if victim := os.Getenv(victimEnv); victim != "" {
		os.Exit(beVictim(context.Background(), victim))
	}
	os.Exit(m.Run())
}
