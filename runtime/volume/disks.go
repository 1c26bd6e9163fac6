//go:build linux

package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Names of the protections, for Config.Without.
const (
	// DiskQuota keeps what a job writes inside a file system of its own.
	DiskQuota = "disk-quota"
	// InodeQuota bounds how many files a disk takes: one for each 16 KiB of it.
	InodeQuota = "inode-quota"
)

// Protections lists the names that Config.Without knows.
func Protections() []string { return []string{DiskQuota, InodeQuota} }

// Config says where disks are kept.
type Config struct {
	// Dir is an absolute path of a folder for disks and nothing else, which New makes when it is not there. Other users may
	// pass through it, because a job's root must reach its own disk, but not list it. Whoever mounts a disk for a job must
	// see it at the same path.
	Dir string
	// Without lists protections left out, by name, for tests that prove that they matter; nothing else sets it.
	Without []string
	// Log receives what no caller is told. nil means none.
	Log *slog.Logger
}

// Disks keeps the disks below one folder. Its methods may be called concurrently, also by several processes.
type Disks struct {
	dir     string
	without []string
	log     *slog.Logger
	turn    chan struct{} // holds one token while a goroutine of this process has the folder's lock
}

// New checks the folder, and makes it if need be. It touches no disk. Root is needed from Make on.
func New(cfg Config) (*Disks, error) {
	for _, name := range cfg.Without {
		if !slices.Contains(Protections(), name) {
			return nil, fmt.Errorf("disks of jobs: there is no protection %q", name)
		}
	}
	if !filepath.IsAbs(cfg.Dir) || filepath.Clean(cfg.Dir) != cfg.Dir || cfg.Dir == "/" || strings.ContainsAny(cfg.Dir, "\n\\") {
		return nil, fmt.Errorf("disks of jobs: folder %q is no clean absolute path", cfg.Dir)
	}
	if err := makeDir(cfg.Dir); err != nil {
		return nil, fmt.Errorf("disks of jobs: %w", err)
	}
	// The kernel names mounts and files by their true path.
	dir, err := filepath.EvalSymlinks(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("disks of jobs: %w", err)
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Disks{dir: dir, without: slices.Clone(cfg.Without), log: log, turn: make(chan struct{}, 1)}, nil
}

// makeDir makes sure that nobody but us can put anything into the folder.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("stat %s: %w", dir, err)
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return fmt.Errorf("%s is no folder of ours", dir)
	}
	return os.Chmod(dir, 0o711)
}

func (d *Disks) leaves(protection string) bool { return slices.Contains(d.without, protection) }

// What there may be of a disk below the folder, by the ending of its name.
const (
	endImage = ".img" // a whole disk
	endNew   = ".new" // a disk that is being made
	endMount = ".mnt" // where it is mounted
	endPlain = ".dir" // in its place without DiskQuota
)

func (d *Disks) path(id, end string) string { return filepath.Join(d.dir, id+end) }

const (
	lockPause  = 2 * time.Millisecond
	lockPauses = 50 * time.Millisecond // at most
)

// lock keeps others, also in other processes, from making and destroying. The file returned is what holds it: a child that
// inherits it holds it too, so that nobody works beside the mkfs of a process that was killed.
func (d *Disks) lock(ctx context.Context) (*os.File, error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	held, err := d.lockFolder(ctx)
	if err != nil {
		<-d.turn
		return nil, fmt.Errorf("lock %s: %w", d.dir, err)
	}
	return held, nil
}

func (d *Disks) unlock(held *os.File) {
	// By hand, because a program that is just being started may hold a copy for a moment.
	if err := errors.Join(unix.Flock(int(held.Fd()), unix.LOCK_UN), held.Close()); err != nil {
		d.log.Warn("unlock the folder of disks", "dir", d.dir, "err", err)
	}
	<-d.turn
}

func (d *Disks) lockFolder(ctx context.Context) (*os.File, error) {
	for pause := lockPause; ; pause = min(2*pause, lockPauses) {
		held, err := d.tryLock()
		if held != nil || err != nil {
			return held, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryLock returns neither a file nor an error when somebody else holds the lock.
func (d *Disks) tryLock() (*os.File, error) {
	if err := makeDir(d.dir); err != nil { // Purge takes the folder away
		return nil, err
	}
	held, err := os.Open(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	var mine, now unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(held.Fd()), &mine)
	}
	if err == nil {
		err = unix.Stat(d.dir, &now)
	}
	if err == nil && mine.Dev == now.Dev && mine.Ino == now.Ino {
		return held, nil
	}
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT) {
		err = nil
	}
	return nil, errors.Join(err, held.Close())
}
