package inside

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func mountWeapons() []weapon {
	return []weapon{
		{"mount", func([]string) verdict { return mounts() }},
		{"new-mount-calls", newMountCalls},
		{"unmask", unmask},
		{"pivot", pivot},
	}
}

// mountAt mounts on a folder of the job's own, and takes it away again.
func mountAt(source, kind string, flags uintptr, data string) error {
	dir := "/tmp/hg-mount"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		dir = "/work/hg-mount"
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount(source, dir, kind, flags, data); err != nil {
		return err
	}
	return unix.Unmount(dir, unix.MNT_DETACH)
}

func mounts() verdict {
	at := func(what, source, kind string, flags uintptr, data string) try {
		return try{what, func() error { return mountAt(source, kind, flags, data) }}
	}
	return allRefused(
		at("mount tmpfs", "tmpfs", "tmpfs", 0, ""),
		at("mount proc", "proc", "proc", 0, ""),
		at("mount sysfs", "sysfs", "sysfs", 0, ""),
		at("mount overlay", "overlay", "overlay", 0, "lowerdir=/proc:/"),
		at("bind /", "/", "", unix.MS_BIND, ""),
		at("mount devpts", "devpts", "devpts", 0, ""),
		at("mount cgroup2", "cgroup2", "cgroup2", 0, ""),
		at("mount debugfs", "debugfs", "debugfs", 0, ""),
	)
}

func newMountCalls([]string) verdict {
	kind, here, at := text("tmpfs"), text("/"), unix.AT_FDCWD
	return allRefused(
		call("fsopen", unix.SYS_FSOPEN, kind, 0),
		call("fspick", unix.SYS_FSPICK, at, here, 0),
		call("open_tree with a clone", unix.SYS_OPEN_TREE, at, here, 1),
		call("mount_setattr", unix.SYS_MOUNT_SETATTR, at, here, 0, make([]byte, 32), 32),
		call("move_mount", unix.SYS_MOVE_MOUNT, at, here, at, here, 0),
	)
}

// unmask tries to take away what hides parts of /proc and /sys, and to make them writable.
func unmask([]string) verdict {
	var tries []try
	for _, path := range []string{"/proc/kcore", "/proc/sys", "/proc/sysrq-trigger", "/sys/firmware", "/proc", "/sys", "/dev", "/work"} {
		if !exists(path) {
			continue
		}
		tries = append(tries,
			try{"unmount " + path, func() error { return unix.Unmount(path, unix.MNT_DETACH) }},
			try{"remount " + path, func() error { return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND, "") }},
			try{"move " + path, func() error { return unix.Mount(path, "/tmp", "", unix.MS_MOVE, "") }},
		)
	}
	return allRefused(tries...)
}

func pivot([]string) verdict {
	return allRefused(
		try{"pivot_root", func() error { return unix.PivotRoot("/", "/") }},
		try{"chroot", func() error {
			if err := os.MkdirAll("/tmp/hg-root", 0o755); err != nil {
				return errors.Join(err, unix.EINVAL)
			}
			return unix.Chroot("/tmp/hg-root")
		}},
	)
}
