//go:build linux

package volume

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// keptFree is how much of the machine's disk must be free after a disk was made: a twentieth of the new disk, and at least
// 2 GiB, or a twentieth of the machine's disk where that is less. The least protects the machine and not the job: its logs,
// its package manager and its owner need room whatever jobs have, and a machine with a small disk cannot spare as much.
func keptFree(bytes, machine int64) int64 {
	const least = 2 << 30
	return max(bytes/20, min(least, machine/20))
}

// checkRoom returns runtime.ErrNoRoom unless the machine has room for a disk of so many bytes.
func (d *Disks) checkRoom(bytes int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(d.dir, &st); err != nil {
		return fmt.Errorf("room in %s: %w", d.dir, err)
	}
	promised, err := d.promised()
	if err != nil {
		return err
	}
	free := int64(st.Bavail)*st.Frsize - promised
	need := bytes + keptFree(bytes, int64(st.Blocks)*st.Frsize)
	if free < need {
		return fmt.Errorf("%w: %d bytes are free, and %d needed", runtime.ErrNoRoom, free, need)
	}
	return nil
}

// promised is what the disks that are here may still take from the machine: nothing where their room could be reserved, and
// nothing of those that are settled.
func (d *Disks) promised() (int64, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, e := range entries {
		var st unix.Stat_t
		end := filepath.Ext(e.Name())
		if end != endImage && end != endNew {
			continue
		}
		if err := unix.Lstat(filepath.Join(d.dir, e.Name()), &st); err != nil {
			return 0, fmt.Errorf("stat %s: %w", e.Name(), err)
		}
		if st.Mode&0o200 != 0 {
			sum += max(0, st.Size-st.Blocks*512)
		}
	}
	return sum, nil
}
