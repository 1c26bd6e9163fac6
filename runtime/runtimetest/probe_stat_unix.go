//go:build unix

package runtimetest

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func describe(w io.Writer, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("stat %s: no owner", path)
	}
	_, err = fmt.Fprintf(w, "%s %d %d %o\n", path, st.Uid, st.Gid, info.Mode().Perm())
	return err
}

func mknod(path string, major, minor int) error {
	return unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(uint32(major), uint32(minor))))
}
