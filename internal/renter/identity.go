package renter

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age"

	"haggle/market"
)

// identity returns the key that checkpoints are encrypted to, and makes it where there is none yet.
func (a *Agent) identity() (*age.X25519Identity, error) {
	if a.cfg.IdentityFile == "" || a.cfg.CheckpointDir == "" {
		return nil, market.NewError(market.CodeUnsupported, "what", "a checkpoint without a place for it", "instead", "configure the agent's state folder")
	}
	a.keys.Lock()
	defer a.keys.Unlock()
	text, err := os.ReadFile(a.cfg.IdentityFile)
	if errors.Is(err, fs.ErrNotExist) {
		return newIdentity(a.cfg.IdentityFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key of checkpoints: %w", err)
	}
	list, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the key of checkpoints: %w", err)
	}
	key, ok := list[0].(*age.X25519Identity)
	if !ok {
		return nil, fmt.Errorf("read the key of checkpoints: %s holds a key of another kind", a.cfg.IdentityFile)
	}
	return key, nil
}

// newIdentity makes a key, whole on disk before it is used: what is encrypted to a key that is lost is lost.
func newIdentity(path string) (*age.X25519Identity, error) {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("make the key of checkpoints: %w", err)
	}
	text := "# haggle: opens this agent's checkpoints\n" + key.String() + "\n"
	if err := writeWhole(path, func(f *os.File) error { _, err := f.WriteString(text); return err }); err != nil {
		return nil, fmt.Errorf("make the key of checkpoints: %w", err)
	}
	return key, nil
}

// writeWhole makes a file with mode 0600 that has its name only once it is whole and on disk.
func writeWhole(path string, write func(*os.File) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
