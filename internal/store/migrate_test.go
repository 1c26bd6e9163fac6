package store_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/host"
	"haggle/internal/renter"
	"haggle/internal/store"
	"haggle/market"
)

// old reads a state as an older version of the program wrote it; the files hold it in hexadecimal digits.
func old(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "old", name))
	must(t, err)
	data, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	must(t, err)
	return data
}

// insert puts a row into a database past the store's rules.
func insert(t *testing.T, path, statement string, args ...any) {
	t.Helper()
	_, err := raw(t, path).ExecContext(t.Context(), statement, args...)
	must(t, err)
}

func TestWhatAnOlderRigKeptIsStillThere(t *testing.T) {
	for steps := 1; steps <= 3; steps++ {
		p := path(t)
		must(t, store.MakeOldRig(t.Context(), p, steps))
		r := rigRecord(1)
		r.Lease.Job, r.Lease.Meter.BilledMs = market.JobRunning, 70_000
		insert(t, p, `INSERT INTO lease (id, bid, job, closed, created, state, sealed, offer, sealed_bid, task, env, image)
			VALUES (?, ?, 'running', 0, ?, ?, ?, ?, ?, ?, ?, ?)`,
			r.Lease.ID[:], r.Lease.Terms.Bid[:], r.Lease.Terms.Issued, old(t, "lease.hex"), r.Sealed, r.Offer, r.Bid,
			market.EncodeState(r.Job), market.EncodeState(r.Env), market.EncodeState(r.Image))
		receipt := receiptOf(r, 1, 60_000)
		body := market.HashOf([]byte("body"))
		insert(t, p, `INSERT INTO receipt (lease, seq, body, sealed, agreed) VALUES (?, 1, ?, ?, 0)`, r.Lease.ID[:], body[:], receipt.Sealed)
		insert(t, p, `INSERT INTO settings (one, paused, draining, offer_seq) VALUES (1, 1, 0, 77)`)
		want := host.Settings{Paused: true, OfferSeq: 77}
		if steps >= 2 {
			want.Trusted = []host.Trusted{{Owner: market.Key{1}, Name: "ann", Since: 5}}
			insert(t, p, `UPDATE settings SET trusted = ?`, market.EncodeState(want.Trusted))
		}
		extension := sealExtension(r.Lease.ID, 1, 5)
		if steps >= 3 {
			insert(t, p, `INSERT INTO extension (lease, seq, body, sealed) VALUES (?, 1, ?, ?)`, r.Lease.ID[:], body[:], extension)
		}

		s := openRig(t, p)
		got, err := s.Records(t.Context(), false)
		if diff := cmp.Diff([]host.Record{r}, got); err != nil || diff != "" {
			t.Errorf("version %d: records: %v (-want +got):\n%s", steps, err, diff)
		}
		list, err := s.Receipts(t.Context(), r.Lease.ID, 0)
		if diff := cmp.Diff([]host.Receipt{receipt}, list); err != nil || diff != "" {
			t.Errorf("version %d: receipts: %v (-want +got):\n%s", steps, err, diff)
		}
		if got, err := s.Settings(t.Context()); err != nil || !cmp.Equal(want, got) {
			t.Errorf("version %d: settings are %v, %v, want %v", steps, got, err, want)
		}
		if list, err := s.Extensions(t.Context(), r.Lease.ID); err != nil || len(list) != max(0, steps-2) {
			t.Errorf("version %d: %d extensions, %v", steps, len(list), err)
		}
		must(t, s.File(t.Context(), r.Lease, nil, []market.Paper{paymentOf(r.Lease.ID, 1, 5)}))
	}
}

func TestWhatAnOlderAgentKeptIsStillThere(t *testing.T) {
	for steps := 1; steps <= 3; steps++ {
		p := path(t)
		must(t, store.MakeOldAgent(t.Context(), p, steps))
		r := leaseRecord(1)
		r.State.BilledMs, r.State.Total, r.Head, r.Inside = 70_000, 7_000, market.Head{Seq: 1, BilledMs: 60_000}, renter.Inside{}
		insert(t, p, `INSERT INTO record (bid, lease, job, created, terms, sealed, offer, sealed_bid, task, env, rig_name, model, image, state,
			head_seq, head) VALUES (?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?)`,
			r.Bid[:], r.Lease[:], r.State.Created, old(t, "terms.hex"), r.Sealed, r.Offer, r.SealedBid, market.EncodeState(r.Job),
			market.EncodeState(r.Env), r.RigName, r.Model, r.Image, old(t, "record.hex"), market.EncodeState(r.Head))
		sealed, body := sealReceipt(r.Lease, 1, 60_000, true), market.HashOf([]byte("body"))
		insert(t, p, `INSERT INTO receipt (lease, seq, body, sealed) VALUES (?, 1, ?, ?)`, r.Lease[:], body[:], sealed)
		insert(t, p, `INSERT INTO reject (lease, seq, sealed) VALUES (?, 2, ?)`, r.Lease[:], []byte("no"))

		a := openAgent(t, p)
		got, err := a.Records(t.Context())
		if diff := cmp.Diff([]renter.Record{r}, got); err != nil || diff != "" {
			t.Errorf("version %d: records: %v (-want +got):\n%s", steps, err, diff)
		}
		list, err := a.Receipts(t.Context(), r.Lease)
		if diff := cmp.Diff([]renter.Receipt{{Lease: r.Lease, Seq: 1, Sealed: sealed}}, list); err != nil || diff != "" {
			t.Errorf("version %d: receipts: %v (-want +got):\n%s", steps, err, diff)
		}
		if list, err := a.Rejects(t.Context(), r.Lease); err != nil || len(list) != 1 {
			t.Errorf("version %d: %d refusals, %v", steps, len(list), err)
		}
		if got, err := a.Settings(t.Context()); err != nil || !cmp.Equal(got, renter.Settings{}) {
			t.Errorf("version %d: settings are %v, %v", steps, got, err)
		}
		must(t, a.File(t.Context(), r, paymentOf(r.Lease, 1, 5)))
	}
}
