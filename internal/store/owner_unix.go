//go:build !windows

package store

import (
	"errors"
	"os"
	"syscall"
)

// handOver gives files that root made to the owner of their folder, who runs the program. Others own what they make.
func handOver(folder string, files ...string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	who, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	var errs []error
	for _, f := range files {
		errs = append(errs, os.Lchown(f, int(who.Uid), int(who.Gid)))
	}
	return errors.Join(errs...)
}
