package archive

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// maxLayers bounds how often Extract reads an archive.
const maxLayers = 64

// Extract unpacks the regular files of an archive's image into dir, a folder that exists, and returns what Inspect does. It
// writes at most limit bytes and nothing outside dir. Links, devices and owners are left out, so that only an image which is
// made of files comes out whole; a layer that deletes files of an earlier one is refused. Every layer is checked against its
// digest. On an error, ErrNotArchive where the archive is at fault, dir holds a part of the files.
func Extract(r io.ReadSeeker, dir string, limit int64) (Info, error) {
	info, manifest, err := inspect(r)
	if err != nil {
		return Info{}, err
	}
	if len(manifest.Layers) > maxLayers {
		return Info{}, fmt.Errorf("%w: more than %d layers", ErrNotArchive, maxLayers)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Info{}, fmt.Errorf("unpack: %w", err)
	}
	defer root.Close()
	x := extraction{root: root, left: limit}
	for _, layer := range manifest.Layers {
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return Info{}, fmt.Errorf("unpack: %w", err)
		}
		if err := x.layer(tar.NewReader(r), layer); err != nil {
			return Info{}, err
		}
	}
	return info, nil
}

// extraction is a folder that is being filled.
type extraction struct {
	root    *os.Root
	left    int64 // bytes that may still be written
	entries int
}

// layer finds one layer in the archive and unpacks it.
func (x *extraction) layer(archive *tar.Reader, layer v1.Descriptor) error {
	if layer.Digest.Validate() != nil || layer.Digest.Algorithm() != digest.SHA256 {
		return fmt.Errorf("%w: digest %.100q", ErrNotArchive, layer.Digest)
	}
	name := blobPath(layer.Digest)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: %s is missing", ErrNotArchive, name)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotArchive, err)
		}
		if h.Typeflag == tar.TypeReg && path.Clean(h.Name) == name {
			break
		}
	}
	check := layer.Digest.Verifier()
	packed := io.TeeReader(archive, check)
	plain := packed
	switch {
	case strings.HasSuffix(layer.MediaType, "gzip"):
		z, err := gzip.NewReader(packed)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrNotArchive, name, err)
		}
		plain = z
	case !strings.HasSuffix(layer.MediaType, "tar"):
		return fmt.Errorf("%w: a layer of type %.100q", ErrNotArchive, layer.MediaType)
	}
	// What is skipped costs time too: a small file can unpack to more than any disk holds.
	if err := x.files(tar.NewReader(io.LimitReader(plain, x.left+maxEntries*2048))); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, packed); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNotArchive, name, err)
	}
	if !check.Verified() {
		return fmt.Errorf("%w: %s does not hold what its name says", ErrNotArchive, name)
	}
	return nil
}

// files unpacks the files of one layer.
func (x *extraction) files(layer *tar.Reader) error {
	for {
		h, err := layer.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotArchive, err)
		}
		if x.entries++; x.entries > maxEntries {
			return fmt.Errorf("%w: more than %d entries", ErrNotArchive, maxEntries)
		}
		if strings.HasPrefix(path.Base(h.Name), ".wh.") {
			return fmt.Errorf("%w: %.200q deletes a file", ErrNotArchive, h.Name)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := x.file(layer, h); err != nil {
			return err
		}
	}
}

// file writes one file. The folder's root keeps it inside, whatever the name.
func (x *extraction) file(layer *tar.Reader, h *tar.Header) error {
	name := filepath.FromSlash(strings.TrimPrefix(path.Clean("/"+h.Name), "/"))
	if !filepath.IsLocal(name) || name == "." {
		return fmt.Errorf("%w: no file can be called %.200q", ErrNotArchive, h.Name)
	}
	if x.left -= h.Size; x.left < 0 {
		return fmt.Errorf("%w: it unpacks to more than is allowed", ErrNotArchive)
	}
	if err := x.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	if _, err := x.root.Lstat(name); err == nil { // of an earlier layer
		if err := x.root.Remove(name); err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
	}
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, os.FileMode(h.Mode)&0o755|0o600)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	_, err = io.CopyN(f, layer, h.Size)
	err = errors.Join(err, f.Close())
	var disk *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &disk):
		return fmt.Errorf("unpack: %w", err)
	}
	return fmt.Errorf("%w: %.200q: %w", ErrNotArchive, h.Name, err)
}
