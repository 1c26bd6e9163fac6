package host

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"haggle/market"
	"haggle/nvml"
	"haggle/runtime"
)

// Times of the engine.
const (
	probeAnswer = 5 * time.Second
	retryFirst  = 200 * time.Millisecond
	retryMost   = 10 * time.Second
	maxImages   = 32 // that an offer lists

	maxProtections = 32 // names in each of an offer's lists
)

// engine watches the engine that runs the jobs.
type engine struct {
	rt  runtime.Runtime
	log *slog.Logger
	// allowed reports why an image may not run, nil where it may.
	allowed func(runtime.Image) error
	// epoch is 0 while the engine does not answer, and another number each time that it comes back.
	epoch atomic.Int64

	mu      sync.Mutex
	about   runtime.Capabilities
	images  []market.ImageName
	denied  map[string]error         // by digest: images that the owner does not allow
	brought map[string]int64         // by digest: bytes of the images that renters brought
	idle    map[string]int64         // by digest: since when no lease needs one of them, in monotonic ms
	leaving map[string]chan struct{} // by digest: those that are being removed; closed when that is over
	shown   map[proof]struct{}       // who brought them, as far as this program knows
	known   bool                     // it has answered at least once
	fault   error                    // why it does not answer
}

// run watches until ctx ends. up is called each time that the engine has come back, news when it has more to tell of itself, gone
// each time that a job has ended, full when a job's disk is full.
func (e *engine) run(ctx context.Context, up func(context.Context), news func(), gone, full func(job string)) {
	wait := retryFirst
	for epoch := int64(1); ctx.Err() == nil; {
		watch, stop := context.WithCancel(ctx)
		events, err := e.open(watch)
		if err == nil {
			e.epoch.Store(epoch)
			epoch++
			up(ctx)
			for event := range events {
				wait = retryFirst
				switch event.Kind {
				case runtime.EventExited:
					gone(event.ID)
				case runtime.EventDiskFull:
					full(event.ID)
				case runtime.EventEngine:
					news()
				default:
				}
			}
			err = fmt.Errorf("watch jobs: %w", runtime.ErrUnavailable)
		}
		stop()
		if ctx.Err() != nil {
			return // our end, not the engine's: leases still bill up to now
		}
		e.epoch.Store(0)
		e.mu.Lock()
		e.fault = err
		e.mu.Unlock()
		e.log.Warn("engine does not answer", slog.Any("err", err), slog.Duration("retry", wait))
		if !pause(ctx, wait) {
			return
		}
		wait = min(2*wait, retryMost)
	}
}

// open watches the jobs and asks the engine what it is.
func (e *engine) open(ctx context.Context) (<-chan runtime.Event, error) {
	events, err := e.rt.Watch(ctx)
	if err != nil {
		return nil, fmt.Errorf("watch jobs: %w", err)
	}
	return events, e.ask(ctx)
}

// ask refreshes what is known of the engine and its images.
func (e *engine) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeAnswer)
	defer cancel()
	about, err := e.rt.Probe(ctx)
	if err != nil {
		return fmt.Errorf("probe engine: %w", err)
	}
	list, err := e.rt.Images(ctx)
	if err != nil {
		return fmt.Errorf("list images: %w", err)
	}
	var images []market.ImageName
	denied, brought := map[string]error{}, map[string]int64{}
	own := ownImages(list)
	for _, i := range list {
		if isBrought(i) {
			if !own[i.Digest] {
				brought[i.Digest] = max(0, i.Size) // offers say nothing of them
			}
			continue
		}
		if err := e.allowed(i); err != nil {
			denied[i.Digest] = err
			continue
		}
		if len(images) < maxImages && imageName.MatchString(i.Name) {
			images = append(images, market.ImageName{Name: i.Name, Digest: i.Digest, Size: max(0, i.Size)})
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.about, e.images, e.denied, e.brought, e.known, e.fault = about, images, denied, brought, true, nil
	return nil
}

// refused returns why the owner does not allow an image that the engine has; nil for any other.
func (e *engine) refused(digest string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.denied[digest]
}

// passes reports whether the engine can give a card to a job. Simulated cards only name themselves.
func (e *engine) passes(c nvml.Card) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return c.Simulated || slices.Contains(e.about.Devices, runtime.DeviceID{Class: deviceClass(c), UUID: c.UUID})
}

// weak returns the protections that were seen not to hold.
func (e *engine) weak() []runtime.Protection {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.about.Protections), func(p runtime.Protection) bool { return p.Holds })
}

// imageName is the form of names that offers take; images with others cannot be rented. It is never written to.
var imageName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// facts returns the images, and whether the engine answers now.
func (e *engine) facts() (images []market.ImageName, up bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.images, e.epoch.Load() != 0
}

// describe fills in what an offer says of the engine; false before it has answered for the first time.
func (e *engine) describe(h *market.HostFacts) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	h.Isolation, h.Images = e.about.Isolation, e.images
	for _, p := range e.about.Protections {
		list := &h.Protections
		if !p.Holds {
			list = &h.Weak
		}
		if len(*list) < maxProtections && imageName.MatchString(p.Name) {
			*list = append(*list, p.Name)
		}
	}
	return e.known
}

// String says which engine it is, or why it does not answer.
func (e *engine) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.fault != nil:
		return e.fault.Error()
	case !e.known:
		return "not asked yet"
	}
	return strings.TrimSpace(e.about.Engine + " " + e.about.Runner)
}
