package rigcore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"haggle/internal/config"
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
			if err == nil {
				break
			}
			r.log.Error("image is not offered", "image", image.Name, "err", err)
			if !errors.Is(err, runtime.ErrUnavailable) {
				break
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

func (r *Rig) importImage(ctx context.Context, image config.Image) error {
	if err := r.engine.Ready(ctx); err != nil {
		return err
	}
	f, err := os.Open(image.Archive)
	if err != nil {
		return fmt.Errorf("import image %s: %w", image.Name, err)
	}
	defer f.Close()
	begun := time.Now()
	made, err := r.engine.Import(ctx, image.Name, io.LimitReader(f, maxArchive))
	if err != nil {
		return fmt.Errorf("import image %s: %w", image.Name, err)
	}
	r.log.Info("image imported", "image", image.Name, "digest", made.Digest, "took", time.Since(begun).Round(time.Millisecond))
	return nil
}
