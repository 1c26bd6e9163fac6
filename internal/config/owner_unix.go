//go:build !windows

package config

import (
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether a file belongs to this user and nobody else may use it.
func ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
