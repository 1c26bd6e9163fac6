package store

import (
	"context"

	"haggle/internal/renter"
	"haggle/market"
)

const recordColumns = `SELECT bid, lease, terms, sealed, offer, sealed_bid, task, env, rig_name, model, image, state, head, outcome, inside FROM record `

func scanRecord(r row) (renter.Record, error) {
	var rec renter.Record
	var bid, lease, terms, task, env, known, head, inside []byte
	err := r.Scan(&bid, &lease, &terms, &rec.Sealed, &rec.Offer, &rec.SealedBid, &task, &env, &rec.RigName, &rec.Model,
		&rec.Image, &known, &head, &rec.Outcome, &inside)
	if err != nil {
		return rec, err
	}
	if err := fixed(rec.Bid[:], bid); err != nil {
		return rec, err
	}
	if len(lease) > 0 {
		if err := fixed(rec.Lease[:], lease); err != nil {
			return rec, err
		}
	}
	return rec, decode(column{"terms", terms, &rec.Terms}, column{"task", task, &rec.Job}, column{"env", env, &rec.Env},
		column{"state", known, &rec.State}, column{"head", head, &rec.Head},
		column{"inside", inside, &rec.Inside})
}

// Record returns the record of a lease.
func (a *Agent) Record(ctx context.Context, id market.LeaseID) (renter.Record, error) {
	list, err := rows(ctx, a.db, "read lease "+id.String(), scanRecord, recordColumns+`WHERE lease = ?`, id[:])
	if err != nil {
		return renter.Record{}, err
	}
	if len(list) == 0 {
		return renter.Record{}, unknown(id)
	}
	return list[0], nil
}

// Records returns all records, newest first.
func (a *Agent) Records(ctx context.Context) ([]renter.Record, error) {
	return rows(ctx, a.db, "list leases", scanRecord, recordColumns+`ORDER BY number DESC`)
}

// Receipts returns a lease's receipts in order.
func (a *Agent) Receipts(ctx context.Context, id market.LeaseID) ([]renter.Receipt, error) {
	scan := func(r row) (renter.Receipt, error) {
		receipt := renter.Receipt{Lease: id}
		return receipt, r.Scan(&receipt.Seq, &receipt.Sealed)
	}
	list, err := rows(ctx, a.db, "list receipts of lease "+id.String(), scan,
		`SELECT seq, sealed FROM receipt WHERE lease = ? ORDER BY seq`, id[:])
	if err != nil || len(list) > 0 {
		return list, err
	}
	return nil, a.db.known(ctx, `SELECT 1 FROM record WHERE lease = ?`, id)
}

// Rejects returns the sealed refusals of a lease's receipts in order.
func (a *Agent) Rejects(ctx context.Context, id market.LeaseID) ([][]byte, error) {
	scan := func(r row) (sealed []byte, err error) { return sealed, r.Scan(&sealed) }
	list, err := rows(ctx, a.db, "list refusals of lease "+id.String(), scan,
		`SELECT sealed FROM reject WHERE lease = ? ORDER BY seq`, id[:])
	if err != nil || len(list) > 0 {
		return list, err
	}
	return nil, a.db.known(ctx, `SELECT 1 FROM record WHERE lease = ?`, id)
}

// Extensions returns the sealed extensions of a lease that both signed, in order.
func (a *Agent) Extensions(ctx context.Context, id market.LeaseID) ([][]byte, error) {
	scan := func(r row) (sealed []byte, err error) { return sealed, r.Scan(&sealed) }
	list, err := rows(ctx, a.db, "list extensions of lease "+id.String(), scan,
		`SELECT sealed FROM extension WHERE lease = ? ORDER BY seq`, id[:])
	if err != nil || len(list) > 0 {
		return list, err
	}
	return nil, a.db.known(ctx, `SELECT 1 FROM record WHERE lease = ?`, id)
}

// Papers returns a lease's papers of a kind, by number.
func (a *Agent) Papers(ctx context.Context, id market.LeaseID, kind market.Kind) ([]market.Paper, error) {
	return a.db.papers(ctx, id, kind, `SELECT 1 FROM record WHERE lease = ?`)
}

// PapersOf returns the papers of a kind of all leases, in the order in which they were filed.
func (a *Agent) PapersOf(ctx context.Context, kind market.Kind) ([]market.Paper, error) {
	return a.db.papersOf(ctx, kind)
}

// Settings returns the user's choices; the zero Settings before any was made.
func (a *Agent) Settings(ctx context.Context) (renter.Settings, error) {
	scan := func(r row) (s renter.Settings, err error) {
		var data []byte
		if err := r.Scan(&data); err != nil {
			return s, err
		}
		return s, decode(column{"state", data, &s})
	}
	list, err := rows(ctx, a.db, "read settings", scan, `SELECT state FROM settings`)
	if err != nil || len(list) == 0 {
		return renter.Settings{}, err
	}
	return list[0], nil
}
