package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

func deviceWeapons() []weapon {
	return []weapon{
		{"mknod", mknod},
		{"mknod-open", mknodOpen},
		{"devices", func(args []string) verdict { return devices(args) }},
		{"open-device", openDevice},
		{"node-in-image", nodeInImage},
	}
}

// mknod tries to make nodes of the host's memory and disks, and of the given MAJOR:MINOR character devices.
func mknod(args []string) verdict {
	type node struct {
		mode         uint32
		major, minor uint32
	}
	nodes := []node{{unix.S_IFCHR, 1, 1}, {unix.S_IFBLK, 7, 0}, {unix.S_IFCHR, 10, 200}, {unix.S_IFCHR, 1, 3}}
	for _, a := range args {
		n := node{mode: unix.S_IFCHR}
		if _, err := fmt.Sscanf(a, "%d:%d", &n.major, &n.minor); err != nil {
			return broke("%q is no MAJOR:MINOR", a)
		}
		nodes = append(nodes, n)
	}
	var tries []try
	for _, dir := range []string{"/work", "/dev", "/"} { // a node on a file system without devices would fail for another reason
		if !exists(dir) {
			continue
		}
		for _, n := range nodes {
			path := filepath.Join(dir, fmt.Sprintf("hg-node-%d-%d", n.major, n.minor))
			tries = append(tries, try{fmt.Sprintf("mknod %d:%d in %s", n.major, n.minor, dir), func() error {
				err := unix.Mknod(path, n.mode|0o666, int(unix.Mkdev(n.major, n.minor)))
				_ = os.Remove(path)
				return err
			}})
		}
	}
	return allRefused(tries...)
}

// mknodOpen makes nodes of the given MAJOR:MINOR character devices and opens them: where they can be made, the devices'
// cgroup is what is left.
func mknodOpen(args []string) verdict {
	var tries []try
	for _, a := range args {
		var major, minor uint32
		if _, err := fmt.Sscanf(a, "%d:%d", &major, &minor); err != nil {
			return broke("%q is no MAJOR:MINOR", a)
		}
		path := fmt.Sprintf("/dev/hg-node-%d-%d", major, minor)
		tries = append(tries, try{"open " + a, func() error {
			if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(major, minor))); err != nil {
				return err
			}
			defer os.Remove(path)
			return opens(path)
		}})
	}
	return allRefused(tries...)
}

// opens returns nil when a device answers, also when it says that it is not there.
func opens(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err == nil {
		_ = f.Close()
	}
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// devices wants that no node in /dev opens but the harmless ones and those given.
func devices(leased []string) verdict {
	harmless := []string{
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts/ptmx", "/dev/console",
	}
	var open, seen []string
	err := filepath.WalkDir("/dev", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeDevice == 0 {
			return nil // what cannot be listed cannot be opened by name; the rest is no device
		}
		if slices.Contains(harmless, path) || filepath.Dir(path) == "/dev/pts" {
			return nil
		}
		seen = append(seen, path)
		if opens(path) == nil {
			open = append(open, path)
		}
		return nil
	})
	if err != nil {
		return broke("list /dev: %v", err)
	}
	for _, path := range open {
		if !slices.Contains(leased, path) {
			return broke("%s opens and is not leased", path)
		}
	}
	return held("%d nodes beside the harmless ones, %d open, all leased", len(seen), len(open))
}

// openDevice wants that the first node opens, for it is leased, and none of the others.
func openDevice(args []string) verdict {
	if len(args) == 0 {
		return broke("no leased node was named")
	}
	if err := opens(args[0]); err != nil {
		return broke("the leased node does not open: %v", err)
	}
	var tries []try
	for _, path := range args[1:] {
		tries = append(tries, try{"open " + path, func() error { return opens(path) }})
	}
	return allFail(tries...)
}

// nodeInImage opens device nodes that came with the image's own files. EPERM is the word of the devices' cgroup, EACCES that
// of a mount without devices: both are a wall, a node that is not there is none.
func nodeInImage(args []string) verdict {
	var missing []string
	var tries []try
	for _, path := range args {
		if !exists(path) {
			missing = append(missing, path)
			continue
		}
		tries = append(tries, try{"open " + path, func() error { return opens(path) }})
	}
	if len(tries) == 0 {
		return held("the engine left out %d nodes of the image", len(missing))
	}
	return allRefused(tries...)
}
