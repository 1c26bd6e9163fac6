//go:build linux

package device

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// machine is what descriptions are held against.
type machine interface {
	// node tells of a character device. errLink when a part of its path is a symbolic link, errNoChar when it is something else.
	node(p string) (node, error)
	// source resolves the symbolic links of a file or folder.
	source(p string) (source, error)
	// library reads the name under which programs ask for a shared library; native is false when they cannot load it at all.
	library(p string) (soname string, native bool)
	// program fails unless p is a program that only root can change.
	program(p string) error
	// bus tells where on the PCI bus the card of a node is: 0000:03:00.0.
	bus(p string) (string, bool)
}

// node is a character device as it is on the machine.
type node struct {
	major, minor uint32
	mode         fs.FileMode // permissions only
	gid          uint32
}

// source is a file or folder as it is on the machine.
type source struct {
	path   string // without symbolic links
	folder bool
	mode   fs.FileMode
}

var (
	errLink   = errors.New("a part of its path is a symbolic link")
	errNoChar = errors.New("it is no character device")
)

// host is this machine.
type host struct{}

func (host) node(p string) (node, error) {
	for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return node{}, err
		}
		if !info.IsDir() {
			return node{}, errLink
		}
	}
	var st unix.Stat_t
	if err := unix.Lstat(p, &st); err != nil {
		return node{}, &fs.PathError{Op: "lstat", Path: p, Err: err}
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
	case unix.S_IFLNK:
		return node{}, errLink
	default:
		return node{}, errNoChar
	}
	return node{
		major: unix.Major(st.Rdev), minor: unix.Minor(st.Rdev),
		mode: fs.FileMode(st.Mode & 0o777), gid: st.Gid,
	}, nil
}

func (host) source(p string) (source, error) {
	resolved, err := filepath.EvalSymlinks(p)
	if err != nil {
		return source{}, err
	}
	info, err := os.Lstat(resolved)
	if err != nil {
		return source{}, err
	}
	if !info.Mode().IsRegular() && !info.IsDir() {
		return source{}, fmt.Errorf("%s is neither a file nor a folder", resolved)
	}
	return source{path: resolved, folder: info.IsDir(), mode: info.Mode().Perm()}, nil
}

func (host) library(p string) (soname string, native bool) {
	f, err := elf.Open(p)
	if err != nil {
		return "", false
	}
	defer f.Close()
	want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[goruntime.GOARCH]
	if f.Class != elf.ELFCLASS64 || f.Machine != want {
		return "", false
	}
	names, err := f.DynString(elf.DT_SONAME)
	if err != nil || len(names) == 0 {
		return "", true
	}
	return names[0], true
}

func (host) program(p string) error {
	for part := p; ; part = path.Dir(part) {
		info, err := os.Lstat(part)
		if err != nil {
			return err
		}
		if part == p && !info.Mode().IsRegular() || part != p && !info.IsDir() {
			return fmt.Errorf("%s is a symbolic link or no program", part)
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || st.Uid != 0 || info.Mode().Perm()&0o022 != 0 {
			return fmt.Errorf("others than root can change %s", part)
		}
		if part == "/" {
			return nil
		}
	}
}

func (h host) bus(p string) (string, bool) {
	n, err := h.node(p)
	if err != nil {
		return "", false
	}
	to, err := os.Readlink(fmt.Sprintf("/sys/dev/char/%d:%d/device", n.major, n.minor))
	if err != nil {
		return "", false
	}
	bus := path.Base(to)
	return bus, len(bus) <= 16 && strings.Count(bus, ":") == 2 && strings.Trim(bus, "0123456789abcdef:.") == ""
}
