package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"haggle/market"
)

// spool is the folder in which archives of images lie until their job is made: one file a lease, by the lease's id.
type spool struct {
	dir string // empty takes none
	// space tells how much of the folder's file system is free, and how much there is, in bytes; nil where nobody knows.
	space func() (free, total int64, err error)
}

// roomLeft is the part of the disk that archives leave free: one in so many.
const roomLeft = 10

func (s spool) path(id market.LeaseID) string { return filepath.Join(s.dir, id.String()+".tar") }

// open opens a lease's file, and says how much is in it.
func (s spool) open(id market.LeaseID, size int64) (*os.File, int64, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, 0, fmt.Errorf("make spool: %w", err)
	}
	f, err := os.OpenFile(s.path(id), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open spool: %w", err)
	}
	at, err := f.Seek(0, io.SeekEnd)
	if err == nil && at > size { // nothing that was written here
		at, err = 0, f.Truncate(0)
	}
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open spool: %w", err), f.Close())
	}
	return f, at, nil
}

// whole reports whether all of a lease's archive is there.
func (s spool) whole(id market.LeaseID, size int64) bool {
	info, err := os.Stat(s.path(id))
	return err == nil && info.Size() == size
}

// room reports whether the disk has room for so many bytes more. The error has code CodeNoRoom.
func (s spool) room(bytes int64) error {
	if s.space == nil {
		return nil
	}
	free, total, err := s.space()
	if err != nil {
		return fmt.Errorf("room in spool: %w", err)
	}
	if free-bytes < total/roomLeft {
		return market.NewError(market.CodeNoRoom)
	}
	return nil
}

// remove deletes a lease's file. One that is not there is no error.
func (s spool) remove(id market.LeaseID) error {
	if s.dir == "" {
		return nil
	}
	if err := os.Remove(s.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("empty spool: %w", err)
	}
	return nil
}

// sweep deletes every file that no lease waits for.
func (s spool) sweep(waits func(name string) bool) error {
	if s.dir == "" {
		return nil
	}
	list, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, f := range list {
		if !waits(f.Name()) {
			errs = append(errs, os.Remove(filepath.Join(s.dir, f.Name())))
		}
	}
	return errors.Join(errs...)
}

// noSpace gives a full disk its code.
func noSpace(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return market.NewError(market.CodeNoRoom)
	}
	return err
}
