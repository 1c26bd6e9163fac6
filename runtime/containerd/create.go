//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/containerd/containerd/api/types/runc/options"
	ctr "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/cio"
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
	ctx = e.within(ctx)
	unlock, err := e.jobs.lock(ctx, spec.ID)
	if err != nil {
		return err
	}
	defer unlock()
	exists, err := e.existing(ctx, spec)
	if err != nil || exists {
		return err
	}
	ctx, release, err := e.pin(ctx)
	if err != nil {
		return err
	}
	defer release()
	img, err := e.findImage(ctx, spec.Image)
	if err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	config, err := imageConfig(ctx, img)
	if err != nil {
		return classify(err, "read config of image %s", spec.Image)
	}
	if err := e.create(ctx, spec.WithDefaults(), img, config); err != nil {
		// The context may be what ended it; what is half made must go all the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		return errors.Join(err, e.discard(ctx, spec.ID))
	}
	return nil
}

// existing reports whether the job is there already. One that was left half made is cleared away.
func (e *Engine) existing(ctx context.Context, spec runtime.Spec) (bool, error) {
	c, err := e.client.ContainerService().Get(ctx, spec.ID)
	if errdefs.IsNotFound(err) {
		// A log or file system without a container is of an older job that was not removed whole.
		return false, e.discard(ctx, spec.ID)
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

// create makes container, file system, logger and task.
func (e *Engine) create(ctx context.Context, spec runtime.Spec, img ctr.Image, config v1.ImageConfig) error {
	labels := map[string]string{labelSpec: spec.Hash()}
	for k, v := range spec.Labels {
		labels[labelSpecs+k] = v
	}
	c, err := e.client.NewContainer(ctx, spec.ID,
		ctr.WithContainerLabels(labels),
		ctr.WithSnapshotter(e.cfg.Snapshotter),
		ctr.WithNewSnapshot(spec.ID, img),
		ctr.WithRuntime(shimRuntime, &options.Options{Root: e.cfg.RuncRoot}),
		e.withJobSpec(spec, config),
	)
	if err != nil {
		if errors.Is(err, runtime.ErrInvalidSpec) {
			return fmt.Errorf("create job %s: %w", spec.ID, err)
		}
		return classify(err, "create container of job %s", spec.ID)
	}
	logger := cio.BinaryIO(e.cfg.LoggerPath, map[string]string{
		e.cfg.LoggerArgs[0]: runtime.LoggerArg(e.logPath(spec.ID), spec.LogLimitBytes),
	})
	if _, err := c.NewTask(ctx, logger); err != nil {
		return classifyStart(err, "create", spec.ID)
	}
	return nil
}

// withJobSpec comes after the snapshot, in which a named user is looked up.
func (e *Engine) withJobSpec(spec runtime.Spec, config v1.ImageConfig) ctr.NewContainerOpts {
	return func(ctx context.Context, client *ctr.Client, c *containers.Container) error {
		user, ok := numericUser(config.User)
		if !ok {
			found := &oci.Spec{Process: &specs.Process{}}
			if err := oci.WithUser(config.User)(ctx, client, c, found); err != nil {
				return fmt.Errorf("%w: user %.100q of the image: %w", runtime.ErrInvalidSpec, config.User, err)
			}
			user = found.Process.User
		}
		s, err := jobSpec(spec, config, user, filepath.Join(e.cfg.CgroupParent, spec.ID), e.host)
		if err != nil {
			return err
		}
		c.Spec, err = typeurl.MarshalAny(s)
		return err
	}
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
	if err := os.Remove(e.logPath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete log of job %s: %w", id, err)
	}
	return nil
}

func (e *Engine) logPath(id string) string { return filepath.Join(e.cfg.LogDir, id+".log") }
