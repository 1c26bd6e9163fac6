package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"haggle/internal/renter"
	"haggle/market"
)

// Origin says whose database a copy must be. The zero Key is nobody's: it fits only a database without leases.
type Origin struct {
	Network string
	Key     market.Key
}

// Restored is what a restore did.
type Restored struct {
	Path     string       // of the database
	Previous string       // where the database from before is now; "" where there was none
	Instance market.Nonce // the new one
	Leases   int
}

// RestoreRig puts a copy that Backup made in the place of a rig's database, while no rig uses it. The copy is checked as a whole
// first, and brought to this program's version; the copy itself stays as it is. What was there before is kept beside it. The
// database gets a new instance id, and every lease that is not closed signs nothing before it knows what its renter has: a state
// from before must not look like a second truth.
//
// The errors are those of OpenRig, of the copy or of the database, ErrOtherKey and ErrOtherNetwork; then nothing has changed.
func RestoreRig(ctx context.Context, from, path string, o Origin) (Restored, error) {
	return restore(ctx, from, path, rigSchema(), func(d *database) (int, error) {
		rig := &Rig{db: d}
		records, err := rig.Records(ctx, true)
		if err != nil || len(records) == 0 {
			return 0, err
		}
		if err := o.check(records[len(records)-1].Sealed, market.RoleRig); err != nil {
			return 0, err
		}
		for _, r := range records {
			if r.Lease.Closed() {
				continue
			}
			r.Lease.Unsure = true // it waits for what its renter has
			if err := rig.Save(ctx, r.Lease); err != nil {
				return 0, err
			}
		}
		return len(records), nil
	})
}

// RestoreAgent puts a copy that Backup made in the place of an agent's database, as RestoreRig does of a rig's. The rigs tell the
// agent what it signed since.
func RestoreAgent(ctx context.Context, from, path string, o Origin) (Restored, error) {
	return restore(ctx, from, path, agentSchema(), func(d *database) (int, error) {
		records, err := (&Agent{db: d}).Records(ctx)
		if err != nil {
			return 0, err
		}
		// A bid that waits proves nothing, nor does a grant that was not signed, and a deputy's lease was signed by another.
		records = slices.DeleteFunc(records, func(r renter.Record) bool {
			return r.Lease.IsZero() || !r.State.Serves.IsZero() || !signedBy(r.Sealed, market.RoleRenter)
		})
		if len(records) == 0 {
			return 0, nil
		}
		return len(records), o.check(records[0].Sealed, market.RoleRenter)
	})
}

// check refuses terms that were signed on another network or, in the role of the side whose database it is, by another key.
func (o Origin) check(raw []byte, role market.Role) error {
	sealed, err := market.DecodeSealed(raw)
	if err != nil {
		return err
	}
	signer, err := sealed.Verify(role)
	switch {
	case err != nil:
		return err
	case sealed.Network != o.Network:
		return fmt.Errorf("%w: it is of %s, and this is %s", ErrOtherNetwork, sealed.Network, o.Network)
	case signer != o.Key:
		return fmt.Errorf("%w: it signed as %s, and the key here is %s", ErrOtherKey, signer, o.Key)
	}
	return nil
}

func signedBy(raw []byte, role market.Role) bool {
	sealed, err := market.DecodeSealed(raw)
	return err == nil && sealed.SignedBy(role)
}

// restore makes the new database beside the old, and changes the two when it is whole.
func restore(ctx context.Context, from, path string, s schema, prepare func(*database) (int, error)) (done Restored, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	if err := checkDisk(filepath.Dir(path)); err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	lock, err := takeLock(path)
	if err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, dropLock(lock)) }()
	fresh := path + ".restore" + partSuffix
	defer func() { err = errors.Join(err, removeAll(fresh)) }()
	if err := removeAll(fresh); err != nil { // what a killed restore left
		return done, fmt.Errorf("restore: %w", err)
	}
	if done, err = freshen(ctx, from, fresh, s, prepare); err != nil {
		return done, fmt.Errorf("restore %s: %w", from, err)
	}
	done.Path = path
	if done.Previous, err = setAside(ctx, path, s); err != nil {
		return done, fmt.Errorf("restore: keep what is there: %w", err)
	}
	if err := replace(fresh, path); err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	if err := handOver(filepath.Dir(path), path, path+".lock"); err != nil {
		return done, fmt.Errorf("restore: %w", err)
	}
	return done, nil
}

// freshen copies a copy, checks it, and makes a new instance of it.
func freshen(ctx context.Context, from, fresh string, s schema, prepare func(*database) (int, error)) (done Restored, err error) {
	if err := copyFile(from, fresh); err != nil {
		return done, err
	}
	d := newDatabase(fresh, s.whose)
	defer func() {
		err = errors.Join(err, d.close())
		if err == nil {
			_, err = syncFile(fresh)
		}
	}()
	if err := d.start(ctx, s); err != nil {
		return done, err
	}
	rand.Read(done.Instance[:]) // never fails: it ends the program instead
	err = d.update(ctx, "make id", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, `UPDATE instance SET id = ?`, done.Instance[:])
		return err
	})
	if err != nil {
		return done, err
	}
	done.Leases, err = prepare(d)
	return done, err
}

// copyFile copies a plain file into one that was not there, for its owner alone.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() == 0:
		return fmt.Errorf("%s %w (it is empty, or no file)", from, ErrDamaged)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// setAside gives the database that is there a second name, so that there is a database at every moment, and moves the files
// away that would be taken for parts of the new one.
func setAside(ctx context.Context, path string, s schema) (aside string, err error) {
	if there, err := exists(path); err != nil || !there {
		return "", err
	}
	// A sound database takes up its log when it is closed. A damaged one keeps it, beside it.
	d := newDatabase(path, s.whose)
	_ = errors.Join(d.start(ctx, s), d.close())
	aside = path + ".before-" + time.Now().UTC().Format("20060102-150405.000")
	if err := os.Link(path, aside); err != nil {
		if err := copyFile(path, aside); err != nil {
			return "", err
		}
	}
	for _, end := range []string{"-wal", "-shm"} {
		there, err := exists(path + end)
		if err != nil {
			return "", err
		}
		if !there {
			continue
		}
		if err := os.Rename(path+end, aside+end); err != nil {
			return "", err
		}
	}
	return aside, nil
}

// removeAll removes a database's files, those that are there.
func removeAll(path string) error {
	var errs []error
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + end); err != nil && !os.IsNotExist(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
