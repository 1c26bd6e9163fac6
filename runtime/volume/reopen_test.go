//go:build linux

package volume_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"haggle/runtime"
	"haggle/runtime/volume"
)

// roomOf is what the file of a disk takes.
func roomOf(t *testing.T, dir, id string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(dir, id+".img"), &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

func TestASettledDiskTakesItsRoomBackAndKeepsWhatIsOnIt(t *testing.T) {
	ctx := context.Background()
	for name, open := range map[string]func(d *volume.Disks) (volume.Disk, error){
		"made again": func(d *volume.Disks) (volume.Disk, error) { return d.Make(ctx, "job", size, owner) },
		"reopened": func(d *volume.Disks) (volume.Disk, error) {
			disk, writable, err := d.Reopen(ctx, "job")
			if err == nil && !writable {
				err = errors.New("it is read-only")
			}
			return disk, err
		},
		"reopened after the machine was down": func(d *volume.Disks) (volume.Disk, error) {
			if err := d.Move(ctx, "job", "other"); err != nil { // which unmounts it
				return volume.Disk{}, err
			}
			if err := d.Move(ctx, "other", "job"); err != nil {
				return volume.Disk{}, err
			}
			disk, _, err := d.Reopen(ctx, "job")
			return disk, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, dir := newDisks(t)
			kept := filepath.Join(makeDisk(t, d, "job", size).Data, "kept")
			if err := os.WriteFile(kept, bytes.Repeat([]byte("x"), 4*mib), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := d.Settle(ctx, "job"); err != nil {
					t.Fatal(err)
				}
				if n := roomOf(t, dir, "job"); n > size/2 {
					t.Errorf("settled it takes %d bytes", n)
				}
				disk, err := open(d)
				if err != nil {
					t.Fatal(err)
				}
				if n := roomOf(t, dir, "job"); n < size {
					t.Errorf("it takes %d of its %d bytes", n, size)
				}
				if b, err := os.ReadFile(kept); err != nil || len(b) != 4*mib {
					t.Errorf("%d bytes of the file are left: %v", len(b), err)
				}
				if err := os.WriteFile(filepath.Join(disk.Upper, "new"), []byte("x"), 0o600); err != nil {
					t.Errorf("a write after it: %v", err)
				}
			}
		})
	}
}

func TestADiskIsMovedAndNeverOverAnother(t *testing.T) {
	ctx := context.Background()
	d, _ := newDisks(t)
	disk := makeDisk(t, d, "a", size)
	if err := os.WriteFile(filepath.Join(disk.Data, "kept"), []byte("of a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(filepath.Join(disk.Data, "kept"), owner+1000, owner+1000); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also after somebody died over it
		if err := d.Move(ctx, "a", "b"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := d.Reopen(ctx, "a"); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("the old one: %v", err)
	}
	if _, err := d.Make(ctx, "b", 2*size, owner); !errors.Is(err, runtime.ErrConflict) {
		t.Errorf("the new one in another size: %v", err)
	}
	moved := makeDisk(t, d, "b", size)
	var st unix.Stat_t
	b, err := os.ReadFile(filepath.Join(moved.Data, "kept"))
	if err = errors.Join(err, unix.Stat(filepath.Join(moved.Data, "kept"), &st)); err != nil || string(b) != "of a" || st.Uid != owner+1000 {
		t.Errorf("the file has %q and belongs to %d: %v", b, st.Uid, err)
	}
	makeDisk(t, d, "a", size)
	if err := d.Move(ctx, "a", "b"); !errors.Is(err, runtime.ErrConflict) {
		t.Errorf("over another: %v", err)
	}
	if err := d.Move(ctx, "nobody", "c"); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("of nobody: %v", err)
	}
	if ids, err := d.List(); err != nil || len(ids) != 2 {
		t.Errorf("there are %q: %v", ids, err)
	}
}

func TestADiskThatTheMachineHasNoRoomForIsThereToBeRead(t *testing.T) {
	ctx := context.Background()
	d, _ := newDisks(t)
	machine := makeDisk(t, d, "machine", 256*mib)
	dir := filepath.Join(machine.Data, "disks")
	inner := newDisksIn(t, dir)
	kept := filepath.Join(makeDisk(t, inner, "one", 96*mib).Data, "kept")
	if err := os.WriteFile(kept, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := inner.Settle(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	makeDisk(t, inner, "two", 128*mib)
	for range 2 {
		disk, writable, err := inner.Reopen(ctx, "one")
		if err != nil || writable {
			t.Fatalf("writable %t: %v", writable, err)
		}
		if b, err := os.ReadFile(kept); err != nil || string(b) != "kept" {
			t.Errorf("it holds %q: %v", b, err)
		}
		if err := os.WriteFile(filepath.Join(disk.Data, "more"), nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("a write to it: %v", err)
		}
		if _, err := inner.Settle(ctx, "one"); err != nil {
			t.Error(err)
		}
	}
	if _, err := inner.Make(ctx, "one", 96*mib, owner); !errors.Is(err, runtime.ErrNoRoom) {
		t.Errorf("made again: %v", err)
	}
	if n := roomOf(t, dir, "one"); n > 48*mib {
		t.Errorf("it takes %d bytes", n)
	}
	if err := inner.Destroy(ctx, "two"); err != nil {
		t.Fatal(err)
	}
	if _, writable, err := inner.Reopen(ctx, "one"); err != nil || !writable {
		t.Errorf("with room again: writable %t: %v", writable, err)
	}
}
