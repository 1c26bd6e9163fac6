package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"haggle/market"
	"haggle/runtime"
	"haggle/runtime/archive"
)

// Images that renters bring are in the engine under names that begin so and end with their digest. Offers do not list them, and
// nobody but the key that brought one can start a job from it. tidy says how long they stay.
const (
	broughtPrefix = "brought-"
	maxBrought    = 48 // that leases need
	// broughtCopies is how often a brought image lies on the disk at most: in the spool, in the engine, and unpacked. The last two
	// stay.
	broughtCopies = 3
	keptCopies    = broughtCopies - 1
)

// proof says that a renter has shown the bytes of an image.
type proof struct {
	digest string
	renter market.Key
}

// bring reports whether a job may bring its image.
func (d *Daemon) bring(job market.Job) (market.ImageName, error) {
	name := broughtPrefix + strings.TrimPrefix(job.Image, "sha256:")[:12] // for people
	if err := d.cfg.Images.check(runtime.Image{Name: name, Digest: job.Image, Size: job.Archive}); err != nil {
		return market.ImageName{}, err
	}
	needed := d.needed()
	if needed[job.Image] = true; len(needed) > maxBrought {
		return market.ImageName{}, market.NewError(market.CodeNoRoom)
	}
	idle := d.engine.broughtBytes(needed)
	if err := d.spool.room(max(0, broughtCopies*job.Archive-keptCopies*idle)); err != nil {
		return market.ImageName{}, err
	}
	return market.ImageName{Name: name, Digest: job.Image, Size: job.Archive}, nil
}

// imageToCome is how many bytes a job's image will take that are not taken yet.
func (d *Daemon) imageToCome(job market.Job, renter market.Key) int64 {
	if d.engine.has(job.Image, renter) {
		return 0
	}
	return broughtCopies * job.Archive
}

// needed returns the digests of the images that a lease may still start a job from. What a lease has kept after its end needs none:
// the engine keeps the layers of every job that is there.
func (d *Daemon) needed() map[string]bool {
	digests := map[string]bool{}
	for _, l := range d.all() {
		if l.wants.Archive > 0 && l.snapshot().Job != market.JobEnded {
			digests[l.wants.Image] = true
		}
	}
	return digests
}

// has reports whether an image is there for a renter: offered to all, or brought by itself.
func (e *engine) has(digest string, renter market.Key) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.ContainsFunc(e.images, func(i market.ImageName) bool { return i.Digest == digest }) {
		return true
	}
	_, shown := e.shown[proof{digest, renter}]
	_, there := e.brought[digest]
	return shown && there
}

// broughtBytes is how large the images are that renters brought, beside some.
func (e *engine) broughtBytes(beside map[string]bool) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	sum := int64(0)
	for digest, size := range e.brought {
		if !beside[digest] {
			sum += size
		}
	}
	return sum
}

// note remembers who has shown an image. What is forgotten is brought again.
func (e *engine) note(digest string, renter market.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.shown) >= maxLeases {
		clear(e.shown)
	}
	e.shown[proof{digest, renter}] = struct{}{}
}

// importImage gives the engine the archive that a lease's renter has brought. It is read twice: what is not the image of the job
// never reaches the engine.
func (d *Daemon) importImage(ctx context.Context, r Record) error {
	if d.engine.has(r.Job.Image, r.Lease.Terms.Renter) {
		return nil
	}
	f, err := os.Open(d.spool.path(r.Lease.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was used up when the job was made the first time: the engine knows
	}
	if err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	about, err := archive.Inspect(f)
	switch {
	case errors.Is(err, archive.ErrNotArchive):
		return fmt.Errorf("%w: %w", errMismatch, err)
	case err != nil:
		return fmt.Errorf("read archive: %w", err)
	case about.Digest != r.Job.Image:
		return errMismatch
	}
	if _, err := f.Seek(0, 0); err != nil {
		return fmt.Errorf("read archive: %w", err)
	}
	if err := d.makePlace(ctx, r.Job.Image, keptCopies*r.Job.Archive); err != nil {
		return err
	}
	image, err := d.cfg.Runtime.Import(ctx, broughtPrefix+strings.TrimPrefix(about.Digest, "sha256:"), f)
	switch {
	case err != nil:
		return fmt.Errorf("import archive: %w", err)
	case image.Digest != r.Job.Image:
		return errMismatch
	}
	d.engine.brings(image)
	d.engine.note(image.Digest, r.Lease.Terms.Renter)
	d.changed() // an offer promises less disk now
	return nil
}

// brings notes that the engine has an image that a renter brought.
func (e *engine) brings(i runtime.Image) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.brought[i.Digest] = max(0, i.Size)
}

// errMismatch means that an archive holds another image than its job names, or none.
var errMismatch = errors.New("the archive does not hold the image of the job")
