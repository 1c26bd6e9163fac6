package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"haggle/market"
	"haggle/runtime"
	"haggle/runtime/archive"
)

// Images that renters bring are kept in the engine under so many names, for as long as the names last: an image that no lease
// needs gives its name up to the next. Offers do not list them, and nobody but the key that brought one can start a job from it.
const (
	broughtPrefix = "brought-"
	maxBrought    = 64
	// broughtCopies is how often a brought image lies on the disk at most: in the spool, in the engine, and unpacked.
	broughtCopies = 3
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
	if err := d.spool.room(broughtCopies * job.Archive); err != nil {
		return market.ImageName{}, err
	}
	return market.ImageName{Name: name, Digest: job.Image, Size: job.Archive}, nil
}

// needed returns the digests of the images that a lease may still start a job from.
func (d *Daemon) needed() map[string]bool {
	digests := map[string]bool{}
	for _, l := range d.all() {
		if l.wants.Archive > 0 && l.snapshot().Job != market.JobEnded {
			digests[l.wants.Image] = true
		}
	}
	return digests
}

// place finds the name under which the engine is to keep a brought image: its own, a free one, or that of an image that is not
// needed. done must be called after the import. The error is runtime.ErrNoRoom where all are needed.
func (e *engine) place(digest string, needed map[string]bool) (name string, done func(imported bool), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	free, old := "", ""
	for i := range maxBrought {
		n := broughtPrefix + strconv.Itoa(i)
		kept, taken := e.brought[n]
		coming, busy := e.importing[n]
		switch {
		case busy && coming == digest, taken && kept == digest && !busy:
			name = n
		case !taken && !busy:
			free = n
		case !busy && old == "" && !needed[kept]:
			old = n
		}
	}
	if name = cmp.Or(name, free, old); name == "" {
		return "", nil, fmt.Errorf("%d images of renters are in use: %w", maxBrought, runtime.ErrNoRoom)
	}
	e.importing[name] = digest
	return name, func(imported bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.importing, name)
		if imported {
			e.brought[name] = digest
		}
	}, nil
}

// has reports whether an image is there for a renter: offered to all, or brought by itself.
func (e *engine) has(digest string, renter market.Key) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.ContainsFunc(e.images, func(i market.ImageName) bool { return i.Digest == digest }) {
		return true
	}
	_, shown := e.shown[proof{digest, renter}]
	for name, kept := range e.brought {
		if _, busy := e.importing[name]; shown && kept == digest && !busy {
			return true
		}
	}
	return false
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
	name, done, err := d.engine.place(r.Job.Image, d.needed())
	if err != nil {
		return err
	}
	image, err := d.cfg.Runtime.Import(ctx, name, f)
	done(err == nil && image.Digest == r.Job.Image)
	switch {
	case err != nil:
		return fmt.Errorf("import archive: %w", err)
	case image.Digest != r.Job.Image:
		return errMismatch
	}
	d.engine.note(image.Digest, r.Lease.Terms.Renter)
	return nil
}

// errMismatch means that an archive holds another image than its job names, or none.
var errMismatch = errors.New("the archive does not hold the image of the job")
