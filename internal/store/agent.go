package store

import (
	"context"
	"fmt"

	"haggle/internal/renter"
	"haggle/market"
)

// Agent is an agent's durable state. It is a renter.Store.
type Agent struct{ db *database }

var _ renter.Store = (*Agent)(nil)

// OpenAgent opens an agent's database, or makes it with mode 0600 in a folder that exists. The errors that a caller may
// tell apart are ErrLocked, ErrDamaged, ErrNewerSchema, ErrForeign, ErrNetworkDisk and ErrFull. The caller must Close it.
func OpenAgent(ctx context.Context, path string) (*Agent, error) {
	db, err := open(ctx, path, agentSchema())
	if err != nil {
		return nil, fmt.Errorf("open agent's database: %w", err)
	}
	return &Agent{db: db}, nil
}

// Close ends all use of the database and lets the next process have it.
func (a *Agent) Close() error { return a.db.close() }

// Instance returns the random id that the database got when it was made.
func (a *Agent) Instance(context.Context) (market.Nonce, error) { return a.db.instance, nil }

// Save adds or replaces a record by its bid; what is kept about the inside of its lease it only adds. The error is ErrFork if the bid has another lease already, or if the sealed
// terms are not those of the lease. A head behind the one that is kept is passed over: what both signed is not forgotten.
func (a *Agent) Save(ctx context.Context, r renter.Record) error {
	return a.save(ctx, "save bid "+r.Bid.String(), r, func(context.Context, *transaction) error { return nil })
}

// Sign keeps a receipt that the agent has just signed, together with the record. Signing the same content again changes
// nothing; the error is ErrFork if the agent has signed other content of that number, and then nothing is saved.
func (a *Agent) Sign(ctx context.Context, r renter.Record, receipt renter.Receipt) error {
	what := fmt.Sprintf("sign receipt %d of lease %s", receipt.Seq, r.Lease)
	return a.save(ctx, what, r, func(ctx context.Context, tx *transaction) error {
		if receipt.Lease != r.Lease {
			return fmt.Errorf("of lease %s: %w", receipt.Lease, ErrFork)
		}
		body, err := bodyOf(receipt.Sealed)
		if err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, `INSERT INTO receipt (lease, seq, body, sealed) VALUES (?, ?, ?, ?)
			ON CONFLICT (lease, seq) DO UPDATE SET body = body WHERE body = excluded.body`,
			r.Lease[:], receipt.Seq, body[:], receipt.Sealed)
		if err != nil {
			return err
		}
		return needRow(done, ErrFork)
	})
}

// SaveInside replaces what is kept about the inside of a bid's lease, and nothing else.
func (a *Agent) SaveInside(ctx context.Context, bid market.Hash, in renter.Inside) error {
	return a.db.update(ctx, "save the inside of bid "+bid.String(), func(ctx context.Context, tx *transaction) error {
		done, err := tx.ExecContext(ctx, `UPDATE record SET inside = ? WHERE bid = ?`, state(in), bid[:])
		if err != nil {
			return err
		}
		return needRow(done, market.NewError(market.CodeLeaseUnknown, "lease", bid.String()[:8]))
	})
}

// Extend keeps an extension that both sides signed, together with the record. Keeping the same content again changes nothing; the
// error is ErrFork if there is other content of that number, and then nothing is saved.
func (a *Agent) Extend(ctx context.Context, r renter.Record, seq uint32, extension []byte) error {
	what := fmt.Sprintf("keep extension %d of lease %s", seq, r.Lease)
	return a.save(ctx, what, r, func(ctx context.Context, tx *transaction) error {
		body, err := bodyOf(extension)
		if err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, `INSERT INTO extension (lease, seq, body, sealed) VALUES (?, ?, ?, ?)
			ON CONFLICT (lease, seq) DO UPDATE SET body = body WHERE body = excluded.body`, r.Lease[:], seq, body[:], extension)
		if err != nil {
			return err
		}
		return needRow(done, ErrFork)
	})
}

// Dispute keeps a signed refusal of a receipt, together with the record. There is one refusal a receipt: the same again
// changes nothing, and for another the error is ErrFork and nothing is saved.
func (a *Agent) Dispute(ctx context.Context, r renter.Record, seq uint32, reject []byte) error {
	what := fmt.Sprintf("dispute receipt %d of lease %s", seq, r.Lease)
	return a.save(ctx, what, r, func(ctx context.Context, tx *transaction) error {
		done, err := tx.ExecContext(ctx, `INSERT INTO reject (lease, seq, sealed) VALUES (?, ?, ?)
			ON CONFLICT (lease, seq) DO UPDATE SET sealed = sealed WHERE sealed = excluded.sealed`, r.Lease[:], seq, reject)
		if err != nil {
			return err
		}
		return needRow(done, ErrFork)
	})
}

// File keeps a record's new state together with papers of its lease. A paper of a kind and number that is there already is
// replaced, except that for a payment with other content the error is ErrFork and nothing is saved.
func (a *Agent) File(ctx context.Context, r renter.Record, papers ...market.Paper) error {
	return a.save(ctx, "file papers of lease "+r.Lease.String(), r, func(ctx context.Context, tx *transaction) error {
		return savePapers(ctx, tx, r.Lease, papers)
	})
}

// SaveSettings keeps the user's choices.
func (a *Agent) SaveSettings(ctx context.Context, s renter.Settings) error {
	return a.db.update(ctx, "save settings", func(ctx context.Context, tx *transaction) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO settings (one, state) VALUES (1, ?)
			ON CONFLICT (one) DO UPDATE SET state = excluded.state`, state(s))
		return err
	})
}

// save saves a record together with something else.
func (a *Agent) save(ctx context.Context, what string, r renter.Record, also func(context.Context, *transaction) error) error {
	var taken bool
	err := a.db.update(ctx, what, func(ctx context.Context, tx *transaction) (err error) {
		if agentSecrets(r) == nil {
			if taken, err = present(ctx, tx, `SELECT 1 FROM record WHERE bid = ? AND env IS NOT NULL`, r.Bid[:]); err != nil {
				return err
			}
		}
		if err := saveRecord(ctx, tx, r); err != nil {
			return err
		}
		return also(ctx, tx)
	})
	if err == nil {
		a.db.forget(ctx, taken)
	}
	return err
}

func saveRecord(ctx context.Context, tx *transaction, r renter.Record) error {
	var lease, terms any
	if !r.Lease.IsZero() {
		if err := checkTerms(r.Lease, r.Sealed); err != nil {
			return err
		}
		lease, terms = r.Lease[:], state(r.Terms)
	}
	// A lease without an id is of a bid that waits: it must not unmake one that was granted.
	done, err := tx.ExecContext(ctx, `INSERT INTO record
		(bid, lease, job, created, terms, sealed, offer, sealed_bid, task, env, rig_name, model, image, state, head_seq, head,
		outcome, inside)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (bid) DO UPDATE SET
			lease = excluded.lease, job = excluded.job, created = excluded.created, terms = excluded.terms,
			sealed = excluded.sealed, offer = excluded.offer, sealed_bid = excluded.sealed_bid, task = excluded.task,
			env = excluded.env, rig_name = excluded.rig_name, model = excluded.model, image = excluded.image,
			state = excluded.state, outcome = coalesce(excluded.outcome, outcome),
			head = CASE WHEN excluded.head_seq >= head_seq THEN excluded.head ELSE head END,
			head_seq = max(head_seq, excluded.head_seq)
		WHERE lease IS NULL OR lease IS excluded.lease`,
		r.Bid[:], lease, string(r.State.Job), r.State.Created, terms, blob(r.Sealed), r.Offer, r.SealedBid, state(r.Job),
		agentSecrets(r), r.RigName, r.Model, r.Image, state(r.State), r.Head.Seq, state(r.Head), blob(r.Outcome), state(r.Inside))
	if err != nil {
		return err
	}
	return needRow(done, ErrFork)
}

// agentSecrets is secrets for a record: a bid that was refused has no job that needs its environment.
func agentSecrets(r renter.Record) any {
	if r.State.Refused != nil {
		return nil
	}
	return secrets(r.Env, r.State.Job)
}
