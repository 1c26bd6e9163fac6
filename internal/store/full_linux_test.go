package store_test

import (
	"errors"
	"os"
	"path/filepath"
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
