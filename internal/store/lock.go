package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
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
	if err := waitForLock(f); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, maxPid))
		err = describe(path, strings.TrimSpace(string(holder)), err)
		return nil, errors.Join(err, f.Close())
	}
	if err := writePid(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockPatience is how long the lock of a process that was just killed may last: the kernel drops it only when all of its
// threads are gone, which a busy machine may take a moment for.
const lockPatience = time.Second

func waitForLock(f *os.File) error {
	for waited := time.Duration(0); ; waited += lockPatience / 20 {
		err := lockFile(f)
		if !errors.Is(err, ErrLocked) || waited >= lockPatience {
			return err
		}
		time.Sleep(lockPatience / 20)
	}
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
