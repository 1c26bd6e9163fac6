//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/snapshots"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/containerd/errdefs"
	"github.com/containerd/typeurl/v2"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
)

// Labels of a container. Those of the job's Spec follow the prefix labelSpecs.
const (
	labelSpec    = "haggle.spec"    // runtime.Spec.Hash
	labelStarted = "haggle.started" // time of the order to start
	labelFinal   = "haggle.final"   // finalState
	labelSpecs   = "haggle.label/"

	// labelGCRoot is containerd's own: its garbage collector keeps what has it.
	labelGCRoot = "containerd.io/gc.root"
)

const (
	shimRuntime    = "io.containerd.runc.v2"
	cleanupTimeout = 30 * time.Second
)

// Create implements runtime.Runtime.
func (e *Engine) Create(ctx context.Context, spec runtime.Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	for _, d := range spec.Devices {
		if d.Class != runtime.SimulatedGPU {
			return fmt.Errorf("create job %s: device class %s: %w", spec.ID, d.Class, runtime.ErrUnsupported)
		}
	}
	ctx, cancel := context.WithCancel(e.within(ctx))
	defer cancel()
	unlock, err := e.jobs.lock(ctx, spec.ID)
	if err != nil {
		return err
	}
	defer unlock()
	found := e.lookForImage(ctx, spec.Image)
	exists, err := e.existing(ctx, spec)
	if err != nil || exists {
		return err
	}
	img, err := e.openImage(ctx, spec.Image, <-found)
	if err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	err = e.createWhole(ctx, spec.WithDefaults(), img)
	if errors.Is(err, runtime.ErrConflict) {
		// Something was left of an older job of this id. It is gone now.
		err = e.createWhole(ctx, spec.WithDefaults(), img)
	}
	return err
}

// createWhole makes all of a job, or leaves nothing of it.
func (e *Engine) createWhole(ctx context.Context, spec runtime.Spec, img image) error {
	l, err := e.startLogger(spec.ID, spec.LogLimitBytes)
	if err == nil {
		defer l.release()
		if err = e.create(ctx, spec, img, l); err == nil {
			return nil
		}
		l.abandon()
	}
	// The context may be what ended it; what is half made must go all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return errors.Join(err, e.discard(ctx, spec.ID))
}

// existing reports whether the job is there already. One that was left half made is cleared away.
func (e *Engine) existing(ctx context.Context, spec runtime.Spec) (bool, error) {
	c, err := e.client.ContainerService().Get(ctx, spec.ID)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, classify(err, "look for job %s", spec.ID)
	}
	if c.Labels[labelSpec] != spec.Hash() {
		return false, fmt.Errorf("create job %s: %w", spec.ID, runtime.ErrConflict)
	}
	_, err = e.status(ctx, c, nil)
	if errors.Is(err, runtime.ErrNotFound) {
		return false, e.discard(ctx, spec.ID)
	}
	return err == nil, err
}

// create makes file system, container and task, in as few calls as there are: a renter waits for them.
func (e *Engine) create(ctx context.Context, spec runtime.Spec, img image, l *logger) error {
	root, err := e.prepare(ctx, spec.ID, img)
	if err != nil {
		return classify(err, "make file system of job %s", spec.ID)
	}
	shim, err := typeurl.MarshalAny(&options.Options{Root: e.cfg.RuncRoot})
	if err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	c := containers.Container{
		ID: spec.ID, Image: img.Name(), Snapshotter: e.cfg.Snapshotter, SnapshotKey: spec.ID,
		Runtime: containers.RuntimeInfo{Name: shimRuntime, Options: shim},
		Labels:  map[string]string{labelSpec: spec.Hash()},
	}
	for k, v := range spec.Labels {
		c.Labels[labelSpecs+k] = v
	}
	if c.Spec, err = e.describe(ctx, spec, img.config, c); err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	if _, err := e.client.ContainerService().Create(ctx, c); err != nil {
		return classify(err, "create container of job %s", spec.ID)
	}
	pipes := e.pipePaths(spec.ID)
	request := &tasks.CreateTaskRequest{ContainerID: spec.ID, Rootfs: root, Stdout: pipes[0], Stderr: pipes[1]}
	if _, err := e.client.TaskService().Create(ctx, request); err != nil {
		return classifyStart(native(err), "create", spec.ID)
	}
	if err := l.check(ctx); err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	if err := removeAll(pipes[0], pipes[1]); err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	return nil
}

// prepare makes a job's file system and says how to mount it.
func (e *Engine) prepare(ctx context.Context, id string, img image) ([]*types.Mount, error) {
	service := e.client.SnapshotService(e.cfg.Snapshotter)
	// The garbage collector must keep it until it has a container, and when we die before that, until the next sweep.
	keep := snapshots.WithLabels(map[string]string{labelGCRoot: time.Now().UTC().Format(time.RFC3339)})
	list, err := service.Prepare(ctx, id, img.chain, keep)
	if errdefs.IsNotFound(err) { // the image's own file system was removed since it was last used
		if err := img.Unpack(ctx, e.cfg.Snapshotter); err != nil {
			return nil, err
		}
		list, err = service.Prepare(ctx, id, img.chain, keep)
	}
	if err != nil {
		return nil, err
	}
	all := make([]*types.Mount, 0, len(list))
	for _, m := range list {
		all = append(all, &types.Mount{Type: m.Type, Source: m.Source, Target: m.Target, Options: m.Options})
	}
	return all, nil
}

// describe encodes what runc is told. The job's file system must be there: a named user is looked up in it.
func (e *Engine) describe(ctx context.Context, spec runtime.Spec, config v1.ImageConfig, c containers.Container) (typeurl.Any, error) {
	user, ok := numericUser(config.User)
	if !ok {
		found := &oci.Spec{Process: &specs.Process{}}
		if err := oci.WithUser(config.User)(ctx, e.client, &c, found); err != nil {
			return nil, fmt.Errorf("%w: user %.100q of the image: %w", runtime.ErrInvalidSpec, config.User, err)
		}
		user = found.Process.User
	}
	s, err := jobSpec(spec, config, user, filepath.Join(e.cfg.CgroupParent, spec.ID), e.host)
	if err != nil {
		return nil, err
	}
	return typeurl.MarshalAny(s)
}

// discard removes whatever there is of a job: task, container, file system and log. The job's lock is held.
func (e *Engine) discard(ctx context.Context, id string) error {
	if err := e.deleteTask(ctx, id); err != nil {
		return err
	}
	if err := e.client.ContainerService().Delete(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return classify(err, "delete container of job %s", id)
	}
	if err := e.client.SnapshotService(e.cfg.Snapshotter).Remove(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return classify(err, "delete file system of job %s", id)
	}
	if err := e.removeFiles(id); err != nil {
		return fmt.Errorf("delete log of job %s: %w", id, err)
	}
	return nil
}
