package store

import (
	"context"

	"haggle/market"
)

// Block is a key that the user has blocked.
type Block struct {
	Key   market.Key
	Why   string
	Until int64 // Unix milliseconds; 0: until it is lifted
}

// Blocks returns the blocked keys, in their order.
func (a *Agent) Blocks(ctx context.Context) ([]Block, error) { return blocks(ctx, a.db) }

// SaveBlock keeps a block in place of the one that the key has.
func (a *Agent) SaveBlock(ctx context.Context, b Block) error { return saveBlock(ctx, a.db, b) }

// DropBlock forgets a block. There need not be one.
func (a *Agent) DropBlock(ctx context.Context, key market.Key) error {
	return dropBlock(ctx, a.db, key)
}

// Blocks returns the blocked keys, in their order.
func (r *Rig) Blocks(ctx context.Context) ([]Block, error) { return blocks(ctx, r.db) }

// SaveBlock keeps a block in place of the one that the key has.
func (r *Rig) SaveBlock(ctx context.Context, b Block) error { return saveBlock(ctx, r.db, b) }

// DropBlock forgets a block. There need not be one.
func (r *Rig) DropBlock(ctx context.Context, key market.Key) error { return dropBlock(ctx, r.db, key) }

func blocks(ctx context.Context, db *database) ([]Block, error) {
	scan := func(r row) (b Block, err error) {
		var key []byte
		if err := r.Scan(&key, &b.Why, &b.Until); err != nil {
			return b, err
		}
		return b, fixed(b.Key[:], key)
	}
	return rows(ctx, db, "list blocked keys", scan, `SELECT key, why, till FROM blocked ORDER BY key`)
}

func saveBlock(ctx context.Context, db *database, b Block) error {
	return db.update(ctx, "block "+b.Key.String(), func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO blocked (key, why, till) VALUES (?, ?, ?)
			ON CONFLICT (key) DO UPDATE SET why = excluded.why, till = excluded.till`, b.Key[:], b.Why, b.Until)
		return err
	})
}

func dropBlock(ctx context.Context, db *database, key market.Key) error {
	return db.update(ctx, "unblock "+key.String(), func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM blocked WHERE key = ?`, key[:])
		return err
	})
}
