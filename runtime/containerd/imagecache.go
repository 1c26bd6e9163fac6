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
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"haggle/runtime"
)

// image is an image that a job can be made of.
type image struct {
	name string // that containerd knows it by, or knew
	imageFacts
}

// imageFacts follow from an image's digest alone.
type imageFacts struct {
	chain  string    // the snapshot of its uppermost layer
	made   time.Time // when that was made: another one of its name has other folders
	layers layers
	config v1.ImageConfig
	source v1.Descriptor // of config
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

// openImage makes a listed image ready for jobs, or what is left of one in the job whose disk is to be taken over.
// errStale: it is not what the listing says any more.
func (e *Engine) openImage(ctx context.Context, spec runtime.Spec, found listing) (image, error) {
	switch {
	case found.err != nil:
		return image{}, found.err
	case len(found.images) == 0 && spec.From != "":
		return e.leftOf(ctx, spec)
	case len(found.images) == 0:
		return image{}, fmt.Errorf("image %s: %w", spec.Image, runtime.ErrImageNotFound)
	}
	img := ctr.NewImage(e.client, found.images[0])
	if f, ok := e.images.get(spec.Image); ok {
		return image{img.Name(), f}, nil
	}
	f, err := e.unpackedFacts(ctx, img)
	if errdefs.IsNotFound(err) {
		return image{}, fmt.Errorf("image %s: %w: %w", spec.Image, errStale, err)
	}
	if err != nil {
		return image{}, classify(err, "open image %s", spec.Image)
	}
	e.images.put(spec.Image, f)
	return image{img.Name(), f}, nil
}

func (e *Engine) unpackedFacts(ctx context.Context, img ctr.Image) (imageFacts, error) {
	ok, err := img.IsUnpacked(ctx, e.cfg.Snapshotter)
	if err == nil && !ok {
		err = img.Unpack(ctx, e.cfg.Snapshotter)
	}
	if err != nil {
		return imageFacts{}, err
	}
	d, err := img.Config(ctx)
	if err != nil {
		return imageFacts{}, err
	}
	return e.readFacts(ctx, d)
}

// leftOf finds what an image that was removed has left in the job whose disk is to be taken over.
func (e *Engine) leftOf(ctx context.Context, spec runtime.Spec) (image, error) {
	name, err := e.container(ctx, spec.From)
	if err != nil {
		return image{}, err
	}
	c, err := e.client.ContainerService().Get(ctx, name)
	if err != nil && !errdefs.IsNotFound(err) {
		return image{}, classify(err, "look for job %s", spec.From)
	}
	d := v1.Descriptor{MediaType: v1.MediaTypeImageConfig, Digest: digest.Digest(c.Labels[labelConfig])}
	if c.Labels[labelImage] != spec.Image || d.Digest.Validate() != nil {
		return image{}, fmt.Errorf("image %s: %w", spec.Image, runtime.ErrImageNotFound)
	}
	info, err := e.client.ContentStore().Info(ctx, d.Digest)
	if err != nil {
		return image{}, classify(err, "look for the image of job %s", spec.From)
	}
	d.Size = info.Size
	f, err := e.readFacts(ctx, d)
	return image{c.Image, f}, classify(err, "read the image of job %s", spec.From)
}

func (e *Engine) readFacts(ctx context.Context, config v1.Descriptor) (imageFacts, error) {
	var doc v1.Image
	if err := readDocument(ctx, e.client.ContentStore(), config, &doc); err != nil {
		return imageFacts{}, err
	}
	f := imageFacts{chain: identity.ChainID(doc.RootFS.DiffIDs).String(), config: doc.Config, source: config}
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
