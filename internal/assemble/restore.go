package assemble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"haggle/internal/config"
	"haggle/internal/store"
	"haggle/internal/view"
	"haggle/market"
	"haggle/p2p"
)

// ErrStopFirst means that the program runs, and that what was asked is for when it does not.
var ErrStopFirst = errors.New("it cannot be done while the program runs")

// Restorer is store.RestoreRig or store.RestoreAgent.
type Restorer func(ctx context.Context, from, path string, o store.Origin) (store.Restored, error)

// Restore puts a copy in the place of a program's database. It is refused while the program runs, for a copy of another network,
// and for one that was signed with another key than the one that lies here.
func Restore(ctx context.Context, from, network string, paths config.Paths, restore Restorer) (store.Restored, error) {
	if err := paths.Make(); err != nil {
		return store.Restored{}, err
	}
	o := store.Origin{Network: network}
	switch _, err := os.Stat(paths.Key); {
	case err == nil:
		key, err := p2p.LoadOrCreateKey(paths.Key)
		if err != nil {
			return store.Restored{}, err
		}
		o.Key = market.KeyOf(key)
	case !errors.Is(err, fs.ErrNotExist):
		return store.Restored{}, err
	}
	done, err := restore(ctx, from, paths.Database, o)
	switch {
	case errors.Is(err, store.ErrLocked):
		err = fmt.Errorf("%w: %w", ErrStopFirst, err)
	case errors.Is(err, store.ErrOtherKey):
		err = fmt.Errorf("%w (key file %s)", err, paths.Key)
	}
	return done, err
}

// Backup tells people of a copy that was just made, or why the file that they named cannot be made.
func Backup(c store.Copy, err error) (view.Backup, error) {
	var file *fs.PathError
	switch {
	case errors.Is(err, fs.ErrExist) && errors.As(err, &file):
		return view.Backup{}, market.NewError(market.CodeBadRequest, "why", "there is a file "+file.Path+" already, and no copy replaces a file")
	case errors.As(err, &file):
		return view.Backup{}, market.NewError(market.CodeBadRequest, "why", "no copy can be made: "+file.Error())
	case err != nil:
		return view.Backup{}, err
	}
	return view.Backup{Path: c.Path, Bytes: c.Bytes, At: time.Now().UnixMilli()}, nil
}

// Copies is the folder of the copies that a program makes of its database every day.
func Copies(paths config.Paths) string { return filepath.Join(filepath.Dir(paths.Database), "backups") }
