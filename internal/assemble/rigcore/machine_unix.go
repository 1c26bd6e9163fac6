//go:build linux || darwin

package rigcore

import "golang.org/x/sys/unix"

// diskFree returns the bytes that are free for us on a file's disk.
func diskFree(path string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Bavail) * int64(fs.Bsize), nil //nolint:unconvert // its type differs between systems
}
