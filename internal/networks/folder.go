package networks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"haggle/market"
)

// Endings of the files of a network.
const (
	listEnding = ".members" // the sealed list
	lineEnding = ".join"    // the invitation

	publicEnding = ".public" // where the program stood before: addresses, a line each; there is one such file
)

// maxFile bounds a file of a network that is read. Bytes.
const maxFile = 64 << 10

// Folder is the folder with the files of a program's private networks.
type Folder string

// FolderBeside returns the folder beside a program's database.
func FolderBeside(database string) Folder {
	return Folder(filepath.Join(filepath.Dir(database), "networks"))
}

func (f Folder) path(network, ending string) string { return filepath.Join(string(f), network+ending) }

// read returns a file of a network, nil where there is none.
func (f Folder) read(network, ending string) ([]byte, error) {
	if err := market.CheckNetwork(network); err != nil {
		return nil, err
	}
	file, err := os.Open(f.path(network, ending))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is known of network %s: %w", network, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", file.Name(), maxFile)
	}
	return data, err
}

// write replaces a file of a network in one step.
func (f Folder) write(network, ending string, data []byte) error {
	if err := market.CheckNetwork(network); err != nil {
		return err
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return fmt.Errorf("keep network %s: %w", network, err)
	}
	file, err := os.CreateTemp(string(f), ".new-*")
	if err != nil {
		return fmt.Errorf("keep network %s: %w", network, err)
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), f.path(network, ending))
	}
	if err != nil {
		_ = os.Remove(file.Name()) // the first error is the one to tell
		return fmt.Errorf("keep network %s: %w", network, err)
	}
	return nil
}

// Save keeps a network's sealed list of members.
func (f Folder) Save(network string, list []byte) error { return f.write(network, listEnding, list) }

// Members returns the list of members that is kept, nil where there is none.
func (f Folder) Members(network string, creator market.Key) (*market.Members, error) {
	raw, err := f.read(network, listEnding)
	if err != nil || raw == nil {
		return nil, err
	}
	m, err := market.OpenMembers(network, creator, raw)
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// Invitation returns the line that led to a network, nil where none is kept.
func (f Folder) Invitation(network string) (*market.Invitation, error) {
	raw, err := f.read(network, lineEnding)
	if err != nil || raw == nil {
		return nil, err
	}
	i, err := market.ParseInvitation(string(raw))
	if err != nil {
		return nil, err
	}
	return &i, nil
}

// Networks returns the names of the networks of which something is kept, in order.
func (f Folder) Networks() ([]string, error) {
	entries, err := os.ReadDir(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list networks: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), lineEnding); ok && market.CheckNetwork(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// keepPublic keeps the public network in which a program stands, with the addresses that its configuration names.
func (f Folder) keepPublic(network string, bootstrap []string) error {
	if old, _, err := f.public(); err == nil && old != network {
		_ = os.Remove(f.path(old, publicEnding)) // where it stays, the newer name may lose: nothing worse
	}
	return f.write(network, publicEnding, []byte(strings.Join(bootstrap, "\n")))
}

// public returns what keepPublic kept, the main network without addresses where it kept nothing.
func (f Folder) public() (network string, bootstrap []string, err error) {
	names, err := filepath.Glob(f.path("*", publicEnding))
	if err != nil || len(names) == 0 {
		return market.NetworkMain, nil, err
	}
	network = strings.TrimSuffix(filepath.Base(names[0]), publicEnding)
	raw, err := f.read(network, publicEnding)
	return network, strings.Fields(string(raw)), err
}

// Drop forgets a network.
func (f Folder) Drop(network string) error {
	if err := market.CheckNetwork(network); err != nil {
		return err
	}
	for _, ending := range []string{listEnding, lineEnding} {
		if err := os.Remove(f.path(network, ending)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget network %s: %w", network, err)
		}
	}
	return nil
}

// Loader returns a function that returns a network's sealed list, or nil, and reads the file only when it has changed.
func (f Folder) Loader(network string) func() []byte {
	var mu sync.Mutex
	var at time.Time
	var size int64
	var kept []byte
	return func() []byte {
		mu.Lock()
		defer mu.Unlock()
		info, err := os.Stat(f.path(network, listEnding))
		if err != nil || info.ModTime().Equal(at) && info.Size() == size {
			return kept
		}
		raw, err := f.read(network, listEnding)
		if err != nil {
			return kept
		}
		at, size, kept = info.ModTime(), info.Size(), bytes.Clone(raw)
		return kept
	}
}
