package filesync

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openFlags keep an open from waiting for the other end of a pipe that took a file's place.
const openFlags = unix.O_NONBLOCK

func isNoSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// preallocate takes the room for a file, where the file system can, so that a full disk is known before a byte is sent. The
// file's size stays.
func preallocate(f *os.File, size int64) error {
	if size == 0 {
		return nil
	}
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var e error
	err = c.Control(func(fd uintptr) { e = unix.Fallocate(int(fd), unix.FALLOC_FL_KEEP_SIZE, 0, size) })
	if err == nil && isNoSpace(e) {
		err = e
	}
	return err
}

// syncAll brings what was written below root to the disk.
func syncAll(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var e error
	if err := c.Control(func(fd uintptr) { e = unix.Syncfs(int(fd)) }); err != nil {
		return err
	}
	return os.NewSyscallError("syncfs", e)
}

// syncOne brings a large file to the disk before it gets its name; here syncAll does it for all.
func syncOne(*os.File) error { return nil }
