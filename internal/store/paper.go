package store

import (
	"context"
	"fmt"

	"haggle/market"
)

// savePapers keeps papers of a lease. One of a kind and number that is there already is replaced and keeps its place in the
// order; a payment is not: what was said to be paid stays said.
func savePapers(ctx context.Context, tx *transaction, id market.LeaseID, papers []market.Paper) error {
	for _, p := range papers {
		if err := savePaper(ctx, tx, id, p); err != nil {
			return fmt.Errorf("%s %d: %w", p.Kind, p.Seq, err)
		}
	}
	return nil
}

func savePaper(ctx context.Context, tx *transaction, id market.LeaseID, p market.Paper) error {
	if p.Lease != id || id.IsZero() {
		return fmt.Errorf("of lease %s: %w", p.Lease, ErrFork)
	}
	body, err := bodyOf(p.Sealed)
	if err != nil {
		return err
	}
	done, err := tx.ExecContext(ctx, `INSERT INTO paper (lease, kind, seq, body, sealed) VALUES (?1, ?2, ?3, ?4, ?5)
		ON CONFLICT (lease, kind, seq) DO UPDATE SET body = excluded.body, sealed = excluded.sealed
		WHERE body = excluded.body OR kind <> ?6`, id[:], string(p.Kind), p.Seq, body[:], p.Sealed, string(market.KindPayment))
	if err != nil {
		return err
	}
	return needRow(done, ErrFork)
}

// papers returns a lease's papers of a kind, by number.
func (d *database) papers(ctx context.Context, id market.LeaseID, kind market.Kind, lease string) ([]market.Paper, error) {
	scan := func(r row) (market.Paper, error) {
		p := market.Paper{Lease: id, Kind: kind}
		return p, r.Scan(&p.Seq, &p.Sealed)
	}
	list, err := rows(ctx, d, fmt.Sprintf("list papers (%s) of lease %s", kind, id), scan,
		`SELECT seq, sealed FROM paper WHERE lease = ? AND kind = ? ORDER BY seq`, id[:], string(kind))
	if err != nil || len(list) > 0 {
		return list, err
	}
	return nil, d.known(ctx, lease, id)
}

// papersOf returns the papers of a kind of all leases, in the order in which they were filed.
func (d *database) papersOf(ctx context.Context, kind market.Kind) ([]market.Paper, error) {
	scan := func(r row) (market.Paper, error) {
		p := market.Paper{Kind: kind}
		var lease []byte
		if err := r.Scan(&lease, &p.Seq, &p.Sealed); err != nil {
			return p, err
		}
		return p, fixed(p.Lease[:], lease)
	}
	return rows(ctx, d, fmt.Sprintf("list papers (%s)", kind), scan,
		`SELECT lease, seq, sealed FROM paper WHERE kind = ? ORDER BY number`, string(kind))
}
