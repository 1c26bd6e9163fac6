//go:build linux

package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

const (
	// inodeBytes is how much of a disk there is for each file that it may hold. An unpacked conda environment of 10 GB has
	// about 200 000 files, and a disk of 10 GiB takes 655 360.
	inodeBytes = 16 << 10
	// minInodeBytes is the least that mkfs takes.
	minInodeBytes = 1 << 10
)

func openImage(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
}

// reserve makes a file and takes its room from the machine. Where the file system cannot do that the file is sparse, and
// checkRoom counts it as promised.
func reserve(ctx context.Context, path string, size int64) (*os.File, error) {
	image, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, freshMode)
	if err != nil {
		return nil, err
	}
	avoidCopies(image)
	if err = allocate(ctx, image, size); errors.Is(err, unix.EOPNOTSUPP) {
		err = image.Truncate(size)
	}
	if err != nil {
		return nil, errors.Join(err, image.Close())
	}
	return image, nil
}

// allocate takes the room of a file from the machine, and leaves what is in the file as it is.
func allocate(ctx context.Context, image *os.File, size int64) error {
	err := unix.Fallocate(int(image.Fd()), 0, 0, size)
	for errors.Is(err, unix.EINTR) && ctx.Err() == nil {
		err = unix.Fallocate(int(image.Fd()), 0, 0, size)
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG) {
		return fmt.Errorf("%w: reserve %d bytes: %w", runtime.ErrNoRoom, size, err)
	}
	return err
}

// avoidCopies asks file systems that write every change to a new place (btrfs) not to do so: what is reserved would not be
// where the changes go. Others do not know the flag, and need not.
func avoidCopies(image *os.File) {
	const noCopyOnWrite = 0x00800000 // FS_NOCOW_FL
	flags, err := unix.IoctlGetInt(int(image.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		_ = unix.IoctlSetPointerInt(int(image.Fd()), unix.FS_IOC_SETFLAGS, flags|noCopyOnWrite)
	}
}

// format makes the file system. The program inherits held, the folder's lock.
//
// The options, and what they do to a file of 10 GiB whose room is reserved:
//
//	nodiscard           without it mkfs gives the reserved room back to the machine
//	lazy_…_init         writes no inode table and no journal: what is reserved reads as zeros; the mount option noinit_itable
//	                    keeps the kernel from writing them later
//	^resize_inode       no room for growing: 4 ms in place of 10 ms
//	-m 0                no room that only root may use
//	has_journal         stays: it costs 0.3 ms here, and without one a disk that a crash of the machine left dirty cannot be trusted
func format(ctx context.Context, path string, ratio int, held *os.File) error {
	program, err := findProgram("mkfs.ext4")
	if err != nil {
		return fmt.Errorf("%w: mkfs.ext4 is missing (Debian's package e2fsprogs)", runtime.ErrUnsupported)
	}
	cmd := exec.CommandContext(ctx, program, "-F", "-q", "-b", strconv.Itoa(blockSize), "-I", "256", "-i", strconv.Itoa(ratio), "-m", "0",
		"-O", "has_journal,^resize_inode", "-E", "nodiscard,lazy_itable_init=1,lazy_journal_init=1", path)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{held}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is not meant for it
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("mkfs.ext4: %w: %.300s", err, bytes.TrimSpace(out))
	}
	return nil
}

func findProgram(name string) (string, error) {
	for _, dir := range []string{"/usr/sbin/", "/sbin/", "/usr/bin/"} {
		if info, err := os.Stat(dir + name); err == nil && info.Mode().IsRegular() {
			return dir + name, nil
		}
	}
	return exec.LookPath(name) // not everybody keeps programs where Debian does
}

// discard gives the blocks of a file back to the machine, even if something has it open still.
func discard(path string) error {
	image, err := openImage(path)
	if err != nil {
		return err
	}
	defer image.Close()
	info, err := image.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	err = unix.Fallocate(int(image.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, info.Size())
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = image.Truncate(0)
	}
	return err
}
