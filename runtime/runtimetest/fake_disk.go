package runtimetest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"

	"haggle/runtime"
)

// Disk is the disk of a Fake's job: files in memory. A relative path is one below runtime.WorkDir. It may be used by several
// goroutines.
type Disk struct {
	mu    sync.Mutex
	files map[string][]byte
}

func place(name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(runtime.WorkDir, name)
}

// read returns the content of a file.
func (d *Disk) read(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	data, known := d.files[place(name)]
	if !known {
		return nil, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
	}
	return bytes.Clone(data), nil
}

// write makes a file. Without a disk it is one of the machine.
func (d *Disk) write(name string, data []byte) error {
	if d == nil {
		return os.WriteFile(name, data, 0o644)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files == nil {
		d.files = map[string][]byte{}
	}
	d.files[place(name)] = bytes.Clone(data)
	return nil
}
