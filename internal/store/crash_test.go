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
)

// victimEnv makes the test binary write to the database that it names until it is killed.
const victimEnv = "HAGGLE_STORE_VICTIM"

// beVictim saves receipts after those it finds, and says so for each that is saved.
func beVictim(ctx context.Context, path string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s, err := store.OpenRig(ctx, path)
	if err != nil {
		return fail(err)
	}
	r := rigRecord(1)
	if err := s.Create(ctx, r); err != nil && !errors.Is(err, store.ErrGranted) {
		return fail(err)
	}
	known, err := s.Receipts(ctx, r.Lease.ID, 0)
	if err != nil {
		return fail(err)
	}
	for seq := uint32(len(known)) + 1; ; seq++ {
		r.Lease.Meter.BilledMs = int64(seq)
		err := s.Save(ctx, r.Lease, host.Receipt{Lease: r.Lease.ID, Seq: seq, Sealed: sealReceipt(r.Lease.ID, seq, int64(seq), false)})
		if err != nil {
			return fail(err)
		}
		fmt.Println(seq)
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
		id := rigRecord(1).Lease.ID
		list, err := s.Receipts(t.Context(), id, 0)
		must(t, err)
		if uint32(len(list)) < last {
			t.Fatalf("round %d: receipt %d was acknowledged, %d are kept", round, last, len(list))
		}
		for i, r := range list {
			if r.Seq != uint32(i)+1 || string(r.Sealed) != string(sealReceipt(id, r.Seq, int64(r.Seq), false)) {
				t.Fatalf("round %d: receipt %d is another", round, i+1)
			}
		}
		rec, err := s.Record(t.Context(), id)
		must(t, err)
		if rec.Lease.Meter.BilledMs != int64(len(list)) {
			t.Fatalf("round %d: the state is of receipt %d, the last receipt is %d", round, rec.Lease.Meter.BilledMs, len(list))
		}
		must(t, s.Close())
	}
}

// killAfter runs a victim, kills it after some acknowledgements, and returns the last that it gave.
func killAfter(t *testing.T, self, path string, acknowledgements int) (last uint32) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), victimEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
			t.Errorf("victim said %q", lines.Text())
		}
		if n == acknowledgements {
			must(t, cmd.Process.Kill())
		}
	}
	_ = cmd.Wait() // it was killed
	if last == 0 {
		t.Fatal("the victim saved nothing")
	}
	return last
}
