//go:build !linux && !windows

package filesync

import (
	"errors"
	"os"
	"syscall"
)

// openFlags keep an open from waiting for the other end of a pipe that took a file's place.
const openFlags = syscall.O_NONBLOCK

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func preallocate(*os.File, int64) error { return nil }

func syncAll(*os.Root) error { return nil }

// syncOne brings a large file to the disk before it gets its name.
func syncOne(f *os.File) error { return f.Sync() }
