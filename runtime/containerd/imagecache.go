//go:build linux

package containerd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	ctr "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/image-spec/identity"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"haggle/runtime"
)

// image is an image that a job can be made of.
type image struct {
	ctr.Image
	imageFacts
}

// imageFacts follow from an image's digest alone.
type imageFacts struct {
	chain  string    // the snapshot of its uppermost layer
	made   time.Time // when that was made: another one of its name has other folders
	layers layers
	config v1.ImageConfig
}

// maxCached bounds the cache: a config may be of any size up to maxDocument.
const maxCached = 8

// imageCache keeps the facts of a few images by digest. The zero value is ready.
type imageCache struct {
	mu    sync.Mutex
	facts map[string]imageFacts
}

func (c *imageCache) get(digest string) (imageFacts, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.facts[digest]
	return f, ok
}

func (c *imageCache) put(digest string, f imageFacts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.facts == nil || len(c.facts) >= maxCached {
		c.facts = map[string]imageFacts{}
	}
	c.facts[digest] = f
}

func (c *imageCache) forget(digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.facts, digest)
}

// listing is what containerd's list of images says of a digest.
type listing struct {
	images []images.Image
	err    error
}

// lookForImage asks for the images of a digest in the background. The answer need not be taken.
func (e *Engine) lookForImage(ctx context.Context, digest string) <-chan listing {
	found := make(chan listing, 1)
	go func() {
		list, err := e.client.ImageService().List(ctx, "target.digest=="+digest)
		found <- listing{list, classify(err, "find image %s", digest)}
	}()
	return found
}

// openImage makes a listed image ready for jobs.
func (e *Engine) openImage(ctx context.Context, digest string, found listing) (image, error) {
	if found.err != nil {
		return image{}, found.err
	}
	if len(found.images) == 0 {
		return image{}, fmt.Errorf("image %s: %w", digest, runtime.ErrImageNotFound)
	}
	img := ctr.NewImage(e.client, found.images[0])
	if f, ok := e.images.get(digest); ok {
		return image{img, f}, nil
	}
	ok, err := img.IsUnpacked(ctx, e.cfg.Snapshotter)
	if err == nil && !ok {
		err = img.Unpack(ctx, e.cfg.Snapshotter)
	}
	if err != nil {
		return image{}, classify(err, "unpack image %s", digest)
	}
	f, err := e.readFacts(ctx, img)
	if err != nil {
		return image{}, classify(err, "read image %s", digest)
	}
	e.images.put(digest, f)
	return image{img, f}, nil
}

func (e *Engine) readFacts(ctx context.Context, img ctr.Image) (imageFacts, error) {
	d, err := img.Config(ctx)
	if err != nil {
		return imageFacts{}, err
	}
	var doc v1.Image
	if err := readDocument(ctx, img.ContentStore(), d, &doc); err != nil {
		return imageFacts{}, err
	}
	f := imageFacts{chain: identity.ChainID(doc.RootFS.DiffIDs).String(), config: doc.Config}
	service := e.client.SnapshotService(e.cfg.Snapshotter)
	info, err := service.Stat(ctx, f.chain)
	if err != nil {
		return imageFacts{}, err
	}
	f.made = info.Created
	f.layers, err = showLayers(ctx, service, f.chain)
	return f, err
}

// viewPrefix starts the names of snapshots that only show where layers are. It makes them no ids of jobs. The garbage
// collector takes those that we leave behind.
const viewPrefix = "haggle view "

// showLayers learns from the snapshotter where the layers of a snapshot are.
func showLayers(ctx context.Context, service snapshots.Snapshotter, chain string) (layers, error) {
	key := viewPrefix + rand.Text()
	list, err := service.View(ctx, key, chain)
	if err != nil {
		return layers{}, err
	}
	if err := service.Remove(ctx, key); err != nil && !errdefs.IsNotFound(err) {
		return layers{}, err
	}
	if len(list) != 1 {
		return layers{}, fmt.Errorf("%w: the snapshotter shows layers by %d mounts", runtime.ErrUnsupported, len(list))
	}
	return findLayers(list[0].Type, list[0].Source, list[0].Options)
}

// checkLayers returns errStale unless the snapshot that an image's facts speak of is still there.
func (e *Engine) checkLayers(ctx context.Context, f imageFacts) error {
	info, err := e.client.SnapshotService(e.cfg.Snapshotter).Stat(ctx, f.chain)
	if errdefs.IsNotFound(err) || (err == nil && !info.Created.Equal(f.made)) {
		return errStale
	}
	return classify(err, "look for layers")
}

var errStale = errors.New("the image's layers were replaced")
