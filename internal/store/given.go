package store

import (
	"context"
	"time"

	"haggle/market"
)

// GivenNames returns what the user calls others, by key.
func (a *Agent) GivenNames(ctx context.Context) (map[market.Key]string, error) {
	type given struct {
		key  market.Key
		name string
	}
	scan := func(r row) (g given, err error) {
		var key []byte
		if err := r.Scan(&key, &g.name); err != nil {
			return g, err
		}
		return g, fixed(g.key[:], key)
	}
	list, err := rows(ctx, a.db, "list given names", scan, `SELECT key, name FROM given_name`)
	if err != nil {
		return nil, err
	}
	names := make(map[market.Key]string, len(list))
	for _, g := range list {
		names[g.key] = g.name
	}
	return names, nil
}

// GiveName keeps what the user calls an owner or a rig from now on; "" takes the name back. A name that another key has is an error.
func (a *Agent) GiveName(ctx context.Context, key market.Key, name string, now time.Time) error {
	return a.db.update(ctx, "name "+key.String(), func(ctx context.Context, tx *transaction) error {
		if name == "" {
			_, err := tx.ExecContext(ctx, `DELETE FROM given_name WHERE key = ?`, key[:])
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO given_name (key, name, at) VALUES (?, ?, ?)
			ON CONFLICT (key) DO UPDATE SET name = excluded.name, at = excluded.at`, key[:], name, now.UnixMilli())
		return err
	})
}
