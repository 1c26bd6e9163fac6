//go:build linux

package containerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
)

// A job may take over the disk of a stopped one (Spec.From). The files on it belong to the old job's range of ids, so the new
// job gets that too. What happens to the disk is on record before it happens, in a label of the old container: first whom it goes
// to, and when the new job is whole, that it has gone. A new job that does not become whole gives the disk back.

// heir is what labelHeir says: whose the disk of a stopped job becomes.
type heir struct {
	Job  string `json:"job"`
	Done bool   `json:"done,omitempty"`
}

func heirOf(c containers.Container) (heir, error) {
	var h heir
	err := readLabel(c, labelHeir, &h)
	return h, err
}

// heirs keeps which disks are on their way, by the new job: the old job's container. What it knows follows from the labels of
// containers. The zero value is ready.
type heirs struct {
	mu   sync.Mutex
	from map[string]string
}

func (h *heirs) set(job, old string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.from == nil {
		h.from = map[string]string{}
	}
	h.from[job] = old
}

func (h *heirs) forget(job string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.from, job)
}

func (h *heirs) get(job string) (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, ok := h.from[job]
	return old, ok
}

func (h *heirs) all() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.from)
}

// learn notes what a whole list of containers says.
func (h *heirs) learn(list []containers.Container) {
	for _, c := range list {
		if next, err := heirOf(c); err == nil && next.Job != "" && !next.Done {
			h.set(next.Job, c.ID)
		}
	}
}

// legacy is what a job takes over. nil: nothing.
type legacy struct {
	name    string // the old job's container
	firstID uint32 // its range, 0 without one
	user    specs.User
}

// claim makes sure that a job may have the disk of Spec.From, and that nobody is on it. The new job's lock is held; the function
// returned lets go of the old one's.
func (e *Engine) claim(ctx context.Context, spec runtime.Spec) (*legacy, func(), error) {
	name, err := e.container(ctx, spec.From)
	if err != nil {
		return nil, nil, err
	}
	if alone, err := e.orphan(ctx, name); err != nil || alone {
		return nil, nil, errors.Join(err, fmt.Errorf("job %s: %w", spec.From, runtime.ErrNotFound))
	}
	if err := e.reap(ctx, name, nil); err != nil { // the engine may not have come to it yet
		return nil, nil, err
	}
	unlock, err := e.jobs.lock(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	l, err := e.claimLocked(ctx, spec, name)
	if err != nil {
		unlock()
		return nil, nil, fmt.Errorf("the disk of job %s: %w", spec.From, err)
	}
	return l, unlock, nil
}

func (e *Engine) claimLocked(ctx context.Context, spec runtime.Spec, name string) (*legacy, error) {
	c, err := e.client.ContainerService().Get(ctx, name)
	if err != nil {
		return nil, classify(err, "look for it")
	}
	h, err := heirOf(c)
	if err != nil {
		return nil, err
	}
	if h.Job == spec.ID && !h.Done { // somebody died over it
		if err := e.giveBack(ctx, spec.ID); err != nil {
			return nil, err
		}
	} else if h.Job != "" {
		return nil, fmt.Errorf("%w: it went to job %s", runtime.ErrConflict, h.Job)
	}
	t, err := e.getTask(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, ended, err := savedFinal(c); err != nil || !ended || t != nil {
		return nil, errors.Join(err, fmt.Errorf("%w: the job has not ended", runtime.ErrConflict))
	}
	if image := c.Labels[labelImage]; image != spec.Image {
		return nil, fmt.Errorf("%w: it is for image %s", runtime.ErrInvalidSpec, image)
	}
	l := &legacy{name: name}
	if l.firstID, _ = firstID(c); !e.cfg.has(UserNamespace) {
		l.firstID = 0
	}
	s, err := specOf(c)
	if err != nil {
		return nil, err
	}
	l.user = s.Process.User
	if err := e.endVisit(ctx, name); err != nil {
		return nil, err
	}
	return l, nil
}

// noteHeir puts on record whose a disk becomes.
func (e *Engine) noteHeir(ctx context.Context, name string, h heir) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if h.Job != "" && !h.Done {
		e.heirs.set(h.Job, name)
	}
	return e.setLabels(ctx, name, map[string]string{labelHeir: string(b)})
}

// inherited puts on record that a job, which is whole now, has its disk for good.
func (e *Engine) inherited(ctx context.Context, job, from string) error {
	if err := e.noteHeir(ctx, from, heir{Job: job, Done: true}); err != nil && !isNotFound(err) {
		return err
	}
	e.heirs.forget(job)
	return nil
}

// giveBack returns a disk from a job that did not become whole to the one that it was of, if that is there still.
func (e *Engine) giveBack(ctx context.Context, job string) error {
	old, ok := e.heirs.get(job)
	if !ok {
		return nil
	}
	if alone, err := e.orphan(ctx, old); err != nil || alone {
		if err == nil {
			e.heirs.forget(job)
		}
		return err
	}
	if err := e.disks.Move(ctx, job, old); err != nil && !errors.Is(err, runtime.ErrNotFound) && !errors.Is(err, runtime.ErrConflict) {
		return err
	}
	if _, _, err := e.disks.Reopen(ctx, old); err != nil && !errors.Is(err, runtime.ErrNotFound) {
		return err
	}
	if err := errors.Join(e.settleDisk(ctx, old), e.noteHeir(ctx, old, heir{})); err != nil {
		return err
	}
	e.heirs.forget(job)
	return nil
}

// takeDisk makes the disk of an older job that of a new one, and puts it on record before.
func (e *Engine) takeDisk(ctx context.Context, spec runtime.Spec, from *legacy) error {
	if from.firstID != 0 {
		e.ids.adopt(spec.ID, from.firstID)
	}
	// Nothing is there of the new job: what an older one of its id has left is not what it takes over.
	if err := e.dropDisk(ctx, spec.ID); err != nil {
		return err
	}
	if err := e.noteHeir(ctx, from.name, heir{Job: spec.ID}); err != nil {
		return err
	}
	return e.disks.Move(ctx, from.name, spec.ID)
}

// finishHeirs brings to an end what an engine that was killed has left of takeovers.
func (e *Engine) finishHeirs(ctx context.Context) error {
	for job, old := range e.heirs.all() {
		err := e.withLock(ctx, job, func() error {
			switch _, err := e.Status(ctx, job); {
			case err == nil:
				return e.inherited(ctx, job, old)
			case isNotFound(err):
				return e.discard(ctx, job)
			default:
				return err
			}
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			e.cfg.Log.Warn("a disk is not where it belongs yet", "job", job, "container", old, "err", err)
		}
	}
	return nil
}
