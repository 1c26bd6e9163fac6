package archive

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// ErrNotArchive means that the bytes are no OCI image archive with exactly one image.
var ErrNotArchive = errors.New("not an OCI image archive")

// Bounds on what Inspect keeps, and Extract reads.
const (
	maxDocument  = 1 << 20
	maxDocuments = 64
	maxEntries   = 10_000
)

// Info is what an archive says about its image.
type Info struct {
	Name   string // empty when the archive gives none
	Digest string // of the manifest
	Size   int64  // of the manifest, the config and the layers, as packed
	Config v1.ImageConfig
}

// Inspect reads an archive to its end and returns what it describes. Memory is bounded whatever the archive
// holds; the caller bounds its length. Layers are skipped and not checked.
func Inspect(r io.Reader) (Info, error) {
	info, _, err := inspect(r)
	return info, err
}

func inspect(r io.Reader) (Info, v1.Manifest, error) {
	var manifest v1.Manifest
	docs, err := readDocuments(tar.NewReader(r))
	if err != nil {
		return Info{}, manifest, err
	}
	// What follows the end of the tar belongs to the stream all the same.
	if _, err := io.Copy(io.Discard, r); err != nil {
		return Info{}, manifest, fmt.Errorf("read archive: %w", err)
	}
	var index v1.Index
	if err := decode(docs, v1.ImageIndexFile, &index); err != nil {
		return Info{}, manifest, err
	}
	if len(index.Manifests) != 1 {
		return Info{}, manifest, fmt.Errorf("%w: it holds %d images", ErrNotArchive, len(index.Manifests))
	}
	entry := index.Manifests[0]
	if err := decodeBlob(docs, entry, &manifest); err != nil {
		return Info{}, manifest, err
	}
	var config v1.Image
	if err := decodeBlob(docs, manifest.Config, &config); err != nil {
		return Info{}, manifest, err
	}
	info := Info{
		Name:   entry.Annotations[NameAnnotation],
		Digest: entry.Digest.String(),
		Size:   entry.Size + manifest.Config.Size,
		Config: config.Config,
	}
	for _, l := range manifest.Layers {
		if l.Size < 0 || info.Size+l.Size < info.Size {
			return Info{}, manifest, fmt.Errorf("%w: layer of %d bytes", ErrNotArchive, l.Size)
		}
		info.Size += l.Size
	}
	return info, manifest, nil
}

// readDocuments keeps the entries that are small enough to be documents.
func readDocuments(in *tar.Reader) (map[string][]byte, error) {
	docs := map[string][]byte{}
	for range maxEntries {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotArchive, err)
		}
		if h.Typeflag != tar.TypeReg || h.Size > maxDocument {
			continue
		}
		if len(docs) == maxDocuments {
			return nil, fmt.Errorf("%w: more than %d documents", ErrNotArchive, maxDocuments)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotArchive, err)
		}
		docs[path.Clean(h.Name)] = b
	}
	return nil, fmt.Errorf("%w: more than %d entries", ErrNotArchive, maxEntries)
}

func decode(docs map[string][]byte, name string, into any) error {
	b, ok := docs[name]
	if !ok {
		return fmt.Errorf("%w: %.100q is missing", ErrNotArchive, name)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%w: %.100q: %w", ErrNotArchive, name, err)
	}
	return nil
}

func decodeBlob(docs map[string][]byte, d v1.Descriptor, into any) error {
	// Validate comes first: Algorithm panics on what is no digest.
	if d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256 {
		return fmt.Errorf("%w: digest %.100q", ErrNotArchive, d.Digest)
	}
	name := blobPath(d.Digest)
	if b := docs[name]; digest.FromBytes(b) != d.Digest || int64(len(b)) != d.Size {
		return fmt.Errorf("%w: %s does not hold what its name says", ErrNotArchive, name)
	}
	return decode(docs, name, into)
}
