package store

import (
	"context"
	"database/sql"
)

// transaction is what changes write through. It keeps the statements that it has seen prepared: they are few, and SQLite takes as
// long to understand one as to perform it. It belongs to whoever holds the turn.
type transaction struct {
	*sql.Tx
	known map[string]*sql.Stmt
	fresh map[string]bool // statements that are to be prepared when the connection is free
}

// ExecContext performs a statement of which there is one text for all arguments.
func (t *transaction) ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error) {
	if s, ok := t.known[statement]; ok {
		return t.StmtContext(ctx, s).ExecContext(ctx, args...)
	}
	t.fresh[statement] = true
	return t.Tx.ExecContext(ctx, statement, args...)
}

// QueryRowContext asks a question of which there is one text for all arguments.
func (t *transaction) QueryRowContext(ctx context.Context, question string, args ...any) *sql.Row {
	if s, ok := t.known[question]; ok {
		return t.StmtContext(ctx, s).QueryRowContext(ctx, args...)
	}
	t.fresh[question] = true
	return t.Tx.QueryRowContext(ctx, question, args...)
}

// begin opens a transaction on the one connection that writes.
func (d *database) begin(ctx context.Context) (*transaction, error) {
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &transaction{Tx: tx, known: d.statements, fresh: map[string]bool{}}, nil
}

// learn prepares the statements that a transaction met for the first time. One that cannot be prepared is performed as it is.
func (d *database) learn(ctx context.Context, t *transaction) {
	for text := range t.fresh {
		if s, err := d.write.PrepareContext(ctx, text); err == nil {
			d.statements[text] = s // closed with the database
		}
	}
}
