//go:build linux

package containerd

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"
	"github.com/containerd/typeurl/v2"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
)

// What a stopped job has kept is entered by a visit: a small container on the same layers and the same disk, with the job's
// range of ids, whose first process is a door. It has no network, no devices, no secrets and no log. It ends by itself when
// nobody was there for a while, and with the job; nothing tells of it. Its name follows from the job's container, and its label
// leads back.

const (
	visitIdle   = "30s" // without a path
	visitCPU    = 1000
	visitMemory = 256 << 20
	visitPids   = 64
	visitShm    = 16 << 20
)

// visitOf is the name of the visit to what a container has kept.
func visitOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return visitPrefix + hex.EncodeToString(sum[:12])
}

// enterVisit opens a path to what a stopped job has kept.
func (e *Engine) enterVisit(ctx context.Context, name string) (*net.UnixConn, error) {
	visit := visitOf(name)
	if conn, err := e.knock(ctx, visit); err == nil {
		return conn, nil
	}
	if err := e.reap(ctx, name, nil); err != nil { // the engine may not have come to it yet
		return nil, err
	}
	var conn *net.UnixConn
	err := e.withVisit(ctx, name, func() (err error) {
		if conn, err = e.knock(ctx, visit); err == nil {
			return nil
		}
		if err := e.discard(ctx, visit); err != nil {
			return err
		}
		c, err := e.keeper(ctx, name)
		if err != nil {
			return err
		}
		if conn, err = e.makeVisit(ctx, c, visit); err == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		return errors.Join(err, e.discard(ctx, visit), e.settleDisk(ctx, name))
	})
	return conn, err
}

// withVisit holds the locks of a job's container and of its visit.
func (e *Engine) withVisit(ctx context.Context, name string, do func() error) error {
	return e.withLock(ctx, name, func() error { return e.withLock(ctx, visitOf(name), do) })
}

// keeper returns the container of a stopped job that has its disk still. Its lock is held.
func (e *Engine) keeper(ctx context.Context, name string) (containers.Container, error) {
	c, err := e.client.ContainerService().Get(ctx, name)
	if err != nil {
		return c, classify(err, "look for it")
	}
	t, err := e.getTask(ctx, name)
	if err != nil {
		return c, err
	}
	_, ended, err := savedFinal(c)
	switch {
	case err != nil:
		return c, err
	case t != nil || !ended:
		return c, fmt.Errorf("%w: its end is not on record yet", runtime.ErrConflict)
	}
	h, err := heirOf(c)
	if err == nil && h.Job != "" {
		err = fmt.Errorf("%w: its disk is that of job %s", runtime.ErrNotFound, h.Job)
	}
	return c, err
}

// makeVisit makes a visit, starts it and connects with its door. Both locks are held.
func (e *Engine) makeVisit(ctx context.Context, c containers.Container, visit string) (*net.UnixConn, error) {
	p, err := e.makeVisitPlace(ctx, c, visit)
	if err != nil {
		return nil, err
	}
	address := doorPrefix + strings.ToLower(rand.Text())
	spec, err := e.describeVisit(c, visit, p, address)
	if err != nil {
		return nil, err
	}
	if err := e.noteDoor(visit, address); err != nil {
		return nil, err
	}
	made := containers.Container{
		ID: visit, Image: c.Image, Snapshotter: c.Snapshotter, SnapshotKey: c.SnapshotKey, Runtime: c.Runtime,
		Labels: map[string]string{labelVisit: c.ID}, Spec: spec,
	}
	if _, err := e.client.ContainerService().Create(ctx, made); err != nil {
		return nil, classify(err, "make a container for its disk")
	}
	started, err := e.client.TaskService().Create(ctx, &tasks.CreateTaskRequest{ContainerID: visit})
	if err != nil {
		return nil, classify(err, "make a container for its disk")
	}
	if err := unmount(e.rootPath(visit)); err != nil {
		return nil, err
	}
	if _, err := e.client.TaskService().Start(ctx, &tasks.StartRequest{ContainerID: visit}); err != nil {
		return nil, classify(err, "open its door")
	}
	return dialInside(ctx, started.Pid, address, func() error { return e.doorStands(ctx, visit, "") })
}

// makeVisitPlace mounts what the job has kept.
func (e *Engine) makeVisitPlace(ctx context.Context, c containers.Container, visit string) (place, error) {
	p := place{root: e.rootPath(visit)}
	disk, writable, err := e.disks.Reopen(ctx, c.ID)
	if err != nil {
		return p, err
	}
	p.disk = disk
	l, err := showLayers(ctx, e.client.SnapshotService(c.Snapshotter), c.SnapshotKey)
	if err != nil {
		return p, classify(err, "find its layers")
	}
	if err := e.makeJobDir(visit); err != nil {
		return p, err
	}
	var space *os.File
	if first, ok := firstID(c); ok && e.cfg.has(UserNamespace) {
		p.firstID = first
		if space, err = e.ids.namespace(first); err != nil {
			return p, err
		}
	}
	below := filepath.Join(e.jobDir(visit), layersName)
	return p, mountRoot(p.root, below, l, upper{disk, writable}, space, !e.cfg.has(DeviceCgroup))
}

// describeVisit encodes what runc is told of a visit.
func (e *Engine) describeVisit(c containers.Container, visit string, p place, address string) (typeurl.Any, error) {
	job, err := specOf(c)
	if err != nil {
		return nil, err
	}
	door := e.doorMount()
	if len(door) == 0 {
		return nil, fmt.Errorf("%w: its program is not to be had", runtime.ErrUnsupported)
	}
	view := jobView{place: p, cgroup: e.cgroup(visit), more: door, host: e.host, without: e.cfg.Without}
	if view.host.appArmor, err = e.appArmor(); err != nil {
		return nil, err
	}
	spec := runtime.Spec{
		ID: visit, CPUMillis: visitCPU, MemoryBytes: visitMemory, Pids: visitPids, ShmBytes: visitShm,
		Args: slices.Concat([]string{doorPlace}, e.cfg.DoorProgram[1:], []string{"--idle", visitIdle, "@" + address}),
	}
	s, err := jobSpec(spec.WithDefaults(), v1.ImageConfig{}, view)
	if err != nil {
		return nil, err
	}
	s.Hostname, s.Process.Env = jobOf(c), job.Process.Env
	s.Process.User = specs.User{}
	return typeurl.MarshalAny(s)
}

// visited reports whether there may be a visit to what a container has kept.
func (e *Engine) visited(name string) bool {
	_, err := os.Lstat(e.jobDir(visitOf(name)))
	return err == nil
}

// endVisit ends the visit to what a container has kept, if there is one. The container's lock is held.
func (e *Engine) endVisit(ctx context.Context, name string) error {
	visit := visitOf(name)
	alone, err := e.orphan(ctx, visit)
	if err != nil || alone && !e.visited(name) {
		return err
	}
	return e.withLock(ctx, visit, func() error { return e.discard(ctx, visit) })
}

// tidyVisit clears a visit away that has ended, and gives up the room that its disk took.
func (e *Engine) tidyVisit(ctx context.Context, visit string) error {
	c, err := e.client.ContainerService().Get(ctx, visit)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return classify(err, "look for visit %s", visit)
	}
	name := visitedBy(c)
	return e.withLock(ctx, name, func() error {
		return e.withLock(ctx, visit, func() error {
			if t, err := e.getTask(ctx, visit); err != nil || t != nil && alive(t) {
				return err
			}
			return errors.Join(e.discard(ctx, visit), e.settleDisk(ctx, name))
		})
	})
}

// tidyFolders clears away what engines that were killed have left of visits before these had a container.
func (e *Engine) tidyFolders(ctx context.Context) error {
	folders, err := e.jobDirs()
	if err != nil {
		return fmt.Errorf("list folders of jobs: %w", err)
	}
	for _, visit := range folders {
		if !isVisit(visit) {
			continue
		}
		if _, err := e.sweepOrphan(ctx, visit, func() error { return e.discardFiles(ctx, visit) }); err != nil {
			return err
		}
	}
	return nil
}

// noteVisit is tidyVisit for those who have nobody to tell.
func (e *Engine) noteVisit(ctx context.Context, visit string) {
	if err := e.tidyVisit(ctx, visit); err != nil && ctx.Err() == nil && !isClosed(e.stop) {
		e.cfg.Log.Warn("what is left of a visit is not cleared away yet", "container", visit, "err", err)
	}
}

// settleDisk gives the empty room of a stopped job's disk to others.
func (e *Engine) settleDisk(ctx context.Context, name string) error {
	_, err := e.disks.Settle(ctx, name)
	return err
}

// sweepVisits removes, among containers, the visits to jobs that are there no more.
func (e *Engine) sweepVisits(ctx context.Context, names []string) error {
	var errs []error
	for _, visit := range names {
		if !isVisit(visit) {
			continue
		}
		c, err := e.client.ContainerService().Get(ctx, visit)
		if err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, classify(err, "look for visit %s", visit))
			continue
		}
		name := visitedBy(c)
		errs = append(errs, e.withLock(ctx, name, func() error {
			if name != "" {
				if alone, err := e.orphan(ctx, name); err != nil || !alone {
					return err
				}
			}
			return e.withLock(ctx, visit, func() error { return e.discard(ctx, visit) })
		}))
	}
	return errors.Join(errs...)
}
