//go:build linux

package volume

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// Usage is how full a disk is.
type Usage struct {
	UsedBytes, SizeBytes uint64
	// FreeBytes is what can still be written: less than the difference, because the file system keeps some room for itself.
	FreeBytes              uint64
	UsedInodes, SizeInodes uint64 // files and folders
}

// Bounds of a full disk. The kernel writes in pieces and takes nothing of a piece that does not fit: after writes of 8 MiB the
// disk refused the next with 1.7 MiB free, after writes of 64 KiB with none. And a program that finds no room often removes
// what it could not finish.
const (
	fullBytes  = 2 << 20
	fullInodes = 16
)

// Full reports whether there is no room for one more piece of 2 MiB, or for 16 more files.
func (u Usage) Full() bool { return u.within(1) }

func (u Usage) within(times uint64) bool {
	return u.FreeBytes < times*fullBytes || u.SizeInodes-u.UsedInodes < times*fullInodes
}

// Alarm turns regular readings of one disk into one report for each time that it fills up. The zero value is ready. It is not
// safe for concurrent use.
//
// A reading costs one system call and no I/O; every 2 s is often enough. A program that fills its disk and tidies up between two
// readings is missed.
type Alarm struct{ rung bool }

// Rings reports whether the disk has just become full. It does not ring again before four times the room of Usage.Full was
// free.
func (a *Alarm) Rings(u Usage) bool {
	if a.rung {
		a.rung = u.within(4)
		return false
	}
	a.rung = u.Full()
	return a.rung
}

// Usage reads how full the disk of a job is. runtime.ErrNotFound when it is not mounted.
func (d *Disks) Usage(id string) (Usage, error) {
	if err := runtime.ValidateID(id); err != nil {
		return Usage{}, fmt.Errorf("usage of a disk: %w", err)
	}
	u, err := d.usage(id)
	if err != nil {
		return Usage{}, fmt.Errorf("usage of disk %s: %w", id, err)
	}
	return u, nil
}

func (d *Disks) usage(id string) (Usage, error) {
	at := d.path(id, endMount)
	if d.leaves(DiskQuota) {
		at = d.path(id, endPlain)
	} else if device, err := mountedDevice(at); err == nil && device == "" {
		return Usage{}, runtime.ErrNotFound
	}
	var st unix.Statfs_t
	switch err := unix.Statfs(at, &st); {
	case errors.Is(err, unix.ENOENT):
		return Usage{}, runtime.ErrNotFound
	case err != nil:
		return Usage{}, err
	}
	block := uint64(st.Frsize)
	return Usage{
		UsedBytes: (st.Blocks - st.Bfree) * block, SizeBytes: st.Blocks * block, FreeBytes: st.Bavail * block,
		UsedInodes: st.Files - st.Ffree, SizeInodes: st.Files,
	}, nil
}

// Full reports whether the disk of a job is full, as Usage.Full says; one that is not mounted is not.
func (d *Disks) Full(id string) bool {
	u, err := d.Usage(id)
	return err == nil && u.Full()
}
