package process

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// lockFile takes a lock that the system drops when the process ends, however it ends. Closing the file drops it too.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	const mode = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err = windows.LockFileEx(windows.Handle(f.Fd()), mode, 0, 1, 0, new(windows.Overlapped))
	if err == nil {
		return f, nil
	}
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		err = errLocked
	}
	return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
}

// replace renames a file. Windows refuses that while somebody reads the old one, which takes a moment only.
func replace(from, to string) error {
	err := os.Rename(from, to)
	for try := 0; err != nil && try < 20; try++ {
		time.Sleep(10 * time.Millisecond)
		err = os.Rename(from, to)
	}
	return err
}
