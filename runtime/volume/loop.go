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
	"time"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

const (
	loopControl = "/dev/loop-control"
	// Another program may take the free device that we were told of; more often than this in a row it does not.
	loopTries = 50
)

// attachLoop puts a file behind a free loop device and returns the device, open. The device frees itself when its last user
// lets go of it: after the mount, or when we die before it. It reads and writes past the page cache where the file system of
// the file can do that, so that nothing is kept in memory twice.
func attachLoop(ctx context.Context, image *os.File) (*os.File, error) {
	control, err := openNode(loopControl, 10, 237)
	if err != nil {
		return nil, fmt.Errorf("%w: loop devices: %w", runtime.ErrUnsupported, err)
	}
	defer control.Close()
	config := unix.LoopConfig{Fd: uint32(image.Fd()), Size: blockSize}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO
	copy(config.Info.File_name[:len(config.Info.File_name)-1], image.Name())
	for range loopTries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		device, err := openLoop(n)
		if err != nil {
			return nil, fmt.Errorf("open loop device %d: %w", n, err)
		}
		if err = unix.IoctlLoopConfigure(int(device.Fd()), &config); err == nil {
			return device, nil
		}
		err = errors.Join(fmt.Errorf("%s: %w", device.Name(), err), device.Close())
		if !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, errors.New("other programs take every free loop device first")
}

// openLoop opens loop device n, which may have no node: in a container nobody makes it.
func openLoop(n int) (*os.File, error) {
	name := "loop" + strconv.Itoa(n)
	number, err := os.ReadFile("/sys/block/" + name + "/dev")
	if err != nil {
		return nil, err
	}
	var major, minor uint32
	if _, err := fmt.Sscanf(string(number), "%d:%d", &major, &minor); err != nil {
		return nil, fmt.Errorf("number of %s: %w", name, err)
	}
	return openNode("/dev/"+name, major, minor, unix.S_IFBLK)
}

// openNode opens a device, and makes its node first where there is none. It is a character device unless kind says otherwise.
func openNode(path string, major, minor uint32, kind ...uint32) (*os.File, error) {
	node, err := os.OpenFile(path, os.O_RDWR, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return node, err
	}
	mode := uint32(unix.S_IFCHR)
	if len(kind) > 0 {
		mode = kind[0]
	}
	if err := unix.Mknod(path, mode|0o600, int(unix.Mkdev(major, minor))); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("make node %s: %w", path, err)
	}
	return os.OpenFile(path, os.O_RDWR, 0)
}

// deleted is what the kernel appends to the path of an unlinked file.
const deleted = " (deleted)"

// backingFile names the file behind a block device, "" if it is no loop device or has none. device is its name in
// /sys/block, or its number in /sys/dev/block.
func backingFile(device string) string {
	path := "/sys/block/" + device
	if strings.Contains(device, ":") {
		path = "/sys/dev/block/" + device
	}
	file, err := os.ReadFile(path + "/loop/backing_file")
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(file), "\n"), deleted)
}

// loops tells which loop devices have a file of ours behind them, and which.
func (d *Disks) loops() (map[string]string, error) {
	found, err := filepath.Glob("/sys/block/loop*")
	if err != nil {
		return nil, err
	}
	ours := map[string]string{}
	for _, path := range found {
		device := filepath.Base(path)
		if file := backingFile(device); filepath.Dir(file) == d.dir {
			ours[device] = filepath.Base(file)
		}
	}
	return ours, nil
}
