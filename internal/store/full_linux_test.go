package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"haggle/internal/host"
	"haggle/internal/store"
	"haggle/market"
)

// requireSmallDisk mounts a disk of 2 MiB, which takes root and the right to mount.
func requireSmallDisk(t *testing.T) string {
	t.Helper()
	lacks := t.Skipf
	if os.Getenv("CI") == "true" {
		lacks = t.Fatalf
	}
	if os.Getuid() != 0 {
		lacks("needs root, to mount a small disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=2m"); err != nil {
		lacks("needs the right to mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

func TestAFullDiskLosesNothingThatWasAcknowledged(t *testing.T) {
	dir := requireSmallDisk(t)
	p, ballast := filepath.Join(dir, "haggled.db"), filepath.Join(dir, "ballast")
	must(t, os.WriteFile(ballast, make([]byte, 1<<20), 0o600))
	s := openRig(t, p)
	r := rigRecord(1)
	must(t, s.Create(t.Context(), r))
	id := r.Lease.ID
	save := func(seq uint32) error {
		return s.Save(t.Context(), r.Lease, host.Receipt{Lease: id, Seq: seq, Sealed: sealReceipt(id, seq, 1, false)})
	}
	var full error
	acknowledged := uint32(0)
	for full == nil && acknowledged < 20_000 {
		if full = save(acknowledged + 1); full == nil {
			acknowledged++
		}
	}
	wantError(t, full, store.ErrFull)
	if !s.Full() {
		t.Error("it does not say that the disk is full")
	}
	if code := market.CodeOf(full); code != market.CodeDiskFull {
		t.Errorf("others are told %s", code)
	}
	if list, err := s.Receipts(t.Context(), id, 0); err != nil || uint32(len(list)) != acknowledged {
		t.Errorf("while the disk is full: %d receipts, %v, want %d", len(list), err, acknowledged)
	}
	if err := s.Close(); err != nil && !errors.Is(err, store.ErrFull) {
		t.Logf("close on a full disk: %v", err)
	}
	must(t, os.Remove(ballast))
	s = openRig(t, p)
	if list, err := s.Receipts(t.Context(), id, 0); err != nil || uint32(len(list)) != acknowledged {
		t.Errorf("with room again: %d receipts, %v, want %d", len(list), err, acknowledged)
	}
	must(t, save(acknowledged+1))
}

func TestManyWritersOnAFullDiskKnowWhatIsKept(t *testing.T) {
	const writers = 16
	dir := requireSmallDisk(t)
	ballast := filepath.Join(dir, "ballast")
	must(t, os.WriteFile(ballast, make([]byte, 1<<20), 0o600))
	s := openRig(t, filepath.Join(dir, "haggled.db"))
	for n := range byte(writers) {
		must(t, s.Create(t.Context(), rigRecord(n)))
	}
	var acknowledged [writers]int
	var group sync.WaitGroup
	for n := range byte(writers) {
		group.Go(func() {
			r := rigRecord(n)
			for seq := uint32(1); ; seq++ {
				r.Lease.Meter.BilledMs = int64(seq)
				err := s.Save(t.Context(), r.Lease, receiptOf(r, seq, int64(seq)))
				if errors.Is(err, store.ErrFull) {
					return
				}
				if err != nil || seq > 20_000 {
					t.Errorf("writer %d after %d receipts: %v", n, acknowledged[n], err)
					return
				}
				acknowledged[n]++
			}
		})
	}
	group.Wait()
	must(t, os.Remove(ballast))
	must(t, s.SaveSettings(t.Context(), host.Settings{})) // with room again
	for n := range byte(writers) {
		id := rigRecord(n).Lease.ID
		list, err := s.Receipts(t.Context(), id, 0)
		must(t, err)
		r, err := s.Record(t.Context(), id)
		must(t, err)
		if len(list) != acknowledged[n] || r.Lease.Meter.BilledMs != int64(len(list)) {
			t.Errorf("writer %d: %d acknowledged, %d kept, the state is of %d", n, acknowledged[n], len(list), r.Lease.Meter.BilledMs)
		}
	}
}

func TestACopyThatFindsNoRoomLeavesNothing(t *testing.T) {
	s := openRig(t, path(t))
	r := rigRecord(1)
	r.Offer = make([]byte, 4<<20)
	must(t, s.Create(t.Context(), r))
	dir := requireSmallDisk(t)
	_, err := s.Backup(t.Context(), filepath.Join(dir, "copy.db"))
	wantError(t, err, store.ErrFull)
	if err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v does not name the disk that is full", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 0 {
		t.Errorf("%v was left, %v", left, err)
	}
	if s.Full() {
		t.Error("it says that its own disk is full")
	}
	must(t, s.Save(t.Context(), r.Lease, receiptOf(r, 1, 1)))
}

func TestARestoreThatFindsNoRoomChangesNothing(t *testing.T) {
	dir, to := requireSmallDisk(t), path(t)
	p := filepath.Join(dir, "rig.db")
	s := openRig(t, to)
	r := rigRecord(1)
	r.Offer = make([]byte, 4<<20)
	must(t, s.Create(t.Context(), r))
	must(t, s.Close())
	s = openRig(t, p)
	must(t, s.Create(t.Context(), rigRecord(2)))
	must(t, s.Close())
	_, err := store.RestoreRig(t.Context(), to, p, origin())
	wantError(t, err, syscall.ENOSPC)
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 2 {
		t.Errorf("there are %v, %v, want the database and its lock", left, err)
	}
	if list, err := openRig(t, p).Records(t.Context(), true); err != nil || len(list) != 1 || list[0].Lease.ID != rigRecord(2).Lease.ID {
		t.Errorf("%d leases, %v, want the one that was there", len(list), err)
	}
}
