package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// maxPid bounds what is read of another process's lock file.
const maxPid = 20

// takeLock makes this process the only user of a database. The file that carries the lock stays when the lock is gone:
// removing it would let two processes lock two files of one name.
func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, maxPid))
		err = describe(path, strings.TrimSpace(string(holder)), err)
		return nil, errors.Join(err, f.Close())
	}
	if err := writePid(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func describe(path, holder string, err error) error {
	if !errors.Is(err, ErrLocked) {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	if _, bad := strconv.Atoi(holder); bad != nil {
		return fmt.Errorf("%s %w by another process", path, ErrLocked)
	}
	return fmt.Errorf("%s %w by process %s", path, ErrLocked, holder)
}

func writePid(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// dropLock gives the lock back; the process id goes first, so that nobody reads that of a process that is gone.
func dropLock(f *os.File) error {
	return errors.Join(f.Truncate(0), f.Close())
}
