//go:build linux

package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

const (
	// goPatience is how long a disk may still be in use after it was taken out of sight.
	goPatience = 10 * time.Second
	goPause    = time.Millisecond
	goMaxPause = 50 * time.Millisecond
)

// Destroy ends the disk of a job and returns when nothing is left of it: no mount, no loop device, no file. Nothing of the job
// may run any more; what still has the disk open is waited for, for 10 s at most. After an error, call it again. An unknown id
// is no error.
func (d *Disks) Destroy(ctx context.Context, id string) error {
	if err := runtime.ValidateID(id); err != nil {
		return fmt.Errorf("destroy disk: %w", err)
	}
	held, err := d.alone(ctx, id, every)
	if err != nil {
		return fmt.Errorf("destroy disk %s: %w", id, err)
	}
	defer d.unlock(held)
	if err := errors.Join(d.removeFiles(id), held.Sync()); err != nil {
		return fmt.Errorf("destroy disk %s: %w", id, err)
	}
	return nil
}

// which disks alone means.
type which bool

const (
	every    which = true
	halfMade which = false // a whole disk is left as it is
)

// alone takes a disk out of sight, waits until nobody uses it, and returns with the folder's lock. It does not hold the lock
// while it waits.
func (d *Disks) alone(ctx context.Context, id string, of which) (*os.File, error) {
	var late <-chan time.Time
	for pause := goPause; ; pause = min(2*pause, goMaxPause) {
		held, err := d.lock(ctx)
		if err != nil {
			return nil, err
		}
		device, err := d.detach(id, of)
		if err == nil && device == "" {
			return held, nil
		}
		d.unlock(held)
		if err != nil {
			return nil, err
		}
		if late == nil {
			late = time.After(goPatience)
		}
		select {
		case <-time.After(pause):
		case <-late:
			return nil, fmt.Errorf("%w: %s still uses it, mounted in processes %v", runtime.ErrUnavailable, device, holders(device))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// detach unmounts a disk and names a loop device that has not gone yet.
func (d *Disks) detach(id string, of which) (string, error) {
	if of == halfMade {
		if _, err := os.Lstat(d.path(id, endImage)); !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	if err := unmount(d.path(id, endMount)); err != nil {
		return "", err
	}
	loops, err := d.loops()
	if err != nil {
		return "", err
	}
	for device, file := range loops {
		if file == id+endImage || file == id+endNew {
			return device, nil
		}
	}
	return "", nil
}

// removeFiles removes all files of a disk that nobody uses. The folder's lock is held.
func (d *Disks) removeFiles(id string) error {
	// First it stops being a whole disk: who dies below leaves one that is half made, and not one that cannot be mounted.
	if err := os.Rename(d.path(id, endImage), d.path(id, endNew)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// The blocks before the name: after an error there is a file that the next try finds.
	if err := discard(d.path(id, endNew)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(d.path(id, endNew)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Never with what is in it: it is empty, or something is mounted there.
	if err := unix.Rmdir(d.path(id, endMount)); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove %s: %w", d.path(id, endMount), err)
	}
	plain := d.path(id, endPlain)
	if points, err := mountPoints(plain); err != nil || len(points) > 0 {
		return errors.Join(err, fmt.Errorf("remove %s: %d mounts lie in it", plain, len(points)))
	}
	return os.RemoveAll(plain)
}

// List names the jobs of which there is any trace here: a file, a mount or a loop device. It is ordered.
func (d *Disks) List() ([]string, error) {
	names, err := d.names()
	if err != nil {
		return nil, fmt.Errorf("list disks: %w", err)
	}
	var ids []string
	for _, name := range names {
		end := filepath.Ext(name)
		id := strings.TrimSuffix(name, end)
		if slices.Contains([]string{endImage, endNew, endMount, endPlain}, end) && runtime.ValidateID(id) == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// names lists the names directly below the folder, also of files and mounts that are there no more.
func (d *Disks) names() ([]string, error) {
	var names []string
	entries, err := os.ReadDir(d.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	points, err := mountPoints(d.dir)
	if err != nil {
		return nil, err
	}
	for _, p := range points {
		name, _, _ := strings.Cut(strings.TrimPrefix(p, d.dir+"/"), "/")
		names = append(names, name)
	}
	loops, err := d.loops()
	for _, file := range loops {
		names = append(names, file)
	}
	return names, err
}

// Purge destroys every disk, also those of a process that crashed, and removes the folder unless something else is in it. Make
// makes it again.
func (d *Disks) Purge(ctx context.Context) error {
	ids, err := d.List()
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		errs = append(errs, d.Destroy(ctx, id))
	}
	if err := unix.Rmdir(d.dir); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTEMPTY) {
		errs = append(errs, fmt.Errorf("remove %s: %w", d.dir, err))
	}
	return errors.Join(errs...)
}
