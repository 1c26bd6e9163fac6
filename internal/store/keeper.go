package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Defaults of a Keeper.
const (
	defaultEvery = 24 * time.Hour
	defaultKept  = 3
	retryAfter   = time.Hour // after a copy that failed
)

// settleIn is how long a program runs before its first copy: at its start it has better to do.
const settleIn = time.Minute

// keeperTime is the part of a copy's name that says when it was made; UTC, so that names sort by time.
const keeperTime = "20060102-150405"

// Keeper makes a copy of a database every day and keeps the newest few: a disk that lies is found out late. The zero Every and
// Kept are a day and 3.
type Keeper struct {
	Folder string // for the copies; made with mode 0700 where it is not there
	Name   string // what the copies' names begin with
	Every  time.Duration
	Kept   int
	Backup func(ctx context.Context, path string) (Copy, error) // Rig.Backup or Agent.Backup
	Log    *slog.Logger                                         // nil discards
}

// Run makes copies until ctx ends: after a minute where the newest is older than Every, or lies in the future, and then when the
// next is due. It returns nil: a copy that fails is told to the log and tried again an hour later, and the copies that there are stay.
func (k Keeper) Run(ctx context.Context) error {
	if k.Every <= 0 {
		k.Every = defaultEvery
	}
	if k.Kept <= 0 {
		k.Kept = defaultKept
	}
	if k.Log == nil {
		k.Log = slog.New(slog.DiscardHandler)
	}
	for wait := settleIn; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		var err error
		if wait, err = k.turn(ctx, time.Now()); err != nil && ctx.Err() == nil {
			k.Log.Warn("no copy of the database could be made", "folder", k.Folder, "retry_in", wait, "error", err)
		}
	}
}

// turn makes a copy if one is due, and returns how long to wait for the next.
func (k Keeper) turn(ctx context.Context, now time.Time) (time.Duration, error) {
	if err := os.MkdirAll(k.Folder, 0o700); err != nil {
		return retryAfter, err
	}
	copies, err := k.copies()
	if err != nil {
		return retryAfter, err
	}
	if n := len(copies); n > 0 {
		if age := now.Sub(copies[n-1].made); age >= 0 && age < k.Every {
			return k.Every - age, nil
		}
	}
	path := filepath.Join(k.Folder, k.Name+now.UTC().Format(keeperTime)+".db")
	if _, err := k.Backup(ctx, path); err != nil {
		return retryAfter, err
	}
	return k.Every, k.prune()
}

// keptCopy is one file of a Keeper.
type keptCopy struct {
	path string
	made time.Time
}

// copies lists what Run made, oldest first. Other files are nobody's business here.
func (k Keeper) copies() ([]keptCopy, error) {
	entries, err := os.ReadDir(k.Folder)
	if err != nil {
		return nil, err
	}
	var list []keptCopy
	for _, e := range entries {
		stamp, ours := strings.CutPrefix(e.Name(), k.Name)
		stamp, whole := strings.CutSuffix(stamp, ".db")
		made, err := time.Parse(keeperTime, stamp)
		if info, statErr := e.Info(); !ours || !whole || err != nil || statErr != nil || info.Size() == 0 {
			continue // among them a name that a killed program reserved
		}
		list = append(list, keptCopy{filepath.Join(k.Folder, e.Name()), made})
	}
	slices.SortFunc(list, func(a, b keptCopy) int { return a.made.Compare(b.made) })
	return list, nil
}

// prune removes the oldest copies, and what killed programs left.
func (k Keeper) prune() error {
	copies, err := k.copies()
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range copies[:max(0, len(copies)-k.Kept)] {
		if err := os.Remove(c.path); err != nil {
			errs = append(errs, fmt.Errorf("remove an old copy: %w", err))
		}
	}
	entries, err := os.ReadDir(k.Folder)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, e := range entries {
		if name, part := strings.CutSuffix(e.Name(), partSuffix); part && strings.HasPrefix(name, k.Name) {
			_, _ = os.Remove(filepath.Join(k.Folder, e.Name())), os.Remove(filepath.Join(k.Folder, name)) // next time, then
		}
	}
	return errors.Join(errs...)
}
