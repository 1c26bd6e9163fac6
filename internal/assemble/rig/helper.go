//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"haggle/internal/config"
	"haggle/runtime/remote"
)

// HelperCommand is the hidden subcommand that runs as root beside a rig which does not.
const HelperCommand = "helper"

// Errors of a helper that cannot start.
var (
	// ErrNotRoot means that the helper is not root, which is what it is for.
	ErrNotRoot = errors.New("the helper needs root")
	// ErrHelperRuns means that another helper works with the same files.
	ErrHelperRuns = errors.New("a helper runs there already")
	// ErrUnsafe means that somebody else than root could change a place that the helper works in.
	ErrUnsafe = errors.New("not root's alone")
)

// Helper is the part of a rig that is root where the rig itself is not: it runs the engine and answers the rig, which is another
// user's program, on a socket. It keeps no key, no money and no connection to the network, and takes no path from the rig. Make
// one with NewHelper, then Run it once.
type Helper struct {
	log    *slog.Logger
	lock   *os.File
	engine *engine
	server *remote.Server
	cards  *helperCards
}

// HelperConfig is what a Helper is made from.
type HelperConfig struct {
	Rig config.Rig   // as LoadHelper reads it
	Log *slog.Logger // nil discards
}

// NewHelper makes the helper's folders, takes its socket and starts nothing yet. The caller must Run what it got.
func NewHelper(ctx context.Context, cfg HelperConfig) (_ *Helper, err error) {
	h := &Helper{log: orNone(cfg.Log)}
	uid, gid, err := lookUp(cfg.Rig.Helper.User)
	if err != nil {
		return nil, err
	}
	if err := claimPlaces(cfg.Rig.Paths); err != nil {
		return nil, err
	}
	if h.lock, err = lockHelper(cfg.Rig.Paths); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	describe := newDescriptions(h.log)
	if h.engine, err = openEngine(cfg.Rig, describe, h.log); err != nil {
		return nil, err
	}
	h.cards = newHelperCards(cfg.Rig, describe, h.log)
	h.server, err = remote.NewServer(remote.Config{
		Socket: cfg.Rig.Paths.Helper, UID: uid, GID: gid, Runtime: h.engine, Ready: h.engine.Ready, Power: h.cards, Log: h.log,
	})
	if err != nil {
		return nil, err
	}
	return h, h.server.Listen(ctx)
}

// Run answers the rig until ctx ends. containerd and all jobs go on without it.
func (h *Helper) Run(ctx context.Context) error {
	group, within := errgroup.WithContext(ctx)
	for name, run := range map[string]func(context.Context) error{"engine": h.engine.Run, "socket": h.server.Run, "cards": h.cards.Run} {
		group.Go(func() error {
			if err := run(within); err != nil && within.Err() == nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	h.log.Info("helper is up")
	return errors.Join(group.Wait(), h.close())
}

// close lets go of what NewHelper opened.
func (h *Helper) close() error {
	var errs []error
	if h.engine != nil {
		errs = append(errs, h.engine.Close())
	}
	return errors.Join(append(errs, h.lock.Close())...)
}

// PurgeHelper ends every job of a helper that does not run, and removes all that its engine ever made.
func PurgeHelper(ctx context.Context, cfg config.Rig, log *slog.Logger) (err error) {
	if err := claimPlaces(cfg.Paths); err != nil {
		return err
	}
	lock, err := lockHelper(cfg.Paths)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	engine, err := bareEngine(cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if err := engine.Purge(ctx); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	if err := os.RemoveAll(cfg.Paths.Run); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	data := dataFolder(cfg.Paths)
	for _, path := range []string{lock.Name(), cfg.Paths.Jobs, cfg.Paths.Volumes, filepath.Join(data, "networks"), data} {
		// A folder that holds something else stays.
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
			return fmt.Errorf("purge: %w", err)
		}
	}
	return nil
}

// lookUp finds the user whom the helper serves, by name or by number.
func lookUp(name string) (uid, gid int, err error) {
	u, err := user.Lookup(name)
	if n, bad := strconv.ParseUint(name, 10, 31); err != nil && bad == nil {
		if u, err = user.LookupId(name); err != nil {
			return int(n), int(n), nil // a number without a name has a group of the same number
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("user of the helper: %w", err)
	}
	if uid, err = strconv.Atoi(u.Uid); err == nil {
		gid, err = strconv.Atoi(u.Gid)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("user of the helper: %w", err)
	}
	return uid, gid, nil
}

// claimPlaces makes the helper's folders, and refuses places that somebody else than root could turn into others. Names in
// them can be passed through, and not be listed: jobs' own users and the rig reach what is theirs.
func claimPlaces(p config.Paths) error {
	if os.Geteuid() != 0 {
		return ErrNotRoot
	}
	for _, folder := range []string{dataFolder(p), p.Run} {
		if err := os.MkdirAll(folder, 0o711); err != nil {
			return fmt.Errorf("helper's folder: %w", err)
		}
		if err := rootsAlone(folder); err != nil {
			return err
		}
	}
	if err := rootsAlone(p.Config); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// rootsAlone wants that nobody but root can change a path or any folder above it. In a folder with the sticky bit, such as /tmp,
// others may make things of their own and change none of root's.
func rootsAlone(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return &os.PathError{Op: "look at", Path: at, Err: err}
		}
		kind, sticky := st.Mode&unix.S_IFMT, st.Mode&unix.S_ISVTX != 0 && at != path
		switch {
		case kind == unix.S_IFLNK:
			return fmt.Errorf("%s is a link, name the place itself: %w", at, ErrUnsafe)
		case st.Uid != 0 || st.Mode&0o022 != 0 && !sticky:
			return fmt.Errorf("%s belongs to uid %d, mode %04o: %w", at, st.Uid, st.Mode&0o7777, ErrUnsafe)
		}
		if at == "/" {
			return nil
		}
	}
}

// lockHelper makes sure that one helper works with the engine's files. The lock is gone with the file, or with the process.
func lockHelper(p config.Paths) (*os.File, error) {
	path := filepath.Join(dataFolder(p), "helper.lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the helper's files: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrHelperRuns
		}
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}
