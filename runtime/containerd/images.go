//go:build linux

package containerd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	ctr "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"haggle/runtime"
)

const (
	// pinFor is how long containerd keeps what is being made when we die over it.
	pinFor = time.Hour
	// maxDocument bounds indexes, manifests and configs, which are read as a whole.
	maxDocument = 4 << 20
	// maxNesting is how deep an index may point to indexes.
	maxNesting = 3
)

// pin keeps the garbage collector off what the context's calls make until the returned function is called. With clean, that
// returns when the collector has removed what nothing else keeps.
func (e *Engine) pin(ctx context.Context) (context.Context, func(clean bool), error) {
	service := e.client.LeasesService()
	lease, err := service.Create(ctx, leases.WithRandomID(), leases.WithExpiration(pinFor))
	if err != nil {
		return nil, nil, classify(err, "pin what is being made")
	}
	return leases.WithLease(ctx, lease.ID), func(clean bool) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		var how []leases.DeleteOpt
		if clean {
			how = append(how, leases.SynchronousDelete)
		}
		if err := service.Delete(ctx, lease, how...); err != nil {
			e.cfg.Log.Debug("a containerd lease is left to expire", "err", err)
		}
	}, nil
}

// Images implements runtime.Runtime.
func (e *Engine) Images(ctx context.Context) ([]runtime.Image, error) {
	ctx = e.within(ctx)
	list, err := e.client.ImageService().List(ctx)
	if err != nil {
		return nil, classify(err, "list images")
	}
	all := make([]runtime.Image, 0, len(list))
	for _, img := range list {
		size, err := ctr.NewImage(e.client, img).Size(ctx)
		if err != nil {
			size = 0
		}
		all = append(all, runtime.Image{Name: img.Name, Digest: img.Target.Digest.String(), Size: size})
	}
	slices.SortFunc(all, func(a, b runtime.Image) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// Import implements runtime.Runtime.
func (e *Engine) Import(ctx context.Context, name string, r io.Reader) (runtime.Image, error) {
	ctx, release, err := e.pin(e.within(ctx))
	if err != nil {
		return runtime.Image{}, err
	}
	source := &sourceReader{r: r}
	img, err := e.importImage(ctx, name, source)
	release(err != nil)
	if err != nil {
		return runtime.Image{}, importError(ctx, name, source, err)
	}
	size, err := img.Size(ctx)
	if err != nil {
		return runtime.Image{}, classify(err, "size of image %s", name)
	}
	return runtime.Image{Name: name, Digest: img.Target().Digest.String(), Size: size}, nil
}

// importError says whose fault it was that an image was not imported: what is not known otherwise is the archive's.
func importError(ctx context.Context, name string, source *sourceReader, err error) error {
	switch {
	case source.err != nil: // the sender's
		return fmt.Errorf("import %s: read archive: %w", name, source.err)
	case ctx.Err() != nil:
		return fmt.Errorf("import %s: %w", name, ctx.Err())
	case errdefs.IsUnavailable(err), errdefs.IsResourceExhausted(err):
		return classify(err, "import %s", name)
	}
	for _, known := range []error{runtime.ErrBadArchive, runtime.ErrImageTooBig, runtime.ErrNoRoom, runtime.ErrUnsupported} {
		if errors.Is(err, known) {
			return fmt.Errorf("import %s: %w", name, err)
		}
	}
	return fmt.Errorf("import %s: %w: %w", name, runtime.ErrBadArchive, err)
}

func (e *Engine) importImage(ctx context.Context, name string, r io.Reader) (ctr.Image, error) {
	store := e.client.ContentStore()
	entries, done := checkedArchive(r)
	index, err := archive.ImportIndex(ctx, store, entries)
	if err == nil {
		_, err = io.Copy(io.Discard, entries)
	}
	done()
	if err != nil {
		return nil, err
	}
	// The archive's own choice of names is not followed: it could take over another image's.
	target, err := chooseManifest(ctx, store, index, 0)
	if err != nil {
		return nil, err
	}
	if err := e.checkImage(ctx, target); err != nil {
		return nil, err
	}
	handler := images.SetChildrenLabels(store, images.ChildrenHandler(store))
	if err := images.Walk(ctx, handler, target); err != nil {
		return nil, err
	}
	// Unpacked before it gets its name: an image that is listed can be started.
	img := ctr.NewImage(e.client, images.Image{Name: name, Target: target})
	if err := img.Unpack(ctx, e.cfg.Snapshotter); err != nil {
		return nil, err
	}
	record := images.Image{Name: name, Target: target}
	if _, err := e.client.ImageService().Update(ctx, record, "target"); errdefs.IsNotFound(err) {
		_, err = e.client.ImageService().Create(ctx, record)
		return img, err
	} else if err != nil {
		return nil, err
	}
	return img, nil
}

// chooseManifest goes down from an index to the one manifest that is for this machine.
func chooseManifest(ctx context.Context, store content.Store, d v1.Descriptor, depth int) (v1.Descriptor, error) {
	if images.IsManifestType(d.MediaType) {
		return d, nil
	}
	if !images.IsIndexType(d.MediaType) || depth == maxNesting {
		return v1.Descriptor{}, fmt.Errorf("no image at %s of type %.100q", d.Digest, d.MediaType)
	}
	var index v1.Index
	if err := readDocument(ctx, store, d, &index); err != nil {
		return v1.Descriptor{}, err
	}
	match := platforms.Default()
	var fit []v1.Descriptor
	for _, m := range index.Manifests {
		if m.Platform == nil || match.Match(*m.Platform) {
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 {
		return v1.Descriptor{}, fmt.Errorf("none of %d images is for %s", len(index.Manifests), platforms.DefaultString())
	}
	slices.SortStableFunc(fit, func(a, b v1.Descriptor) int {
		switch {
		case a.Platform == nil || b.Platform == nil:
			return 0
		case match.Less(*a.Platform, *b.Platform):
			return -1
		case match.Less(*b.Platform, *a.Platform):
			return 1
		}
		return 0
	})
	return chooseManifest(ctx, store, fit[0], depth+1)
}

func readDocument(ctx context.Context, store content.Store, d v1.Descriptor, into any) error {
	// Without checkBlob the size would be the archive's own word.
	if err := checkBlob(ctx, store, d); err != nil {
		return err
	}
	if d.Size > maxDocument {
		return fmt.Errorf("%w: %s has %d bytes, more than a document may", runtime.ErrBadArchive, d.Digest, d.Size)
	}
	d.Data = nil // what the archive itself says that the content is
	b, err := content.ReadBlob(ctx, store, d)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// sourceReader remembers a fault of the reader, to tell it from one of the content.
type sourceReader struct {
	r   io.Reader
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}
