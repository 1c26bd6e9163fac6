package store

import (
	"context"
	"crypto/rand"
	_ "embed" // the schemas
	"fmt"

	"haggle/market"
)

//go:embed rig_001.sql
var rig001 string

//go:embed rig_002.sql
var rig002 string

//go:embed rig_003.sql
var rig003 string

//go:embed rig_004.sql
var rig004 string

//go:embed rig_005.sql
var rig005 string

//go:embed agent_001.sql
var agent001 string

//go:embed agent_002.sql
var agent002 string

//go:embed agent_003.sql
var agent003 string

//go:embed agent_004.sql
var agent004 string

//go:embed agent_005.sql
var agent005 string

// schema is a kind of database: its mark in the file's header, and the steps that lead from an empty file to what this
// version of the program reads. A step that was released never changes.
type schema struct {
	whose string // for people
	mark  int32
	steps []string
}

// rigSchema is a rig's database. Its mark reads "hglR".
func rigSchema() schema {
	return schema{whose: "the rig", mark: 0x68676c52, steps: []string{rig001, rig002, rig003, rig004, rig005}}
}

// agentSchema is an agent's database. Its mark reads "hglA".
func agentSchema() schema {
	return schema{whose: "the agent", mark: 0x68676c41, steps: []string{agent001, agent002, agent003, agent004, agent005}}
}

// migrate brings a database to the newest version, in one transaction: after a crash it is at the old version or the new.
func (d *database) migrate(ctx context.Context, s schema) error {
	return d.update(ctx, "migrate", func(ctx context.Context, tx *transaction) error {
		version, err := d.version(ctx, tx, s)
		if err != nil || version == len(s.steps) {
			return err
		}
		for _, step := range s.steps[version:] {
			if _, err := tx.Tx.ExecContext(ctx, step); err != nil {
				return fmt.Errorf("from version %d: %w", version, err)
			}
			version++
		}
		if _, err := tx.Tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d", s.mark)); err != nil {
			return err
		}
		_, err = tx.Tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version))
		return err
	})
}

// version returns how many steps a database has behind it, if it is one of ours at all.
func (d *database) version(ctx context.Context, tx *transaction, s schema) (int, error) {
	var mark int32
	var version, tables int
	row := tx.QueryRowContext(ctx, `SELECT (SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`)
	switch err := row.Scan(&mark, &version, &tables); {
	case err != nil:
		return 0, err
	case tables == 0 && mark == 0 && version == 0:
		return 0, nil
	case mark != s.mark || version < 0:
		return 0, fmt.Errorf("%s %w", d.path, ErrForeign)
	case version > len(s.steps):
		return 0, fmt.Errorf("%s %w (schema %d, this version knows %d)", d.path, ErrNewerSchema, version, len(s.steps))
	}
	return version, nil
}

// identify reads the database's random id, and makes it where there is none yet.
func (d *database) identify(ctx context.Context) error {
	var fresh market.Nonce
	rand.Read(fresh[:]) // never fails: it ends the program instead
	err := d.update(ctx, "make id", func(ctx context.Context, tx *transaction) error {
		var known []byte
		err := tx.QueryRowContext(ctx, `SELECT id FROM instance`).Scan(&known)
		switch {
		case err == nil:
			return fixed(d.instance[:], known)
		case !missing(err):
			return err
		}
		d.instance = fresh
		_, err = tx.ExecContext(ctx, `INSERT INTO instance (one, id) VALUES (1, ?)`, fresh[:])
		return err
	})
	return err
}
