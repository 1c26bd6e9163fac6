package store

import (
	"context"
	"fmt"

	"haggle/internal/host"
	"haggle/market"
)

const leaseColumns = `SELECT state, sealed, offer, sealed_bid, task, env, image, outcome FROM lease `

func scanLease(r row) (host.Record, error) {
	var rec host.Record
	var lease, task, env, image []byte
	if err := r.Scan(&lease, &rec.Sealed, &rec.Offer, &rec.Bid, &task, &env, &image, &rec.Outcome); err != nil {
		return rec, err
	}
	return rec, decode(column{"state", lease, &rec.Lease}, column{"task", task, &rec.Job}, column{"env", env, &rec.Env},
		column{"image", image, &rec.Image})
}

// Granted returns the record of the lease that a bid got, and whether it got one.
func (r *Rig) Granted(ctx context.Context, bid market.Hash) (host.Record, bool, error) {
	list, err := rows(ctx, r.db, "find lease of bid "+bid.String(), scanLease, leaseColumns+`WHERE bid = ?`, bid[:])
	if err != nil || len(list) == 0 {
		return host.Record{}, false, err
	}
	return list[0], true, nil
}

// Record returns one lease.
func (r *Rig) Record(ctx context.Context, id market.LeaseID) (host.Record, error) {
	list, err := rows(ctx, r.db, "read lease "+id.String(), scanLease, leaseColumns+`WHERE id = ?`, id[:])
	if err != nil {
		return host.Record{}, err
	}
	if len(list) == 0 {
		return host.Record{}, unknown(id)
	}
	return list[0], nil
}

// Records returns the leases that are not closed, or, with closed, all there are; oldest first.
func (r *Rig) Records(ctx context.Context, closed bool) ([]host.Record, error) {
	where := `WHERE closed = 0 `
	if closed {
		where = ""
	}
	return rows(ctx, r.db, "list leases", scanLease, leaseColumns+where+`ORDER BY number`)
}

// Receipts returns a lease's receipts with a number above after, in order.
func (r *Rig) Receipts(ctx context.Context, id market.LeaseID, after uint32) ([]host.Receipt, error) {
	scan := func(r row) (host.Receipt, error) {
		receipt := host.Receipt{Lease: id}
		return receipt, r.Scan(&receipt.Seq, &receipt.Sealed, &receipt.Agreed)
	}
	list, err := rows(ctx, r.db, "list receipts of lease "+id.String(), scan,
		`SELECT seq, sealed, agreed FROM receipt WHERE lease = ? AND seq > ? ORDER BY seq`, id[:], after)
	if err != nil || len(list) > 0 {
		return list, err
	}
	return nil, r.db.known(ctx, `SELECT 1 FROM lease WHERE id = ?`, id)
}

// Papers returns a lease's papers of a kind, by number.
func (r *Rig) Papers(ctx context.Context, id market.LeaseID, kind market.Kind) ([]market.Paper, error) {
	return r.db.papers(ctx, id, kind, `SELECT 1 FROM lease WHERE id = ?`)
}

// PapersOf returns the papers of a kind of all leases, in the order in which they were filed.
func (r *Rig) PapersOf(ctx context.Context, kind market.Kind) ([]market.Paper, error) {
	return r.db.papersOf(ctx, kind)
}

// Settings returns the owner's choices; the zero Settings before any was made.
func (r *Rig) Settings(ctx context.Context) (host.Settings, error) {
	scan := func(r row) (host.Settings, error) {
		var s host.Settings
		var prices, trusted, withheld, seen []byte
		if err := r.Scan(&s.Paused, &s.Draining, &prices, &s.OfferSeq, &trusted, &withheld, &seen); err != nil {
			return s, err
		}
		return s, decode(column{"prices", prices, &s.Prices}, column{"trusted", trusted, &s.Trusted},
			column{"withheld", withheld, &s.Withheld}, column{"seen", seen, &s.Seen})
	}
	list, err := rows(ctx, r.db, "read settings", scan, `SELECT paused, draining, prices, offer_seq, trusted, withheld, seen FROM settings`)
	if err != nil || len(list) == 0 {
		return host.Settings{}, err
	}
	return list[0], nil
}

// SaveSettings keeps the owner's choices. A lower OfferSeq than the one kept is passed over: it never falls.
func (r *Rig) SaveSettings(ctx context.Context, s host.Settings) error {
	var prices, seen any
	if s.Prices.Currency != "" {
		prices = state(s.Prices)
	}
	if s.Seen != (host.Seen{}) {
		seen = state(s.Seen)
	}
	return r.db.update(ctx, "save settings", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO settings (one, paused, draining, prices, offer_seq, trusted, withheld, seen)
			VALUES (1, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (one) DO UPDATE SET paused = excluded.paused, draining = excluded.draining, prices = excluded.prices,
			offer_seq = max(offer_seq, excluded.offer_seq), trusted = excluded.trusted, withheld = excluded.withheld,
			seen = excluded.seen`,
			s.Paused, s.Draining, prices, s.OfferSeq, listed(s.Trusted), listed(s.Withheld), seen)
		return err
	})
}

// listed returns a list as its column takes it.
func listed[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return state(list)
}

// known tells an unknown lease from one that has nothing to list.
func (d *database) known(ctx context.Context, query string, id market.LeaseID) error {
	var one int
	err := d.read.QueryRowContext(ctx, query, id[:]).Scan(&one)
	if missing(err) {
		return unknown(id)
	}
	if err != nil {
		return fmt.Errorf("find lease %s: %w", id, d.explain(err))
	}
	return nil
}
