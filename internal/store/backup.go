package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Copy is a backup that was made.
type Copy struct {
	Path  string // absolute
	Bytes int64
}

// Backup writes a sound copy of the database, as it is at one moment, into a file that must not exist yet: whole, on disk and with
// mode 0600 when Backup returns, or not there. The rig goes on meanwhile. Environments of jobs stay out of the copy: they hold
// other people's passwords. The error is fs.ErrExist where the file exists, and ErrFull where its disk has no room.
func (r *Rig) Backup(ctx context.Context, path string) (Copy, error) {
	return r.db.backup(ctx, path, `UPDATE lease SET env = NULL WHERE env IS NOT NULL`)
}

// Backup writes a sound copy of the database, as it is at one moment, into a file that must not exist yet: whole, on disk and with
// mode 0600 when Backup returns, or not there. The agent goes on meanwhile. Environments of jobs stay out of the copy. The error
// is fs.ErrExist where the file exists, and ErrFull where its disk has no room.
func (a *Agent) Backup(ctx context.Context, path string) (Copy, error) {
	return a.db.backup(ctx, path, `UPDATE record SET env = NULL WHERE env IS NOT NULL`)
}

// partSuffix marks a copy that is not finished. What a killed program left of one may be removed.
const partSuffix = ".part"

func (d *database) backup(ctx context.Context, path, forget string) (Copy, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Copy{}, fmt.Errorf("back up: %w", err)
	}
	bytes, err := d.backupInto(ctx, path, forget)
	if err != nil {
		return Copy{}, fmt.Errorf("back up into %s: %w", path, err)
	}
	return Copy{Path: path, Bytes: bytes}, nil
}

func (d *database) backupInto(ctx context.Context, path, forget string) (bytes int64, err error) {
	// The name is taken first, so that no two copies meet; the copy gets it when it is whole.
	if err := reserve(path); err != nil {
		return 0, err
	}
	part := path + partSuffix
	defer func() {
		if err != nil {
			_, _ = removeAll(part), os.Remove(path) // the cause says more
		}
	}()
	if err := reserve(part); err != nil {
		return 0, err
	}
	c := newDatabase(part, d.whose)
	if err := d.vacuumInto(ctx, part); err != nil {
		return 0, c.explain(err) // it is the copy's disk that may be full
	}
	if err := c.finish(ctx, forget); err != nil {
		return 0, err
	}
	if bytes, err = syncFile(part); err != nil {
		return 0, err
	}
	return bytes, replace(part, path)
}

// reserve makes an empty file that was not there, for its owner alone.
func reserve(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// vacuumInto copies through a connection of its own: it sees one moment, and neither the writer nor the readers wait for it.
func (d *database) vacuumInto(ctx context.Context, into string) (err error) {
	db, err := sql.Open("sqlite", source(d.path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, into)
	return err
}

// finish takes out of a copy what is not to be kept twice, and reads the whole of it.
func (d *database) finish(ctx context.Context, forget string) (err error) {
	// Nobody else knows the copy: what fails here is thrown away.
	if d.write, err = sql.Open("sqlite", source(d.path, "journal_mode(MEMORY)", "synchronous(OFF)", "secure_delete(ON)")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.write.Close()) }()
	d.write.SetMaxOpenConns(1)
	if _, err := d.write.ExecContext(ctx, forget); err != nil {
		return d.explain(err)
	}
	return d.check(ctx)
}

// syncFile waits until a file is on disk, and returns its size.
func syncFile(path string) (int64, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// replace gives a file another's name, and waits until the folder is on disk.
func replace(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// exists tells whether there is a file of that name.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
