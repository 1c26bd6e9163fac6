//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/errdefs"

	"haggle/runtime"
)

// RemoveImage implements runtime.Runtime. What its jobs need is kept by their containers: the layers, and the config for those
// who take a disk over.
func (e *Engine) RemoveImage(ctx context.Context, digest string) error {
	if !runtime.ValidDigest(digest) {
		return nil
	}
	ctx = e.within(ctx)
	found := <-e.lookForImage(ctx, digest)
	if found.err != nil {
		return found.err
	}
	for _, img := range found.images {
		if err := e.client.ImageService().Delete(ctx, img.Name); err != nil && !errdefs.IsNotFound(err) {
			return classify(err, "remove image %s", img.Name)
		}
	}
	e.images.forget(digest)
	err := e.throwAway(ctx, e.spares.ofImage(digest))
	if err := errors.Join(err, e.collect(ctx)); err != nil {
		return fmt.Errorf("remove image %s: %w", digest, err)
	}
	return nil
}

// collect has containerd remove what nothing keeps, and returns when that is gone.
func (e *Engine) collect(ctx context.Context) error {
	service := e.client.LeasesService()
	lease, err := service.Create(ctx, leases.WithRandomID(), leases.WithExpiration(pinFor))
	if err == nil {
		err = service.Delete(ctx, lease, leases.SynchronousDelete)
	}
	return classify(err, "free the room of what is not needed")
}

// freeImage gives up the room of an image that was removed while a job needed it, which is gone now.
func (e *Engine) freeImage(ctx context.Context, digest string) {
	found := <-e.lookForImage(ctx, digest)
	err := found.err
	if err == nil && len(found.images) == 0 {
		err = e.collect(ctx)
	}
	if err != nil && ctx.Err() == nil {
		e.cfg.Log.Warn("the room of an image is not free yet", "image", digest, "err", err)
	}
}
