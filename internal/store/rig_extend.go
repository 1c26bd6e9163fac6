package store

import (
	"context"

	"haggle/market"
)

// Extend saves a lease's state together with a sealed extension that both signed. The same extension again is no error. The error
// is ErrFork if another one of that number is kept; then nothing is saved.
func (r *Rig) Extend(ctx context.Context, l market.Lease, seq uint32, sealed []byte) error {
	body, err := bodyOf(sealed)
	if err != nil {
		return err
	}
	return r.db.update(ctx, "extend lease "+l.ID.String(), func(ctx context.Context, tx *transaction) error {
		done, err := tx.ExecContext(ctx, `UPDATE lease SET job = ?, closed = ?, state = ? WHERE id = ?`,
			string(l.Job), l.Closed(), state(l), l.ID[:])
		if err != nil {
			return err
		}
		if err := needRow(done, unknown(l.ID)); err != nil {
			return err
		}
		done, err = tx.ExecContext(ctx, `INSERT INTO extension (lease, seq, body, sealed) VALUES (?, ?, ?, ?)
			ON CONFLICT (lease, seq) DO UPDATE SET sealed = sealed WHERE body = excluded.body`, l.ID[:], seq, body[:], sealed)
		if err != nil {
			return err
		}
		return needRow(done, ErrFork)
	})
}

// Extensions returns a lease's extensions, sealed, in order from number 1.
func (r *Rig) Extensions(ctx context.Context, id market.LeaseID) ([][]byte, error) {
	scan := func(r row) (sealed []byte, err error) { return sealed, r.Scan(&sealed) }
	list, err := rows(ctx, r.db, "list extensions of lease "+id.String(), scan,
		`SELECT sealed FROM extension WHERE lease = ? ORDER BY seq`, id[:])
	if err != nil || len(list) > 0 {
		return list, err
	}
	return nil, r.db.known(ctx, `SELECT 1 FROM lease WHERE id = ?`, id)
}
