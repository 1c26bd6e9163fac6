package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Changes that come while another is on its way to the disk travel together with the next: one transaction, and one wait for
// the disk, serves them all. Each is still whole or absent by itself, and has an error of its own.

// errUnfinished is what waits for an answer while a panic goes by.
var errUnfinished = errors.New("the change was not finished")

// change is one caller's part of a transaction. It may be performed more than once, each time after nothing of it was kept.
type change struct {
	perform func(context.Context, *transaction) error
	ctx     context.Context
	err     error
	done    chan struct{} // closed when err stands
}

// group collects changes. Whoever holds turn writes all that wait.
type group struct {
	turn    chan struct{} // of capacity 1
	mu      sync.Mutex
	waiting []*change
	full    bool // the last change found no room on the disk
}

func newGroup() *group { return &group{turn: make(chan struct{}, 1)} }

func (g *group) add(c *change) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, c)
}

// withdraw takes back a change that nobody has begun to write.
func (g *group) withdraw(c *change) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, c)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	return i >= 0
}

func (g *group) takeAll() []*change {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.waiting
	g.waiting = nil
	return all
}

// settle gives every change its answer.
func (g *group) settle(all []*change) {
	g.mu.Lock()
	for _, c := range all {
		if noRoom := errors.Is(c.err, ErrFull); noRoom || c.err == nil {
			g.full = noRoom
		}
	}
	g.mu.Unlock()
	for _, c := range all {
		close(c.done)
	}
}

// update performs a change as one transaction: all of it is on disk when update returns nil, and nothing of it is kept
// when it returns an error, except that a change whose commit was interrupted may be kept all the same. The change must
// be able to be performed again after nothing of it was kept.
func (d *database) update(ctx context.Context, what string, perform func(context.Context, *transaction) error) error {
	c := &change{perform: perform, ctx: ctx, err: errUnfinished, done: make(chan struct{})}
	d.group.add(c)
	select {
	case <-c.done:
	case d.group.turn <- struct{}{}:
		d.writeAll()
		<-c.done // it was among them, or was written before the turn came
	case <-ctx.Done():
		if d.group.withdraw(c) {
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
		<-c.done
	}
	if c.err != nil {
		return fmt.Errorf("%s: %w", what, c.err)
	}
	return nil
}

// writeAll writes what waits, and passes the turn on.
func (d *database) writeAll() {
	defer func() { <-d.group.turn }()
	all := d.group.takeAll()
	defer d.group.settle(all)
	if len(all) > 1 && d.commit(all...) == nil {
		return
	}
	// Alone, each finds out for itself: a transaction that many shared says nothing about the part of one.
	for _, c := range all {
		if err := d.commit(c); err != nil {
			c.err = err
		}
	}
}

// commit writes changes in one transaction. The error is of the transaction as a whole: nothing of it was kept. A change's own
// error stands in the change, of which nothing was kept either. The callers' contexts end none of it: SQLite drops the whole
// transaction when a statement is interrupted.
func (d *database) commit(all ...*change) error {
	ctx := context.WithoutCancel(all[0].ctx)
	tx, err := d.begin(ctx)
	if err != nil {
		return d.explain(err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	for _, c := range all {
		if err := d.join(ctx, tx, c, len(all) > 1); err != nil {
			return d.explain(err)
		}
	}
	if len(all) == 1 && all[0].err != nil {
		return nil
	}
	if err := tx.Commit(); err != nil {
		// SQLite may have left the transaction open; the connection is to be of use to the next.
		_, _ = d.write.ExecContext(ctx, `ROLLBACK`)
		return d.explain(err)
	}
	d.learn(ctx, tx)
	return nil
}

// join performs one change within a transaction. When others share it, the change can be undone alone. The error means that the
// transaction is lost.
func (d *database) join(ctx context.Context, tx *transaction, c *change, shared bool) error {
	c.err = c.ctx.Err()
	if c.err != nil {
		return nil
	}
	if !shared {
		c.err = d.explain(c.perform(ctx, tx))
		return nil
	}
	if _, err := tx.ExecContext(ctx, `SAVEPOINT one`); err != nil {
		return err
	}
	c.err = d.explain(c.perform(ctx, tx))
	if errors.Is(c.err, ErrFull) {
		return c.err // the others are to find room without it
	}
	if c.err != nil {
		// Where SQLite dropped the transaction there is no savepoint to go back to.
		if _, err := tx.ExecContext(ctx, `ROLLBACK TO one`); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, `RELEASE one`)
	return err
}

// noRoom tells whether the disk has no room: the last change found none, or next to none is left.
func (d *database) noRoom() bool {
	d.group.mu.Lock()
	full := d.group.full
	d.group.mu.Unlock()
	return full || freeBytes(d.path) < leastFree
}
