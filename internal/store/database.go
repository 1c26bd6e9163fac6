package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"haggle/market"
)

// readers is how many connections answer questions while the writer writes.
const readers = 4

// leastFree is the room on a disk below which nothing new is to be begun: what runs needs some to its end.
const leastFree = 16 << 20

// database is one open file. All changes go through one connection, so that they wait for each other in this process and
// not in SQLite's, and travel together where they can; questions go through others, which cannot write.
type database struct {
	path  string
	whose string // for people
	lock  *os.File
	write *sql.DB
	group *group
	read  *sql.DB
	// statements are those that write, by their text, for whoever holds the turn.
	statements map[string]*sql.Stmt
	instance   market.Nonce
}

func newDatabase(path, whose string) *database {
	return &database{path: path, whose: whose, group: newGroup(), statements: map[string]*sql.Stmt{}}
}

// open opens or makes a database. The folder must be there; the file gets mode 0600.
func open(ctx context.Context, path string, s schema) (*database, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := checkDisk(filepath.Dir(path)); err != nil {
		return nil, err
	}
	d := newDatabase(path, s.whose)
	if d.lock, err = takeLock(path); err != nil {
		return nil, err
	}
	if err := d.start(ctx, s); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *database) start(ctx context.Context, s schema) error {
	if err := private(d.path); err != nil {
		return err
	}
	var err error
	// With FULL every commit waits for the disk, on macOS only with fullfsync. What is deleted is overwritten: environments
	// hold passwords.
	if d.write, err = sql.Open("sqlite", source(d.path, "journal_mode(WAL)", "synchronous(FULL)", "fullfsync(ON)", "secure_delete(ON)")); err != nil {
		return err
	}
	d.write.SetMaxOpenConns(1)
	if d.read, err = sql.Open("sqlite", source(d.path, "query_only(ON)")); err != nil {
		return err
	}
	d.read.SetMaxOpenConns(readers)
	if err := d.check(ctx); err != nil {
		return err
	}
	if err := d.migrate(ctx, s); err != nil {
		return err
	}
	return d.identify(ctx)
}

// private makes sure that the file is there and is the owner's alone, before SQLite gives its mode to the files beside it.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}

// source names a database to the driver. Every connection waits for others for a while, minds foreign keys, and trusts
// nothing that the schema says.
func source(path string, pragmas ...string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive letter
	}
	q := url.Values{"_txlock": {"immediate"}}
	q["_pragma"] = append([]string{"busy_timeout(5000)", "foreign_keys(ON)", "trusted_schema(OFF)"}, pragmas...)
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	return u.String()
}

// check reads the whole file once.
func (d *database) check(ctx context.Context) error {
	var verdict string
	switch err := d.write.QueryRowContext(ctx, `PRAGMA quick_check(1)`).Scan(&verdict); {
	case err != nil:
		return fmt.Errorf("check %s: %w", d.path, d.explain(err))
	case verdict != "ok":
		return d.damaged(verdict)
	}
	return nil
}

// close gives everything back. The writer goes last: it folds the log into the file.
func (d *database) close() error {
	var errs []error
	for _, db := range []*sql.DB{d.read, d.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if d.lock != nil {
		errs = append(errs, dropLock(d.lock))
	}
	return errors.Join(errs...)
}

// forget empties the log if a change has taken an environment out of the file: until then the log still holds it. A reader
// that is in the way for long leaves that to the next time, or to the end; the change itself is kept either way.
func (d *database) forget(ctx context.Context, taken bool) {
	if taken {
		_, _ = d.write.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	}
}

// present tells whether a query finds a row. It is asked within a change.
func present(ctx context.Context, tx *transaction, query string, args ...any) (bool, error) {
	var one int
	switch err := tx.QueryRowContext(ctx, query, args...).Scan(&one); {
	case missing(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// row is what a query's one row or the current row of many can do.
type row interface{ Scan(into ...any) error }

// rows asks a question and reads each row of the answer.
func rows[T any](ctx context.Context, d *database, what string, scan func(row) (T, error), query string, args ...any) (list []T, err error) {
	answer, err := d.read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, d.explain(err))
	}
	defer func() { err = errors.Join(err, answer.Close()) }()
	for answer.Next() {
		item, err := scan(answer)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, d.explain(err))
		}
		list = append(list, item)
	}
	if err := answer.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", what, d.explain(err))
	}
	return list, nil
}

func missing(err error) bool { return errors.Is(err, sql.ErrNoRows) }
