package store

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"haggle/market"
)

// What a caller may tell apart. The errors that are returned wrap these and name the file.
var (
	// ErrLocked means that another process uses the file; the error names its process id where it is known.
	ErrLocked = errors.New("is in use")
	// ErrDamaged means that the file is not a sound database. It and the files beside it that end in -wal and -shm may still
	// prove something: they are to be kept, not removed.
	ErrDamaged = errors.New("is damaged")
	// ErrNewerSchema means that a newer version of the program has used the file.
	ErrNewerSchema = errors.New("was written by a newer version of this program: use that version, or restore a copy made before it ran")
	// ErrForeign means that the file is a sound database, but not one of this kind: a rig's is not an agent's.
	ErrForeign = errors.New("belongs to another program")
	// ErrNetworkDisk means that the file lies on a network file system, whose locks and syncs cannot be relied upon.
	ErrNetworkDisk = errors.New("is on a network file system, which may lose what it said it had written: use a local disk")
	// ErrFull means that the disk has no room. Nothing of the failed change was kept; everything before it was. To others the
	// error is CodeDiskFull.
	ErrFull = errors.New("disk is full")
	// ErrOtherNetwork means that a copy's leases are of another network than this program's.
	ErrOtherNetwork = errors.New("the copy belongs to another network")
	// ErrOtherKey means that a copy's leases were signed with another key than this program's.
	ErrOtherKey = errors.New("the copy belongs to another key")
	// ErrFork means that other bytes were to take the place of a signed statement.
	ErrFork = errors.New("a signed statement cannot change")
	// ErrGranted means that the bid has a lease already.
	ErrGranted = errors.New("the bid was granted before")
)

// explain gives SQLite's refusals the names that callers know.
func (d *database) explain(err error) error {
	var refusal *sqlite.Error
	if !errors.As(err, &refusal) {
		return err
	}
	switch refusal.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return d.damaged(err.Error())
	case sqlite3.SQLITE_FULL:
		return &fullError{d.path, d.whose}
	}
	return err
}

// fullError is ErrFull, with the file for the log and a code for those who are not to know of it.
type fullError struct{ path, whose string }

func (e *fullError) Error() string { return e.path + ": " + ErrFull.Error() }

func (e *fullError) Unwrap() []error {
	return []error{ErrFull, market.NewError(market.CodeDiskFull, "whose", e.whose)}
}

func (d *database) damaged(why string) error {
	return fmt.Errorf("%s %w (%s)", d.path, ErrDamaged, why)
}
