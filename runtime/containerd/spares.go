//go:build linux

package containerd

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
)

// Making a container takes longer than all else between an order and a job's first word. So the engine keeps a few spares: whole
// containers, with every protection, whose first process is ours and waits (spare.go). A job like the last one takes a spare
// over (takeover.go), and the engine makes the next when the machine has nothing better to do.
//
// A spare is nobody's and is seen by nobody. The takeover is one write of labels: before it a spare that is found without its
// engine is removed, and after it the container is the job's like any other.

const (
	maxSpares = 16
	// spareQuiet is how long after the last Create or Start a spare is made: it must not hold up the job that was just ordered.
	spareQuiet = 300 * time.Millisecond
	// spareAge is how long a spare of a shape that nobody asks for is kept.
	spareAge = 10 * time.Minute
	// A job with less could not hold the process that waits.
	spareMemory = 64 << 20
	sparePids   = 64
)

// shape is what a spare and a job must have in common. What a job is told, and what it runs, is not part of it.
type shape struct {
	spec    runtime.Spec // with its defaults, and without what spares do not need to have
	secrets bool         // it has a folder for them
	key     string
}

// shapeOf says what spare would fit a job; false when none can. Only devices that do not exist can be had: they are but a
// variable of the environment.
func shapeOf(spec runtime.Spec, img v1.ImageConfig) (shape, bool) {
	spec = spec.WithDefaults()
	cwd, err := workdir(spec, img)
	if err != nil || spec.From != "" || realDevices(spec) || spec.MemoryBytes < spareMemory || spec.Pids < sparePids {
		return shape{}, false
	}
	s := shape{spec: spec, secrets: len(spec.Secrets) > 0}
	s.spec.ID, s.spec.Labels, s.spec.Args, s.spec.Env, s.spec.Devices, s.spec.Secrets = "", nil, nil, nil, nil, nil
	s.spec.Workdir = cwd // runc makes it when the container is made
	s.key = s.spec.Hash() + strconv.FormatBool(s.secrets)
	return s, true
}

// spares are the spares of an engine, and those in the making. The zero value keeps none.
type spares struct {
	busy atomic.Int64 // calls of Create and Start that go on
	last atomic.Int64 // when the last one ended, in Unix nanoseconds

	mu     sync.Mutex
	all    map[string]*spare // by name, until they are removed or somebody's
	wanted shape
	wake   chan struct{} // has one token when wanted is new; nil while nobody keeps spares
	closed bool          // by Purge
}

// spare is a container that waits for its job.
type spare struct {
	name  string
	shape string
	image string // its digest
	since time.Time
	ready bool // to be taken
	spec  *specs.Spec
	words *os.File // what its first process says
	uts   *os.File // its namespace of host names
}

func (s *spare) close() {
	for _, f := range []*os.File{s.words, s.uts} {
		if f != nil {
			_ = f.Close() // nothing was written
		}
	}
}

// work counts a call that a spare in the making would hold up.
func (s *spares) work() (done func()) {
	s.busy.Add(1)
	return func() {
		s.last.Store(time.Now().UnixNano())
		s.busy.Add(-1)
	}
}

// awaitQuiet returns when no job has been made for a while.
func (s *spares) awaitQuiet(ctx context.Context) error {
	for {
		rest := spareQuiet - time.Since(time.Unix(0, s.last.Load()))
		if s.busy.Load() > 0 {
			rest = spareQuiet
		}
		if rest <= 0 {
			return ctx.Err()
		}
		if err := sleep(ctx, rest); err != nil {
			return err
		}
	}
}

// want asks for a spare of a shape. The last word counts. Nobody hears it while no spares are kept.
func (s *spares) want(sh shape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = sh
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// take hands out a spare that fits, which stays known until drop.
func (s *spares) take(key string) *spare {
	s.mu.Lock()
	defer s.mu.Unlock()
	var newest *spare
	for _, sp := range s.all {
		if sp.ready && sp.shape == key && (newest == nil || sp.since.After(newest.since)) {
			newest = sp
		}
	}
	if newest != nil {
		newest.ready = false
	}
	return newest
}

// begin notes a spare that is being made.
func (s *spares) begin(sp *spare) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("the engine is being purged")
	}
	if s.all == nil {
		s.all = map[string]*spare{}
	}
	s.all[sp.name] = sp
	return nil
}

func (s *spares) finish(sp *spare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp.ready, sp.since = true, time.Now()
}

// drop forgets a spare: it is gone, or a job's.
func (s *spares) drop(sp *spare) {
	sp.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sp.name)
}

// ofImage takes back the ready spares of an image, and wants none of it any more.
func (s *spares) ofImage(digest string) []*spare {
	s.mu.Lock()
	if s.wanted.spec.Image == digest {
		s.wanted = shape{}
	}
	s.mu.Unlock()
	return s.remove(func(sp *spare) bool { return sp.image == digest })
}

// owns reports whether a container is a spare that this engine keeps.
func (s *spares) owns(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[name] != nil && !s.closed
}

// close keeps no more spares.
func (s *spares) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// remove takes back the ready spares that which accepts, the oldest first.
func (s *spares) remove(which func(sp *spare) bool) []*spare {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*spare
	for _, sp := range s.all {
		if sp.ready {
			out = append(out, sp)
		}
	}
	slices.SortFunc(out, func(a, b *spare) int { return a.since.Compare(b.since) })
	out = slices.DeleteFunc(out, func(sp *spare) bool { return !which(sp) })
	for _, sp := range out {
		sp.ready = false
	}
	return out
}
