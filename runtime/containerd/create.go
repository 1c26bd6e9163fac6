//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/runc/options"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/containerd/errdefs"
	"github.com/containerd/typeurl/v2"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
	"haggle/runtime/volume"
)

const (
	shimRuntime    = "io.containerd.runc.v2"
	cleanupTimeout = 30 * time.Second
)

// Create implements runtime.Runtime.
func (e *Engine) Create(ctx context.Context, spec runtime.Spec) error {
	if isCheck(spec.ID) || isSpare(spec.ID) || isVisit(spec.ID) {
		return fmt.Errorf("%w: ids that begin with %s, %s or %s are the engine's own", runtime.ErrInvalidSpec,
			checkPrefix, sparePrefix, visitPrefix)
	}
	defer e.spares.work()()
	return e.makeJob(ctx, spec)
}

func (e *Engine) makeJob(ctx context.Context, spec runtime.Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	if realDevices(spec) && e.cfg.Devices == nil {
		return fmt.Errorf("create job %s: %w: this engine passes no devices on", spec.ID, runtime.ErrUnsupported)
	}
	if spec.Network.Mode != runtime.NetworkNone && e.cfg.Networks == nil {
		return fmt.Errorf("create job %s: %w: this engine has no networks", spec.ID, runtime.ErrUnsupported)
	}
	ctx, cancel := context.WithCancel(e.within(ctx))
	defer cancel()
	unlock, err := e.jobs.lock(ctx, spec.ID)
	if err != nil {
		return err
	}
	defer unlock()
	if !e.isReady() {
		return fmt.Errorf("create job %s: %w", spec.ID, runtime.ErrUnavailable)
	}
	found := e.lookForImage(ctx, spec.Image)
	exists, err := e.existing(ctx, spec)
	if err != nil || exists {
		return err
	}
	listed := <-found
	var from *legacy
	for range 3 {
		var img image
		if img, err = e.openImage(ctx, spec, listed); err != nil && !errors.Is(err, errStale) {
			return fmt.Errorf("create job %s: %w", spec.ID, err)
		}
		if spec.From != "" && from == nil && err == nil {
			var release func()
			if from, release, err = e.claim(ctx, spec); err != nil {
				return fmt.Errorf("create job %s: %w", spec.ID, err)
			}
			defer release()
		}
		if err == nil {
			err = e.createAnyhow(ctx, spec.WithDefaults(), img, from)
		}
		switch {
		case errors.Is(err, errStale):
			e.images.forget(spec.Image)
			listed = <-e.lookForImage(ctx, spec.Image)
		case errors.Is(err, runtime.ErrConflict):
			// Something was left of an older job of this id. It is gone now.
		case errors.Is(err, runtime.ErrNoRoom) && e.yieldSpares(ctx):
			// There may be room now.
		default:
			return err
		}
	}
	return err
}

// createAnyhow makes a job of a spare, or from nothing, and asks for the next spare.
func (e *Engine) createAnyhow(ctx context.Context, spec runtime.Spec, img image, from *legacy) error {
	sh, fits := shapeOf(spec, img.config)
	if !fits || isCheck(spec.ID) {
		return e.createWhole(ctx, spec, img, from)
	}
	taken, err := e.takeOver(ctx, spec, img.config, sh)
	if !taken {
		err = e.createWhole(ctx, spec, img, nil)
	}
	if err == nil {
		e.spares.want(sh)
	}
	return err
}

// createWhole makes all of a job, or leaves nothing of it.
func (e *Engine) createWhole(ctx context.Context, spec runtime.Spec, img image, from *legacy) error {
	l, err := e.startLogger(ctx, spec.ID, e.cfg.logLimit(spec))
	if err == nil {
		defer l.release()
		if err = e.create(ctx, spec, img, from, l); err == nil {
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
	name, err := e.container(ctx, spec.ID)
	if err != nil {
		return false, err
	}
	c, err := e.client.ContainerService().Get(ctx, name)
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
	if !errors.Is(err, runtime.ErrNotFound) {
		return err == nil, err
	}
	if old := c.Labels[labelFrom]; old != "" { // the machine went down before its start
		e.heirs.set(spec.ID, old)
	}
	return false, e.discard(ctx, name)
}

// create makes disk, file system, container and task, in as few calls as there are: a renter waits for them.
func (e *Engine) create(ctx context.Context, spec runtime.Spec, img image, from *legacy, l *logger) error {
	if err := e.cards.take(spec.ID, spec.Devices, e.overlap); err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	m, err := e.makePlace(ctx, spec, img.layers, from)
	if err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	shim, err := typeurl.MarshalAny(&options.Options{Root: e.cfg.RuncRoot})
	if err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	c := containers.Container{
		// The container keeps the garbage collector off the image's layers.
		ID: spec.ID, Image: img.name, Snapshotter: e.cfg.Snapshotter, SnapshotKey: img.chain,
		Runtime: containers.RuntimeInfo{Name: shimRuntime, Options: shim},
	}
	if c.Labels, err = jobLabels(spec, m.firstID); err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	c.Labels[labelConfig] = img.source.Digest.String()
	if from != nil {
		c.Labels[labelFrom] = from.name
	}
	if c.Spec, err = e.describe(ctx, spec, img.config, m, from); err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	if _, err := e.client.ContainerService().Create(ctx, c); err != nil {
		return classify(err, "create container of job %s", spec.ID)
	}
	if err := e.checkLayers(ctx, img.imageFacts); err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	if err := e.createTask(ctx, spec, l); err != nil || from == nil {
		return err
	}
	return e.inherited(ctx, spec.ID, from.name)
}

// createTask lets shim and runc make the job's processes and namespaces, up to its start.
func (e *Engine) createTask(ctx context.Context, spec runtime.Spec, l *logger) error {
	pipes := e.pipePaths(spec.ID)
	request := &tasks.CreateTaskRequest{ContainerID: spec.ID, Stdout: pipes[0], Stderr: pipes[1]}
	made, err := e.client.TaskService().Create(ctx, request)
	if err != nil {
		return classifyStart(native(err), "create", spec.ID)
	}
	if err := l.check(ctx); err != nil {
		return fmt.Errorf("create job %s: %w", spec.ID, err)
	}
	network := spec.Network
	if isSpare(spec.ID) {
		network = idleNetwork(network)
	}
	return e.finish(ctx, spec.ID, made.Pid, network)
}

// finish is what is left to do when a job's processes are there, up to its start. It may be repeated.
func (e *Engine) finish(ctx context.Context, id string, pid uint32, network runtime.Network) error {
	pipes := e.pipePaths(id)
	// The job has its file system in a mount namespace of its own by now, and both sides of its log have met.
	if err := errors.Join(unmount(e.rootPath(id)), removeAll(pipes[0], pipes[1])); err != nil {
		return fmt.Errorf("create job %s: %w", id, err)
	}
	return e.attach(ctx, id, pid, network)
}

// place is where a job lives on the host.
type place struct {
	firstID uint32 // of the job's range; 0 without a user namespace
	root    string
	disk    volume.Disk
}

// makePlace makes a job's disk and folder, and mounts its root file system.
func (e *Engine) makePlace(ctx context.Context, spec runtime.Spec, l layers, from *legacy) (place, error) {
	p := place{root: e.rootPath(spec.ID)}
	var space *os.File
	switch {
	case from != nil:
		p.firstID = from.firstID
	case e.cfg.has(UserNamespace):
		var err error
		if p.firstID, err = e.ids.take(spec.ID); err != nil {
			return p, err
		}
	}
	disk := make(chan error, 1)
	go func() {
		var err error
		if from != nil {
			err = e.takeDisk(ctx, spec, from)
		} else {
			err = e.dropDisk(ctx, spec.ID)
		}
		if err == nil {
			p.disk, err = e.disks.Make(ctx, spec.ID, spec.DiskBytes, p.firstID)
		}
		disk <- err
	}()
	err := e.makeJobDir(spec.ID)
	if err == nil && p.firstID != 0 {
		space, err = e.ids.namespace(p.firstID)
	}
	if err := errors.Join(<-disk, err); err != nil {
		return p, err
	}
	err = mountRoot(p.root, filepath.Join(e.jobDir(spec.ID), layersName), l, upper{p.disk, true}, space, !e.cfg.has(DeviceCgroup))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", errStale, err)
	}
	return p, err
}

// dropDisk destroys the disk that an older job of this id has left: another job must not find what is on it.
func (e *Engine) dropDisk(ctx context.Context, id string) error {
	ids, err := e.disks.List()
	if err != nil || !slices.Contains(ids, id) {
		return err
	}
	return e.disks.Destroy(ctx, id)
}

// describe encodes what runc is told. The job's file system must be there: a named user is looked up in it.
func (e *Engine) describe(
	ctx context.Context, spec runtime.Spec, config v1.ImageConfig, p place, from *legacy,
) (typeurl.Any, error) {
	user, err := e.findUser(ctx, spec.ID, config.User, p.root, from)
	if err != nil {
		return nil, err
	}
	view := jobView{
		user: user, place: p, cgroup: e.cgroup(spec.ID), host: e.host, without: e.cfg.Without,
	}
	if view.host.appArmor, err = e.appArmor(); err != nil {
		return nil, err
	}
	uid, gid := int(p.firstID+user.UID), int(p.firstID+user.GID)
	if len(spec.Secrets) > 0 || isSpare(spec.ID) && spec.Secrets != nil {
		if view.secrets, err = e.makeSecrets(spec.ID, spec.Secrets, uid, gid); err != nil {
			return nil, fmt.Errorf("write secrets: %w", err)
		}
	}
	if view.more, err = e.networkFiles(spec); err != nil {
		return nil, fmt.Errorf("write files of the network: %w", err)
	}
	view.more = append(view.more, e.doorMount()...)
	s, err := jobSpec(spec, config, view)
	if err != nil {
		return nil, err
	}
	if e.cfg.Devices != nil {
		if err := e.cfg.Devices.Inject(s, spec.Devices); err != nil {
			return nil, err
		}
	}
	if isCheck(spec.ID) {
		if err := e.addCheckHook(s, spec.ID); err != nil {
			return nil, err
		}
	}
	if isSpare(spec.ID) {
		if err := e.letWait(s, spec.ID, uid, gid); err != nil {
			return nil, fmt.Errorf("let it wait: %w", err)
		}
	}
	ownHookEnv(s, e.cfg.has(HookEnvironment))
	return typeurl.MarshalAny(s)
}

// findUser reads the user that an image names. On a disk that was another job's nothing is looked up: what is there is the
// tenant's.
func (e *Engine) findUser(ctx context.Context, id, name, root string, from *legacy) (specs.User, error) {
	if from != nil {
		return from.user, nil
	}
	user, ok := numericUser(name)
	if !ok {
		found := &oci.Spec{Root: &specs.Root{Path: root}, Process: &specs.Process{}, Linux: &specs.Linux{}}
		if err := oci.WithUser(name)(ctx, e.client, &containers.Container{ID: id}, found); err != nil {
			return user, fmt.Errorf("%w: user %.100q of the image: %w", runtime.ErrInvalidSpec, name, err)
		}
		user = found.Process.User
	}
	if user.UID >= idsPerJob || user.GID >= idsPerJob {
		return user, fmt.Errorf("%w: user %.100q of the image is beyond the job's %d ids", runtime.ErrInvalidSpec, name, idsPerJob)
	}
	return user, nil
}
