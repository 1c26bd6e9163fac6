package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"haggle/internal/host"
	"haggle/internal/store"
	"haggle/market"
)

// victimEnv makes the test binary write to the database that it names until it is killed.
const victimEnv = "HAGGLE_STORE_VICTIM"

// victims is how many leases a victim writes at once, so that their changes share transactions.
const victims = 4

// beVictim saves receipts of some leases after those it finds, and says so for each that is saved.
func beVictim(ctx context.Context, path string) int {
	s, err := store.OpenRig(ctx, path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	failed := make(chan error)
	for n := range byte(victims) {
		go func() { failed <- write(ctx, s, n) }()
	}
	fmt.Fprintln(os.Stderr, <-failed)
	return 1
}

// write saves receipts of the n-th lease until that fails.
func write(ctx context.Context, s *store.Rig, n byte) error {
	r := rigRecord(n)
	if err := s.Create(ctx, r); err != nil && !errors.Is(err, store.ErrGranted) {
		return err
	}
	known, err := s.Receipts(ctx, r.Lease.ID, 0)
	if err != nil {
		return err
	}
	for seq := uint32(len(known)) + 1; ; seq++ {
		r.Lease.Meter.BilledMs = int64(seq)
		receipt := receiptOf(r, seq, int64(seq))
		if err := s.File(ctx, r.Lease, []host.Receipt{receipt}, []market.Paper{paymentOf(r.Lease.ID, seq, 1)}); err != nil {
			return err
		}
		fmt.Println(n, seq)
	}
}

func TestKeepsWhatItAcknowledgedWhenKilled(t *testing.T) {
	const kills = 20
	p := path(t)
	self, err := os.Executable()
	must(t, err)
	for round := range kills {
		last := killAfter(t, self, p, 1+round*7%23)
		s := openRig(t, p)
		for n := range byte(victims) {
			checkVictim(t, s, round, n, last[n])
		}
		must(t, s.Close())
	}
}

// checkVictim checks what is kept of the n-th lease: all that was acknowledged, and of every change all or nothing.
func checkVictim(t *testing.T, s *store.Rig, round int, n byte, last uint32) {
	t.Helper()
	id := rigRecord(n).Lease.ID
	rec, err := s.Record(t.Context(), id)
	if last == 0 && errors.Is(err, unknownLease()) {
		return // it was killed before the first
	}
	must(t, err)
	list, err := s.Receipts(t.Context(), id, 0)
	must(t, err)
	papers, err := s.Papers(t.Context(), id, market.KindPayment)
	must(t, err)
	if uint32(len(list)) < last {
		t.Fatalf("round %d: receipt %d of lease %d was acknowledged, %d are kept", round, last, n, len(list))
	}
	for i, r := range list {
		if r.Seq != uint32(i)+1 || string(r.Sealed) != string(sealReceipt(id, r.Seq, int64(r.Seq), false)) {
			t.Fatalf("round %d: receipt %d of lease %d is another", round, i+1, n)
		}
	}
	if rec.Lease.Meter.BilledMs != int64(len(list)) || len(papers) != len(list) {
		t.Fatalf("round %d: the state of lease %d is of receipt %d, there are %d receipts and %d payments",
			round, n, rec.Lease.Meter.BilledMs, len(list), len(papers))
	}
}

// killAfter runs a victim, kills it after some acknowledgements, and returns the last that it gave for each lease.
func killAfter(t *testing.T, self, path string, acknowledgements int) (last [victims]uint32) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), victimEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	said := 0
	for ; lines.Scan(); said++ {
		var n int
		var seq uint32
		if _, err := fmt.Sscan(lines.Text(), &n, &seq); err != nil || n < 0 || n >= victims {
			t.Fatalf("victim said %q", lines.Text())
		}
		last[n] = seq
		if said == acknowledgements {
			must(t, cmd.Process.Kill())
		}
	}
	_ = cmd.Wait() // it was killed
	if said == 0 {
		t.Fatal("the victim saved nothing")
	}
	return last
}
