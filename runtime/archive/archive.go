// Package archive makes and reads OCI image archives: one tar file that container engines import as an image.
// What it makes depends on its input alone, so that equal input gives equal digests on every machine.
package archive

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	goruntime "runtime"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// NameAnnotation is where an archive's index holds the image's name.
const NameAnnotation = "io.containerd.image.name"

// ErrInvalidImage means that the image as described cannot be written. The error names the fault.
var ErrInvalidImage = errors.New("invalid image")

// Image is what an archive is made of.
type Image struct {
	Name       string
	Files      []File // in any order; folders are made as needed
	Entrypoint []string
	Cmd        []string
	Env        []string // KEY=VALUE; without PATH the usual one is added
	Workdir    string   // absolute; empty means /
	Labels     map[string]string
	// Architecture in Go's words; empty means this program's own.
	Architecture string
}

// File is one regular file of an image.
type File struct {
	Path string // absolute or relative to the root, without .. and not below /dev, /proc or /sys
	Mode fs.FileMode
	Size int64
	// Open is called twice and must give the same Size bytes each time.
	Open func() (io.ReadCloser, error)
}

// Write writes the image's archive to w and returns its digest: that of the manifest, sha256:…
//
// Beside its files the image holds what every program expects: /tmp, mount points, and an /etc/passwd and
// /etc/group with root and nobody, unless the files bring their own. On an error w holds the front of an archive.
func Write(w io.Writer, img Image) (string, error) {
	plan, err := planLayer(img.Files)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	var size counter
	if err := plan.write(io.MultiWriter(sum, &size)); err != nil {
		return "", err
	}
	layer := v1.Descriptor{
		MediaType: v1.MediaTypeImageLayer,
		Digest:    digest.NewDigest(digest.SHA256, sum),
		Size:      int64(size),
	}
	config, manifest, index, err := describe(img, layer)
	if err != nil {
		return "", err
	}
	out := tar.NewWriter(w)
	id := digest.FromBytes(manifest)
	for _, f := range []struct {
		name string
		data []byte
	}{
		{v1.ImageLayoutFile, []byte(`{"imageLayoutVersion":"` + v1.ImageLayoutVersion + `"}`)},
		{v1.ImageIndexFile, index},
		{blobPath(id), manifest},
		{blobPath(digest.FromBytes(config)), config},
	} {
		if err := writeEntry(out, f.name, f.data); err != nil {
			return "", err
		}
	}
	if err := writeLayer(out, plan, layer); err != nil {
		return "", err
	}
	if err := out.Close(); err != nil {
		return "", fmt.Errorf("end archive: %w", err)
	}
	return id.String(), nil
}

// describe makes the three JSON documents of an image with one layer.
func describe(img Image, layer v1.Descriptor) (config, manifest, index []byte, err error) {
	arch := img.Architecture
	if arch == "" {
		arch = goruntime.GOARCH
	}
	platform := v1.Platform{OS: "linux", Architecture: arch}
	config, err = json.Marshal(v1.Image{
		Platform: platform,
		Config: v1.ImageConfig{
			Entrypoint: img.Entrypoint,
			Cmd:        img.Cmd,
			Env:        withPath(img.Env),
			WorkingDir: img.Workdir,
			Labels:     img.Labels,
		},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{layer.Digest}},
	})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("encode image config: %w", err)
	}
	manifest, err = json.Marshal(v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest,
		Config:    describeBytes(v1.MediaTypeImageConfig, config),
		Layers:    []v1.Descriptor{layer},
	})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("encode manifest: %w", err)
	}
	entry := describeBytes(v1.MediaTypeImageManifest, manifest)
	entry.Platform = &platform
	if img.Name != "" {
		entry.Annotations = map[string]string{NameAnnotation: img.Name}
	}
	index, err = json.Marshal(v1.Index{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageIndex,
		Manifests: []v1.Descriptor{entry},
	})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("encode index: %w", err)
	}
	return config, manifest, index, nil
}

func describeBytes(mediaType string, b []byte) v1.Descriptor {
	return v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
}

func blobPath(d digest.Digest) string { return "blobs/" + d.Algorithm().String() + "/" + d.Encoded() }

func writeEntry(out *tar.Writer, name string, data []byte) error {
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if _, err := out.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// writeLayer writes the layer a second time, now to where it belongs, and makes sure that it came out the same.
func writeLayer(out *tar.Writer, plan layerPlan, layer v1.Descriptor) error {
	name := blobPath(layer.Digest)
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: layer.Size}); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	sum := sha256.New()
	if err := plan.write(io.MultiWriter(sum, out)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != layer.Digest.Encoded() {
		return fmt.Errorf("%w: a file changed while it was read", ErrInvalidImage)
	}
	return nil
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
