//go:build !windows

package store

import (
	"errors"
	"os"
)

// syncFolder waits until the names in a folder are on disk.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
