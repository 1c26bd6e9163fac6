//go:build linux

package containerd

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/containerd/containerd/v2/core/containers"

	"haggle/runtime"
)

// A container, and all that belongs to it, is named after its job, except where it was a spare (spares.go): then it keeps the
// name that it was made under, and a label says whose it is. Inside the engine everything goes by the container's name; jobs'
// ids are turned into names where calls come in, and back where statuses and events go out.

// sparePrefix starts the names of spares, which no job may have.
const sparePrefix = "haggle-spare-"

func isSpare(name string) bool { return strings.HasPrefix(name, sparePrefix) }

// jobOf is the job that a container belongs to, empty for a spare and for a visit.
func jobOf(c containers.Container) string {
	if isVisit(c.ID) {
		return ""
	}
	if isSpare(c.ID) {
		return c.Labels[labelJob]
	}
	return c.ID
}

// names keeps which spares have become whose. What it knows follows from the labels of containers. The zero value is ready.
type names struct {
	mu    sync.Mutex
	known bool // whether all labels were read
	byJob map[string]string
	jobs  map[string]string
}

// set notes that a container belongs to a job.
func (n *names) set(job, container string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byJob == nil {
		n.byJob, n.jobs = map[string]string{}, map[string]string{}
	}
	n.byJob[job], n.jobs[container] = container, job
}

// forget drops a container of which nothing is left.
func (n *names) forget(container string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if job, ok := n.jobs[container]; ok {
		delete(n.jobs, container)
		delete(n.byJob, job)
	}
}

// doubt has all labels read again: what became of one is not known.
func (n *names) doubt() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known = false
}

// learn notes what a whole list of containers says.
func (n *names) learn(list []containers.Container) {
	for _, c := range list {
		if job := jobOf(c); job != c.ID && job != "" {
			n.set(job, c.ID)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.known = true
}

// job is whose a container is, empty for a spare and for a visit.
func (n *names) job(container string) string {
	if isVisit(container) {
		return ""
	}
	if !isSpare(container) {
		return container
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.jobs[container]
}

// container is the name of a job's container. Such a job need not be.
func (n *names) container(job string) (name string, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, ok := n.byJob[job]; ok {
		return name, true
	}
	return job, n.known
}

// container finds the container of a job. A spare that belongs to nobody is no job's, and neither is a visit.
func (e *Engine) container(ctx context.Context, id string) (string, error) {
	if runtime.ValidateID(id) != nil || isSpare(id) || isVisit(id) {
		return "", fmt.Errorf("job %.80q: %w", id, runtime.ErrNotFound)
	}
	name, known := e.names.container(id)
	if known {
		return name, nil
	}
	list, err := e.client.ContainerService().List(ctx)
	if err != nil {
		return "", classify(err, "look for job %s", id)
	}
	e.names.learn(list)
	name, _ = e.names.container(id)
	return name, nil
}

// settled finds the container of a job once nobody makes that job any more.
func (e *Engine) settled(ctx context.Context, id string) (string, error) {
	unlock, err := e.jobs.lock(ctx, id)
	if err != nil {
		return "", err
	}
	unlock()
	return e.container(ctx, id)
}

func (e *Engine) cgroup(name string) string { return filepath.Join(e.cfg.CgroupParent, name) }

// Cgroup is the path of a job's cgroup from the hierarchy's root. ErrNotFound for what cannot be the id of a job; whether there
// is such a job it does not say.
func (e *Engine) Cgroup(ctx context.Context, id string) (string, error) {
	name, err := e.container(e.within(ctx), id)
	if err != nil {
		return "", err
	}
	return e.cgroup(name), nil
}
