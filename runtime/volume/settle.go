//go:build linux

package volume

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// freshMode is the mode of the image of a disk that a job may fill, settledMode that of one that nobody writes to any more: it
// takes no room but what is on it.
const (
	freshMode   = 0o600
	settledMode = 0o400
)

// fitrim is FITRIM of linux/fs.h, _IOWR('X', 121, struct fstrim_range), on all systems that haggled is built for.
const fitrim = 0xc0185879

// Settle gives the room that the disk of an ended job does not use back to the machine: such a disk is kept for what is on it,
// for hours, and its whole size would keep other jobs out. Nobody can write to it from then on, until Make or Reopen. It returns
// how many bytes were given back. Doing it again does nothing; an id without a disk is no error. Nothing may run on the disk.
func (d *Disks) Settle(ctx context.Context, id string) (freed int64, err error) {
	if err := runtime.ValidateID(id); err != nil {
		return 0, fmt.Errorf("settle disk: %w", err)
	}
	if d.leaves(DiskQuota) || ctx.Err() != nil {
		return 0, ctx.Err()
	}
	freed, err = d.settle(id)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return freed, fmt.Errorf("settle disk %s: %w", id, err)
	}
	return freed, nil
}

func (d *Disks) settle(id string) (int64, error) {
	image, at := d.path(id, endImage), d.path(id, endMount)
	before, err := sizeOnDisk(image)
	if err != nil {
		return 0, err
	}
	if device, err := mountedDevice(at); err != nil || device == "" {
		return 0, err
	}
	if err := trim(at); err != nil {
		return 0, err
	}
	if err := unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_RDONLY|mountFlags, ""); err != nil {
		return 0, &os.PathError{Op: "remount read-only", Path: at, Err: err}
	}
	if err := os.Chmod(image, settledMode); err != nil {
		return 0, err
	}
	after, err := sizeOnDisk(image)
	return before - after, err
}

// sizeOnDisk is the room that a file takes, holes left out.
func sizeOnDisk(path string) (int64, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Blocks * 512, nil
}

// trim tells the disk which of its blocks hold nothing. A loop device makes holes of them.
func trim(at string) error {
	f, err := os.Open(at)
	if err != nil {
		return err
	}
	defer f.Close()
	all := struct{ start, length, least uint64 }{length: math.MaxUint64} // struct fstrim_range of linux/fs.h
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), fitrim, uintptr(unsafe.Pointer(&all)))
	if errno != 0 && errno != unix.EOPNOTSUPP { // a file system that makes no holes keeps the room
		return &os.PathError{Op: "trim", Path: at, Err: errno}
	}
	return nil
}
