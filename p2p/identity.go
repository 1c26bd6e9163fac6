package p2p

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
)

const (
	pemType    = "PRIVATE KEY"
	maxKeyFile = 4 << 10
)

// LoadOrCreateKey returns the identity that a file holds, and makes both when there is no such file. The file is the usual
// PEM form of a PKCS #8 ed25519 key, which openssl reads too. Its mode must give nothing to group and others (not checked
// on Windows). A new file is written whole or not at all; of two programs that create it at once both get the same key.
func LoadOrCreateKey(path string) (ed25519.PrivateKey, error) {
	key, err := loadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := createKey(path); err != nil {
		return nil, fmt.Errorf("create key %s: %w", path, err)
	}
	return loadKey(path)
}

func loadKey(path string) (ed25519.PrivateKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, badKey(path, "is not a regular file", nil)
	case goruntime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, &Fault{
			Problem: fmt.Sprintf("key %s can be used by others (mode %04o)", path, info.Mode().Perm()),
			Hint:    "run `chmod 600 " + path + "`, and make a new key if others were on this machine",
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", path, err)
	}
	return parseKey(path, data)
}

func parseKey(path string, data []byte) (ed25519.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != pemType {
		return nil, badKey(path, "is not a PEM private key", nil)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, badKey(path, "cannot be read: "+err.Error(), err)
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, badKey(path, "is not an ed25519 key", nil)
	}
	return key, nil
}

func badKey(path, problem string, err error) error {
	return &Fault{
		Problem: "key " + path + " " + problem,
		Hint:    "put back your copy; with a new key you are somebody new, so move the file away only if there is no copy", Err: err,
	}
}

func createKey(path string) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := writeTemp(dir, pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}))
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	// A link fails where the name exists, so that the first of two programs wins; some file systems have no links.
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		if err := os.Rename(temp, path); err != nil {
			return err
		}
	}
	return syncDir(dir)
}

func writeTemp(dir string, data []byte) (string, error) {
	f, err := os.CreateTemp(dir, ".key-*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func syncDir(dir string) error {
	if goruntime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
