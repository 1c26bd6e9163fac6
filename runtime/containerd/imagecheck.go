//go:build linux

package containerd

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	goruntime "runtime"
	"sync"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/pkg/archive/compression"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"haggle/runtime"
)

const (
	// maxEntries is how many files the archive of an image may have: four for each layer in Docker's format, and some.
	maxEntries = 1024
	// blockBytes is what a file system counts by: a file of one byte takes a block, and so does a folder.
	blockBytes = 4096

	defaultImageBytes = 64 << 30
	defaultImageFiles = 2_000_000

	// sparePart and spareBytes are what an image must leave free on the machine's disk, whichever is more.
	sparePart  = 20
	spareBytes = 2 << 30
)

// checkedArchive passes an archive on while it counts the entries, and ends with an error at one entry too many. The function
// returns when nobody reads from r any more.
func checkedArchive(r io.Reader) (io.Reader, func()) {
	pr, pw := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// When the reader of the pipe stops early, a write fails and all ends.
		_ = pw.CloseWithError(countEntries(io.TeeReader(r, pw)))
	}()
	return pr, func() {
		_ = pr.Close()
		<-done
	}
}

func countEntries(r io.Reader) error {
	entries := tar.NewReader(r)
	for range maxEntries {
		_, err := entries.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, r) // what follows the end belongs to nobody
			return err
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: it holds more than %d files", runtime.ErrBadArchive, maxEntries)
}

// checkImage holds an image that was read to what it says of itself, and to the bounds of the engine. Nothing of it is
// unpacked yet.
func (e *Engine) checkImage(ctx context.Context, target v1.Descriptor) error {
	store := e.client.ContentStore()
	var manifest v1.Manifest
	if err := readDocument(ctx, store, target, &manifest); err != nil {
		return err
	}
	if n := len(manifest.Layers); n == 0 || n > maxLayers {
		return fmt.Errorf("%w: %d layers are not in 1..%d", runtime.ErrBadArchive, n, maxLayers)
	}
	var config v1.Image
	if err := readDocument(ctx, store, manifest.Config, &config); err != nil {
		return err
	}
	if len(config.RootFS.DiffIDs) != len(manifest.Layers) {
		return fmt.Errorf("%w: %d layers, but the config names %d", runtime.ErrBadArchive, len(manifest.Layers), len(config.RootFS.DiffIDs))
	}
	for _, id := range config.RootFS.DiffIDs {
		if err := id.Validate(); err != nil {
			return fmt.Errorf("%w: the config names a layer %.80q", runtime.ErrBadArchive, id)
		}
	}
	for i, l := range manifest.Layers {
		if !images.IsLayerType(l.MediaType) || len(l.URLs) > 0 {
			return fmt.Errorf("%w: layer %d is of type %.80q", runtime.ErrBadArchive, i, l.MediaType)
		}
		if err := checkBlob(ctx, store, l); err != nil {
			return err
		}
	}
	if !e.cfg.has(ImageBounds) {
		return nil
	}
	return e.measure(ctx, store, manifest.Layers, config.RootFS.DiffIDs)
}

// checkBlob checks that there is what a descriptor names, and that it has the size that it states. What is missing from
// an archive is missing from the disk if its image was checked before and removed since: the error says both.
func checkBlob(ctx context.Context, store content.Store, d v1.Descriptor) error {
	if err := d.Digest.Validate(); err != nil {
		return fmt.Errorf("%w: digest %.80q", runtime.ErrBadArchive, d.Digest)
	}
	info, err := store.Info(ctx, d.Digest)
	if errdefs.IsNotFound(err) {
		return fmt.Errorf("%w: %s is missing: %w", runtime.ErrBadArchive, d.Digest, err)
	}
	if err != nil {
		return err
	}
	if info.Size != d.Size {
		return fmt.Errorf("%w: %s has %d bytes, and not %d as stated", runtime.ErrBadArchive, d.Digest, info.Size, d.Size)
	}
	return nil
}

// measure reads all layers as they will be unpacked, and stops where they exceed a bound.
func (e *Engine) measure(ctx context.Context, store content.Store, list []v1.Descriptor, diffs []digest.Digest) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := gauge{bytes: e.cfg.MaxImageBytes, files: e.cfg.MaxImageFiles, room: e.imageRoom()}
	turns := make(chan struct{}, max(1, goruntime.NumCPU()/2))
	var all sync.WaitGroup
	for i, l := range list {
		all.Go(func() {
			select {
			case turns <- struct{}{}:
				defer func() { <-turns }()
			case <-ctx.Done():
				return
			}
			if err := g.layer(ctx, store, l, diffs[i]); err != nil {
				cancel(fmt.Errorf("layer %d: %w", i, err))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// imageRoom is what images may still take of the machine's disk.
func (e *Engine) imageRoom() int64 {
	var st unix.Statfs_t
	if e.daemon == nil || unix.Statfs(e.cfg.Root, &st) != nil {
		return math.MaxInt64 // somebody else's containerd keeps them we do not know where
	}
	return int64(st.Bavail)*st.Bsize - max(int64(st.Blocks)*st.Bsize/sparePart, spareBytes)
}

// gauge is what an image may still take.
type gauge struct {
	mu                 sync.Mutex
	bytes, files, room int64
}

// take counts one file, or the metadata of one, of so many bytes.
func (g *gauge) take(size int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Nothing overflows: no size is negative, and the first that is too large ends it.
	size = min(size, math.MaxInt64-blockBytes)
	size = (size + blockBytes - 1) / blockBytes * blockBytes
	g.bytes, g.files, g.room = g.bytes-size, g.files-1, g.room-size
	switch {
	case g.bytes < 0:
		return fmt.Errorf("%w: unpacked, it has more bytes than an image may", runtime.ErrImageTooBig)
	case g.files < 0:
		return fmt.Errorf("%w: it has more files than an image may", runtime.ErrImageTooBig)
	case g.room < 0:
		return fmt.Errorf("%w for the unpacked image", runtime.ErrNoRoom)
	}
	return nil
}

// stream is how long a layer may be with all its headers.
func (g *gauge) stream() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	const header = 1 << 12
	return min(g.bytes, math.MaxInt64/2) + min(g.files, math.MaxInt64/2/header)*header
}

// layer reads one layer to its end.
func (g *gauge) layer(ctx context.Context, store content.Store, d v1.Descriptor, diff digest.Digest) error {
	blob, err := store.ReaderAt(ctx, d)
	if err != nil {
		return err
	}
	defer blob.Close()
	plain, err := compression.DecompressStream(content.NewReader(blob))
	if err != nil {
		return fmt.Errorf("%w: %w", runtime.ErrBadArchive, err)
	}
	defer plain.Close()
	sum := diff.Algorithm().Digester()
	read := &boundedReader{ctx: ctx, r: io.TeeReader(plain, sum.Hash()), left: g.stream()}
	if err := g.entries(read); err != nil {
		return err
	}
	if sum.Digest() != diff {
		return fmt.Errorf("%w: unpacked, it is not what the config names", runtime.ErrBadArchive)
	}
	return nil
}

// entries counts the files of a layer, by what they say of themselves: a file with holes is as large as it seems, because
// unpacking fills the holes.
func (g *gauge) entries(r io.Reader) error {
	files := tar.NewReader(r)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, r)
			return err
		}
		if err != nil {
			return badLayer(err)
		}
		if err := g.take(h.Size); err != nil {
			return err
		}
	}
}

// badLayer tells a layer that is no archive from one that was not read to its end.
func badLayer(err error) error {
	if errors.Is(err, runtime.ErrImageTooBig) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", runtime.ErrBadArchive, err)
}

// boundedReader ends a layer that has more bytes than an image may, whatever its files say, and one whose Import was given up.
type boundedReader struct {
	ctx  context.Context //nolint:containedctx // it lives for one call
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, fmt.Errorf("%w: unpacked, it has more bytes than an image may", runtime.ErrImageTooBig)
	}
	return n, err
}
