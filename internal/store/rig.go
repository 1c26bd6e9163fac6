package store

import (
	"context"
	"database/sql"
	"fmt"

	"haggle/internal/host"
	"haggle/market"
)

// Rig is a rig's durable state. It is a host.Store.
type Rig struct{ db *database }

var _ host.Store = (*Rig)(nil)

// OpenRig opens a rig's database, or makes it with mode 0600 in a folder that exists. The errors that a caller may tell
// apart are ErrLocked, ErrDamaged, ErrNewerSchema, ErrForeign, ErrNetworkDisk and ErrFull. The caller must Close it.
func OpenRig(ctx context.Context, path string) (*Rig, error) {
	db, err := open(ctx, path, rigSchema())
	if err != nil {
		return nil, fmt.Errorf("open rig's database: %w", err)
	}
	return &Rig{db: db}, nil
}

// Close ends all use of the database and lets the next process have it.
func (r *Rig) Close() error { return r.db.close() }

// Full tells whether the disk has no room for more: nothing new is to be begun. It is true from a change that failed with ErrFull
// until one succeeds, and while less than 16 MiB are free.
func (r *Rig) Full() bool { return r.db.noRoom() }

// Instance returns the random id that the database got when it was made.
func (r *Rig) Instance(context.Context) (market.Nonce, error) { return r.db.instance, nil }

// Create adds a lease. The error is ErrGranted if its bid has one already, and ErrFork if the sealed terms are not those
// of the lease's id.
func (r *Rig) Create(ctx context.Context, rec host.Record) error {
	l := rec.Lease
	if err := checkTerms(l.ID, rec.Sealed); err != nil {
		return err
	}
	return r.db.update(ctx, "create lease "+l.ID.String(), func(ctx context.Context, tx *transaction) error {
		done, err := tx.ExecContext(ctx, `INSERT INTO lease
			(id, bid, job, closed, created, state, sealed, offer, sealed_bid, task, env, image)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			l.ID[:], l.Terms.Bid[:], string(l.Job), l.Closed(), l.Terms.Issued, state(l), rec.Sealed, rec.Offer, rec.Bid,
			state(rec.Job), secrets(rec.Env, l.Job), state(rec.Image))
		if err != nil {
			return err
		}
		return needRow(done, ErrGranted)
	})
}

// Sign replaces a lease's sealed terms and environment and saves its state. The error is ErrFork if other terms than
// those of the lease's id were signed.
func (r *Rig) Sign(ctx context.Context, l market.Lease, sealed []byte, env market.Env) error {
	if err := checkTerms(l.ID, sealed); err != nil {
		return err
	}
	return r.db.update(ctx, "sign lease "+l.ID.String(), func(ctx context.Context, tx *transaction) error {
		done, err := tx.ExecContext(ctx, `UPDATE lease SET job = ?, closed = ?, state = ?, sealed = ?, env = ? WHERE id = ?`,
			string(l.Job), l.Closed(), state(l), sealed, secrets(env, l.Job), l.ID[:])
		if err != nil {
			return err
		}
		return needRow(done, unknown(l.ID))
	})
}

// Save saves a lease's state together with receipts of it. A receipt that is kept already is not replaced by its draft.
// The error is ErrFork if a receipt of that number with other content is kept; then nothing is saved.
func (r *Rig) Save(ctx context.Context, l market.Lease, receipts ...host.Receipt) error {
	return r.File(ctx, l, receipts, nil)
}

// File saves a lease's state together with receipts, as Save does, and papers of it. A paper of a kind and number that is there
// already is replaced, except that for a payment with other content the error is ErrFork and nothing is saved.
func (r *Rig) File(ctx context.Context, l market.Lease, receipts []host.Receipt, papers []market.Paper) error {
	var taken bool
	err := r.db.update(ctx, "save lease "+l.ID.String(), func(ctx context.Context, tx *transaction) (err error) {
		if l.Job == market.JobEnded {
			if taken, err = present(ctx, tx, `SELECT 1 FROM lease WHERE id = ? AND env IS NOT NULL`, l.ID[:]); err != nil {
				return err
			}
		}
		if err := saveLease(ctx, tx, l); err != nil {
			return err
		}
		for _, receipt := range receipts {
			if err := saveReceipt(ctx, tx, l.ID, receipt); err != nil {
				return fmt.Errorf("receipt %d: %w", receipt.Seq, err)
			}
		}
		return savePapers(ctx, tx, l.ID, papers)
	})
	if err == nil {
		r.db.forget(ctx, taken)
	}
	return err
}

// saveLease saves a lease's state. A job's environment goes with the job.
func saveLease(ctx context.Context, tx *transaction, l market.Lease) error {
	done, err := tx.ExecContext(ctx, `UPDATE lease SET job = ?1, closed = ?2, state = ?3,
		env = CASE WHEN ?1 = ?4 THEN NULL ELSE env END WHERE id = ?5`,
		string(l.Job), l.Closed(), state(l), string(market.JobEnded), l.ID[:])
	if err != nil {
		return err
	}
	return needRow(done, unknown(l.ID))
}

// Conclude saves a lease's state together with its newest sealed outcome.
func (r *Rig) Conclude(ctx context.Context, l market.Lease, outcome []byte) error {
	return r.db.update(ctx, "conclude lease "+l.ID.String(), func(ctx context.Context, tx *transaction) error {
		done, err := tx.ExecContext(ctx, `UPDATE lease SET job = ?1, closed = ?2, state = ?3, outcome = ?4 WHERE id = ?5`,
			string(l.Job), l.Closed(), state(l), outcome, l.ID[:])
		if err != nil {
			return err
		}
		return needRow(done, unknown(l.ID))
	})
}

func saveReceipt(ctx context.Context, tx *transaction, id market.LeaseID, r host.Receipt) error {
	if r.Lease != id {
		return fmt.Errorf("of lease %s: %w", r.Lease, ErrFork)
	}
	body, err := bodyOf(r.Sealed)
	if err != nil {
		return err
	}
	// Nothing but a receipt with the same content and one signature more takes the place of a receipt.
	done, err := tx.ExecContext(ctx, `INSERT INTO receipt (lease, seq, body, sealed, agreed) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (lease, seq) DO UPDATE SET
			sealed = CASE WHEN excluded.agreed > agreed THEN excluded.sealed ELSE sealed END,
			agreed = max(agreed, excluded.agreed)
		WHERE body = excluded.body`, id[:], r.Seq, body[:], r.Sealed, r.Agreed)
	if err != nil {
		return err
	}
	return needRow(done, ErrFork)
}

// secrets returns a job's environment as its column takes it: it is not kept longer than the job.
func secrets(env market.Env, job market.JobState) any {
	if len(env) == 0 || job == market.JobEnded {
		return nil
	}
	return state(env)
}

// needRow returns the error if a statement changed no row.
func needRow(done sql.Result, otherwise error) error {
	n, err := done.RowsAffected()
	if err == nil && n == 0 {
		return otherwise
	}
	return err
}
