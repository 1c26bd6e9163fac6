package store

import (
	"fmt"
	"math"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// networkDisks names the file systems by the number that statfs(2) gives for them. FUSE is among them because nobody can
// tell what stands behind it.
var networkDisks = map[uint32]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x65735546: "FUSE",
	0x01021997: "9P",
	0x00c36400: "Ceph",
	0x5346414f: "AFS",
	0x6b414653: "AFS", // the kernel's own
	0x73757245: "Coda",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x19830326: "BeeGFS",
}

// checkDisk refuses a folder on a file system that databases are known to break on.
func checkDisk(folder string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return fmt.Errorf("look at the disk of %s: %w", folder, err)
	}
	return judgeDisk(folder, uint32(s.Type))
}

func judgeDisk(folder string, number uint32) error {
	if name, ok := networkDisks[number]; ok {
		return fmt.Errorf("%s %w (it is %s)", folder, ErrNetworkDisk, name)
	}
	return nil
}

// freeBytes returns how much a user may still write to the disk of a file; a large number where nobody can tell.
func freeBytes(path string) int64 {
	var s unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &s); err != nil || s.Bsize <= 0 {
		return math.MaxInt64
	}
	return int64(min(s.Bavail, math.MaxInt64/uint64(s.Bsize))) * s.Bsize
}
