//go:build linux

package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mountFlags are those of every disk.
const mountFlags = unix.MS_NODEV | unix.MS_NOSUID | unix.MS_NOATIME

// mountImage mounts a disk's file. Its loop device goes with the mount.
func mountImage(ctx context.Context, image *os.File, at string, flags uintptr) error {
	// Nobody gets into the folder while nothing is mounted there.
	if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	device, err := attachLoop(ctx, image)
	if err != nil {
		return err
	}
	defer device.Close()
	if err := unix.Mount(device.Name(), at, "ext4", flags, "noinit_itable,errors=remount-ro"); err != nil {
		return fmt.Errorf("mount %s on %s: %w", device.Name(), at, err)
	}
	return nil
}

// mountedDevice returns the number of the device that is mounted on a folder, as major:minor, and "" if nothing is.
func mountedDevice(at string) (string, error) {
	var here, above unix.Stat_t
	if err := unix.Lstat(at, &here); err != nil {
		return "", &os.PathError{Op: "lstat", Path: at, Err: err}
	}
	if err := unix.Lstat(filepath.Dir(at), &above); err != nil {
		return "", &os.PathError{Op: "lstat", Path: filepath.Dir(at), Err: err}
	}
	if here.Dev == above.Dev {
		return "", nil
	}
	return fmt.Sprintf("%d:%d", unix.Major(here.Dev), unix.Minor(here.Dev)), nil
}

// maxStacked is how many mounts on one folder are taken away.
const maxStacked = 64

// unmount takes away all that is mounted on a folder, and with it whatever is mounted below: no path below is looked at, for
// they are the tenant's. What is in use is only taken out of sight; the kernel ends it with its last user.
func unmount(at string) error {
	for range maxStacked {
		points, err := mountPoints(at)
		if err != nil {
			return err
		}
		if len(points) == 0 || points[0] != at {
			return nil
		}
		err = unix.Unmount(at, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EBUSY) {
			err = unix.Unmount(at, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
		}
		if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: another was faster
			return fmt.Errorf("unmount %s: %w", at, err)
		}
	}
	return fmt.Errorf("unmount %s: more than %d mounts lie on it", at, maxStacked)
}

// mountPoints lists what is mounted on a folder and below it, the folder itself first.
func mountPoints(at string) ([]string, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var on, below []string
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		switch point := unescape(fields[4]); {
		case point == at:
			on = append(on, point)
		case strings.HasPrefix(point, at+"/"):
			below = append(below, point)
		}
	}
	return append(on, below...), nil
}

// unescape reads the octal numbers by which the kernel writes blanks and backslashes of paths.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// maxHolders is how many processes an error names.
const maxHolders = 5

// holders names processes that have a block device mounted, by device name, for the error that says it does not go.
func holders(device string) []string {
	number, err := os.ReadFile("/sys/block/" + device + "/dev")
	if err != nil {
		return nil
	}
	want := " " + strings.TrimSpace(string(number)) + " "
	tables, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	var found []string
	for _, path := range tables {
		table, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(table), want) && len(found) < maxHolders {
			found = append(found, filepath.Base(filepath.Dir(path)))
		}
	}
	return found
}
