//go:build linux

package containerd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	"golang.org/x/sys/unix"

	"haggle/runtime"
	"haggle/runtime/volume"
)

// A job's root file system is an overlay: the image's layers, as the snapshotter keeps them for all jobs, below a folder
// on the job's own disk. The layers are seen through a mount that shifts their owners into the job's range of ids, one
// mount for all of them: the kernel copies nothing, and a second job costs as little as the first.
//
// Runc's first step is to copy the overlay into the job's own mount namespace, and the overlay holds what is below it. So
// both mounts are needed only while the job is made.

// maxLayers is how many layers an image may have: as many as Docker builds.
const maxLayers = 127

// layers are the file systems of an image's layers, the uppermost first: names of folders below dir.
type layers struct {
	dir   string
	names []string
}

// findLayers reads them off the mounts of a read-only snapshot: a bind mount of the only layer, or an overlay of several.
func findLayers(kind, source string, options []string) (layers, error) {
	paths := []string{source}
	if kind == "overlay" {
		paths = nil
		for _, o := range options {
			if lower, ok := strings.CutPrefix(o, "lowerdir="); ok {
				paths = strings.Split(lower, ":")
			}
		}
	} else if kind != "bind" {
		return layers{}, fmt.Errorf("%w: the snapshotter gives mounts of type %.20q, not overlay", runtime.ErrUnsupported, kind)
	}
	if len(paths) == 0 || len(paths) > maxLayers {
		return layers{}, fmt.Errorf("%w: %d layers", runtime.ErrUnsupported, len(paths))
	}
	l := layers{dir: filepath.Dir(paths[0])}
	for i := 0; i < len(paths); {
		name, ok := strings.CutPrefix(paths[i], strings.TrimSuffix(l.dir, "/")+"/")
		if !ok {
			if l.dir == "/" || !filepath.IsAbs(paths[i]) {
				return layers{}, fmt.Errorf("%w: layer at %.200q", runtime.ErrUnsupported, paths[i])
			}
			l.dir, l.names, i = filepath.Dir(l.dir), nil, 0
			continue
		}
		l.names = append(l.names, name)
		i++
	}
	return l, nil
}

// upper is the disk that a root file system is on. One that is not writable makes a root that is not.
type upper struct {
	volume.Disk
	writable bool
}

// mountRoot mounts a job's root file system at root, with the help of the empty folder below. Both are in the job's folder. A
// device in an image is none in the job, unless devices is set.
func mountRoot(root, below string, l layers, disk upper, space *os.File, devices bool) error {
	if err := mountShifted(below, l.dir, space); err != nil {
		return err
	}
	flags := uintptr(unix.MS_NODEV)
	if devices {
		flags = 0
	}
	return errors.Join(mountOverlay(root, below, l.names, disk, flags), unmount(below))
}

// mountShifted mounts the folder source, read-only and seen as from a user namespace. A nil one shifts nothing.
func mountShifted(target, source string, space *os.File) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("open layers: %w", err)
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{
		Attr_set:    unix.MOUNT_ATTR_RDONLY,
		Propagation: unix.MS_PRIVATE,
	}
	if space != nil {
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(space.Fd())
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			err = fmt.Errorf("%w: the file system of %s shows no owners of a job's own: %w", runtime.ErrUnsupported, source, err)
		}
		return fmt.Errorf("shift owners of layers: %w", err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach layers: %w", err)
	}
	return nil
}

// mountOverlay names folders by open files: the kernel takes one page of text, which holds the paths of few layers.
func mountOverlay(root, below string, names []string, disk upper, flags uintptr) error {
	var fds []string
	for _, dir := range []string{below, disk.Upper, disk.Work} {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return &fs.PathError{Op: "open", Path: dir, Err: err}
		}
		defer unix.Close(fd)
		fds = append(fds, fmt.Sprintf("/proc/self/fd/%d", fd))
	}
	var lower []string
	for _, name := range names {
		lower = append(lower, fds[0]+"/"+name)
	}
	if len(lower) == 1 {
		// Overlayfs takes a single layer only together with another or with an upper one, which it has.
		lower[0] = strings.TrimSuffix(lower[0], "/.")
	}
	// Volatile: nobody waits for the machine's disk. What a crash of the machine may take is what the job wrote outside /work.
	data := fmt.Sprintf("index=off,volatile,lowerdir=%s,upperdir=%s,workdir=%s", strings.Join(lower, ":"), fds[1], fds[2])
	if !disk.writable {
		data = fmt.Sprintf("index=off,lowerdir=%s:%s", fds[1], strings.Join(lower, ":"))
	} else if err := forgetVolatile(disk.Work); err != nil {
		return err
	}
	if len(data) >= os.Getpagesize() {
		return fmt.Errorf("%w: %d layers are too many to mount", runtime.ErrUnsupported, len(names))
	}
	err := unix.Mount("overlay", root, "overlay", flags, data)
	goruntime.KeepAlive(data)
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%w: no overlay of layers with shifted owners, which needs Linux 5.19: %w", runtime.ErrUnsupported, err)
	}
	if err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	return nil
}

// forgetVolatile removes the mark of an earlier volatile mount, which keeps the kernel from mounting a second time. It is in a
// folder that no job sees.
func forgetVolatile(work string) error {
	return os.RemoveAll(filepath.Join(work, "work", "incompat"))
}

// unmount detaches what is mounted at a folder, if anything is.
func unmount(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return nil
}
