//go:build linux

package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// Reopen mounts the disk of an ended job, if it is not mounted, and makes one that was settled writable again: it takes the
// room of its whole size back from the machine. Where the machine has none, the disk is there to be read only, and writable is
// false. Settle gives the room up again. runtime.ErrNotFound for an id without a disk.
func (d *Disks) Reopen(ctx context.Context, id string) (disk Disk, writable bool, err error) {
	if err := runtime.ValidateID(id); err != nil {
		return Disk{}, false, fmt.Errorf("open disk: %w", err)
	}
	disk, writable, err = d.reopen(ctx, id)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", runtime.ErrNotFound, err)
	}
	if err != nil {
		return Disk{}, false, fmt.Errorf("open disk %s: %w", id, err)
	}
	return disk, writable, nil
}

func (d *Disks) reopen(ctx context.Context, id string) (Disk, bool, error) {
	held, err := d.alone(ctx, id, d.toDetach(id))
	if err != nil {
		return Disk{}, false, err
	}
	defer d.unlock(held)
	if d.leaves(DiskQuota) {
		at := d.path(id, endPlain)
		_, err := os.Lstat(at)
		return diskAt(at), true, err
	}
	image, err := openImage(d.path(id, endImage))
	if err != nil {
		return Disk{}, false, err
	}
	defer image.Close()
	switch err := d.regrow(ctx, image); {
	case err == nil:
		disk, err := d.attach(ctx, id, image, mountFlags)
		return disk, true, err
	case errors.Is(err, runtime.ErrNoRoom):
		disk, err := d.attach(ctx, id, image, mountFlags|unix.MS_RDONLY)
		return disk, false, err
	default:
		return Disk{}, false, err
	}
}

// toDetach says what must go of a disk before it is mounted for a job. A settled one is mounted anew: the kernel remembers what it
// has made holes of for as long as it is mounted, and would make none when it is settled again.
func (d *Disks) toDetach(id string) which {
	info, err := os.Lstat(d.path(id, endImage))
	return which(err == nil && info.Mode().Perm() == settledMode)
}

// regrow takes the room of a settled disk from the machine again. Others have theirs.
func (d *Disks) regrow(ctx context.Context, image *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(image.Fd()), &st); err != nil {
		return fmt.Errorf("stat %s: %w", image.Name(), err)
	}
	if st.Mode&0o200 != 0 {
		return nil
	}
	if err := d.checkRoom(max(0, st.Size-st.Blocks*512)); err != nil {
		return err
	}
	// From here on its whole size counts as promised, whoever dies.
	if err := image.Chmod(freshMode); err != nil {
		return err
	}
	err := allocate(ctx, image, st.Size)
	if errors.Is(err, unix.EOPNOTSUPP) { // it is sparse, as at first
		return nil
	}
	if err != nil {
		return errors.Join(err, image.Chmod(settledMode))
	}
	return nil
}

// attach mounts a whole disk, or changes the flags of the mount that is there.
func (d *Disks) attach(ctx context.Context, id string, image *os.File, flags uintptr) (Disk, error) {
	at := d.path(id, endMount)
	device, err := mountedDevice(at)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Disk{}, err
	case device == "":
		err = mountImage(ctx, image, at, flags)
	case backingFile(device) != image.Name():
		err = fmt.Errorf("something else is mounted on %s", at)
	default:
		var st unix.Statfs_t
		if err = unix.Statfs(at, &st); err != nil {
			err = &os.PathError{Op: "statfs", Path: at, Err: err}
		} else if st.Flags&unix.ST_RDONLY != int64(flags&unix.MS_RDONLY) {
			if err = unix.Mount("", at, "", unix.MS_REMOUNT|flags, ""); err != nil {
				err = &os.PathError{Op: "remount", Path: at, Err: err}
			}
		}
	}
	return diskAt(at), err
}
