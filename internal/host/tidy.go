package host

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"haggle/market"
	"haggle/runtime"
)

// What stays of the images that renters brought and that no lease needs: a renter who comes back need not bring its image again.
const (
	idleImages = 8 // those included that leases need
	idleFor    = 24 * time.Hour
	idleRoom   = 4 // one in so many parts of the rig's disk must be left for new leases
)

func isBrought(i runtime.Image) bool { return strings.HasPrefix(i.Name, broughtPrefix) }

// ownImages returns the digests of the images that the rig's owner put into the engine. They are nobody else's, whoever brings them.
func ownImages(list []runtime.Image) map[string]bool {
	own := map[string]bool{}
	for _, i := range list {
		if !isBrought(i) {
			own[i.Digest] = true
		}
	}
	return own
}

// keepTidy lets images go whenever something has changed, and now and then.
func (d *Daemon) keepTidy(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.untidy:
		}
		if err := d.tidy(ctx, 0, 0); err != nil && ctx.Err() == nil {
			d.log.Warn("images of renters", slog.Any("err", err))
		}
	}
}

// tidy lets go of brought images that no lease needs: at once of those that nobody can use, after a while of any, and earlier of
// the oldest where there are too many or the disk is short. coming says how many more are about to come, bytes how much more is
// about to be written beside them.
func (d *Daemon) tidy(ctx context.Context, coming int, bytes int64) error {
	for {
		digest, over := d.leastNeeded(coming, bytes)
		if digest == "" {
			return nil
		}
		err := d.removeImage(ctx, digest)
		over()
		if err != nil {
			return err
		}
	}
}

// leastNeeded takes the image that must go first off the list, if one must. From then on nobody finds it; over says that the
// removal has come to its end.
func (d *Daemon) leastNeeded(coming int, bytes int64) (digest string, over func()) {
	short := d.short(bytes)
	now := d.cfg.Clock().Mono
	e := &d.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	needed := d.needed() // asked here: a lease that begins from now on finds the image gone
	first := int64(math.MaxInt64)
	for image := range e.brought {
		if needed[image] || e.leaving[image] != nil {
			delete(e.idle, image)
			continue
		}
		since, known := e.idle[image]
		if !known {
			since = now
			e.idle[image] = now
		}
		if !e.usable(image) {
			since = math.MinInt64
		}
		if since < first || since == first && image < digest {
			first, digest = since, image
		}
	}
	if digest == "" || !short && len(e.brought)+coming <= idleImages && first > now-idleFor.Milliseconds() {
		return "", nil
	}
	e.forget(digest)
	ended := make(chan struct{})
	e.leaving[digest] = ended
	return digest, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.leaving, digest)
		close(ended)
	}
}

// short reports whether the disk would be short after so many bytes more.
func (d *Daemon) short(bytes int64) bool {
	all := d.cfg.Machine.DiskFree
	return all > 0 && d.diskFree() < all/idleRoom || market.CodeOf(d.spool.room(bytes)) == market.CodeNoRoom
}

// usable reports whether anybody could start a job from a brought image. The lock is held.
func (e *engine) usable(digest string) bool {
	for p := range e.shown {
		if p.digest == digest {
			return true
		}
	}
	return false
}

// forget drops all that is known of a brought image. The lock is held.
func (e *engine) forget(digest string) {
	delete(e.brought, digest)
	delete(e.idle, digest)
	for p := range e.shown {
		if p.digest == digest {
			delete(e.shown, p)
		}
	}
}

// removeImage removes an image from the engine, unless it has become one of the owner's.
func (d *Daemon) removeImage(ctx context.Context, digest string) error {
	list, err := d.cfg.Runtime.Images(ctx)
	if err != nil {
		return fmt.Errorf("list images: %w", err)
	}
	if ownImages(list)[digest] {
		return nil
	}
	if err := d.cfg.Runtime.RemoveImage(ctx, digest); err != nil {
		return fmt.Errorf("remove image: %w", err)
	}
	d.log.Info("image of a renter removed", slog.String("digest", digest))
	d.changed() // there is more room
	return nil
}

// makeRoom reports whether the disk has room for so many bytes more. Images that no lease needs go for it.
func (d *Daemon) makeRoom(ctx context.Context, bytes int64) error {
	if err := d.spool.room(bytes); market.CodeOf(err) != market.CodeNoRoom {
		return err
	}
	if err := d.tidy(ctx, 0, bytes); err != nil && ctx.Err() == nil {
		d.log.Warn("images of renters", slog.Any("err", err))
	}
	return d.spool.room(bytes)
}

// makePlace makes ready for the import of an image that will take so many bytes: the same one may be on its way out, and others may
// have to go.
func (d *Daemon) makePlace(ctx context.Context, digest string, bytes int64) error {
	d.engine.mu.Lock()
	ended := d.engine.leaving[digest]
	d.engine.mu.Unlock()
	if ended != nil {
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return d.tidy(ctx, 1, bytes)
}
