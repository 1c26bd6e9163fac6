package store

import (
	"context"

	"haggle/internal/index"
	"haggle/market"
)

var (
	_ index.Store = (*Agent)(nil)
	_ index.Store = (*Rig)(nil)
)

// maxRigsSeen bounds the rigs that are remembered: as many as an agent's index holds. A row without offers takes about 100 bytes.
const maxRigsSeen = 100_000

// RememberedRigs returns the rigs that were used last, at most so many, the newest first.
func (a *Agent) RememberedRigs(ctx context.Context, most int) ([]index.Remembered, error) {
	return a.db.rememberedRigs(ctx, most)
}

// RememberRigs adds or replaces rigs and returns when each was first seen. Of more than 100 000 those go that were not used for longest.
func (a *Agent) RememberRigs(ctx context.Context, rigs []index.Remembered) ([]int64, error) {
	return a.db.rememberRigs(ctx, rigs)
}

// RememberedRigs returns the rigs that were used last, at most so many, the newest first.
func (r *Rig) RememberedRigs(ctx context.Context, most int) ([]index.Remembered, error) {
	return r.db.rememberedRigs(ctx, most)
}

// RememberRigs adds or replaces rigs and returns when each was first seen. Of more than 100 000 those go that were not used for longest.
func (r *Rig) RememberRigs(ctx context.Context, rigs []index.Remembered) ([]int64, error) {
	return r.db.rememberRigs(ctx, rigs)
}

func (d *database) rememberedRigs(ctx context.Context, most int) ([]index.Remembered, error) {
	scan := func(r row) (m index.Remembered, err error) {
		var key, addrs, offers []byte
		if err := r.Scan(&key, &m.FirstSeen, &m.Heard, &m.Used, &m.Failures, &m.Marked, &addrs, &offers); err != nil {
			return m, err
		}
		if err := fixed(m.Rig[:], key); err != nil {
			return m, err
		}
		return m, decode(column{"addrs", addrs, &m.Addrs}, column{"offers", offers, &m.Offers})
	}
	return rows(ctx, d, "list remembered rigs", scan,
		`SELECT rig, first_seen, heard, used, failures, marked, addrs, offers FROM rig_seen ORDER BY used DESC LIMIT ?`, most)
}

func (d *database) rememberRigs(ctx context.Context, rigs []index.Remembered) ([]int64, error) {
	first := make([]int64, len(rigs))
	err := d.update(ctx, "remember rigs", func(ctx context.Context, tx *transaction) error {
		for i, m := range rigs {
			if err := rememberRig(ctx, tx, m, &first[i]); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM rig_seen WHERE rig IN (SELECT rig FROM rig_seen ORDER BY used LIMIT
			max(0, (SELECT count(*) FROM rig_seen) - ?))`, maxRigsSeen)
		return err
	})
	return first, err
}

func rememberRig(ctx context.Context, tx *transaction, m index.Remembered, first *int64) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO rig_seen (rig, first_seen, heard, used, failures, marked, addrs, offers)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (rig) DO UPDATE SET
			first_seen = min(first_seen, excluded.first_seen), heard = max(heard, excluded.heard), used = max(used, excluded.used),
			failures = excluded.failures, marked = max(marked, excluded.marked),
			addrs = coalesce(excluded.addrs, addrs), offers = excluded.offers`,
		m.Rig[:], m.FirstSeen, m.Heard, m.Used, m.Failures, m.Marked, items(m.Addrs), items(m.Offers))
	if err != nil {
		return err
	}
	return tx.QueryRowContext(ctx, `SELECT first_seen FROM rig_seen WHERE rig = ?`, m.Rig[:]).Scan(first)
}

// items returns a list's bytes, nothing for an empty one.
func items[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return market.EncodeState(list)
}
