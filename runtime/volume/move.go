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

// Move gives the disk of one job to another, as it is and not mounted; Make or Reopen mounts it. Nothing may run on it; what still
// has it open is waited for, for 10 s at most. Whoever dies over it leaves the disk with one of the two. A disk that was moved
// before is no error. runtime.ErrNotFound when neither has one, runtime.ErrConflict when both have.
func (d *Disks) Move(ctx context.Context, from, to string) error {
	if err := errors.Join(runtime.ValidateID(from), runtime.ValidateID(to)); err != nil {
		return fmt.Errorf("move disk: %w", err)
	}
	held, err := d.alone(ctx, from, every)
	if err != nil {
		return fmt.Errorf("move disk %s: %w", from, err)
	}
	defer d.unlock(held)
	if err := d.move(from, to); err != nil {
		return fmt.Errorf("move disk %s to %s: %w", from, to, err)
	}
	if err := held.Sync(); err != nil {
		return fmt.Errorf("move disk %s: %w", from, err)
	}
	return nil
}

func (d *Disks) move(from, to string) error {
	end := endImage
	if d.leaves(DiskQuota) {
		end = endPlain
	}
	source, err := exists(d.path(from, end))
	if err != nil {
		return err
	}
	target, err := exists(d.path(to, end))
	switch {
	case err != nil:
		return err
	case source && target:
		return fmt.Errorf("%w: both are there", runtime.ErrConflict)
	case !source && !target:
		return runtime.ErrNotFound
	case source:
		if err := os.Rename(d.path(from, end), d.path(to, end)); err != nil {
			return err
		}
	}
	// Never with what is in it: it is empty.
	if err := unix.Rmdir(d.path(from, endMount)); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove %s: %w", d.path(from, endMount), err)
	}
	return nil
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
