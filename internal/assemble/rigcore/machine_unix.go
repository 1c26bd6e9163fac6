//go:build linux || darwin

package rigcore

import "golang.org/x/sys/unix"

// space returns the bytes of a file's disk: those that are free for us, and all.
func space(path string) (free, total int64, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, 0, err
	}
	block := int64(fs.Bsize) //nolint:unconvert // its type differs between systems
	return int64(fs.Bavail) * block, int64(fs.Blocks) * block, nil
}
