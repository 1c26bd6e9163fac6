package filesync

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

const openFlags = 0

func isNoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

func preallocate(*os.File, int64) error { return nil }

func syncAll(*os.Root) error { return nil }

// syncOne brings a large file to the disk before it gets its name.
func syncOne(f *os.File) error { return f.Sync() }
