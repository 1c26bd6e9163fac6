package rigcore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"haggle/internal/config"
	"haggle/market"
	"haggle/runtime"
)

// maxArchive bounds an image's archive, in bytes.
const maxArchive = 64 << 30

// importImages brings the images of the configuration into the engine, so that the offer can name them. An image that
// cannot be had is one line in the log, not the end of the rig; an engine that is away is waited for.
func (r *Rig) importImages(ctx context.Context) error {
	for _, image := range r.cfg.Rig.Images {
		for {
			err := r.importImage(ctx, image)
			if ctx.Err() != nil {
				return nil
			}
			r.warn(image.Name, err)
			if !errors.Is(err, runtime.ErrUnavailable) {
				break // it is there, or it will never be
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return nil
			}
		}
	}
	r.host.Refresh()
	<-ctx.Done()
	return nil
}

// warn keeps the present reason why an image is not offered, for the owner, and logs it when it is news.
func (r *Rig) warn(image string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.unoffered, image)
		return
	}
	reason := market.Printable(err.Error())
	if r.unoffered[image] != reason {
		r.log.Error("image is not offered", "image", image, "err", err)
	}
	r.unoffered[image] = reason
}

// imageWarnings returns a sentence for each image that is not offered.
func (r *Rig) imageWarnings() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, name := range slices.Sorted(maps.Keys(r.unoffered)) {
		list = append(list, "image "+name+" is not offered: "+r.unoffered[name]+": correct `images` in the configuration, then start haggled again")
	}
	return list
}

func (r *Rig) importImage(ctx context.Context, image config.Image) error {
	if err := r.engine.Ready(ctx); err != nil {
		return err
	}
	f, err := os.Open(image.Archive)
	if err != nil {
		return fmt.Errorf("open its archive: %w", err)
	}
	defer f.Close()
	begun := time.Now()
	made, err := r.engine.Import(ctx, image.Name, io.LimitReader(f, maxArchive))
	if err != nil {
		return fmt.Errorf("%s: %w", image.Archive, err)
	}
	r.log.Info("image imported", "image", image.Name, "digest", made.Digest, "took", time.Since(begun).Round(time.Millisecond))
	return nil
}
