package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"haggle/runtime"
)

// SecretsEnv is the environment variable in which a job that has secrets finds the folder that runtime.SecretsDir is elsewhere.
const SecretsEnv = "HAGGLE_SECRETS"

const (
	// memoryFolder keeps files in memory, where the system has such a place.
	memoryFolder = "/dev/shm"
	// secretsLink is the name of a job's secrets in its folder.
	secretsLink = "secrets"
)

// keepSecrets puts secrets into memory, and a link to them into a job's folder. Where only disks keep files it is
// ErrUnsupported.
func (f folder) keepSecrets(secrets map[string][]byte) error {
	if len(secrets) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp(memoryFolder, "haggle-secrets-")
	if err != nil {
		return fmt.Errorf("keep its secrets in memory: %w: %w", runtime.ErrUnsupported, err)
	}
	if err := os.Symlink(dir, f.file(secretsLink)); err != nil {
		return errors.Join(err, os.Remove(dir))
	}
	for name, value := range secrets {
		if err := os.WriteFile(filepath.Join(dir, name), value, 0o600); err != nil {
			return fmt.Errorf("keep its secrets: %w", err)
		}
	}
	return nil
}

// destroy removes all that there is of a job's folder, and its secrets first.
func (f folder) destroy() error {
	dir, err := os.Readlink(f.file(secretsLink))
	if err == nil && filepath.Dir(dir) == memoryFolder {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return removeAll(string(f))
}
