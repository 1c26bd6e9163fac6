//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/core/containers"

	"haggle/runtime"
)

// prepareHost makes what jobs need of the machine, and learns what the jobs that are there have of it.
func (e *Engine) prepareHost(ctx context.Context) error {
	if err := e.openJobsDir(); err != nil {
		return fmt.Errorf("prepare for jobs: %w", err)
	}
	e.weakenJobs()
	if _, err := e.appArmor(); err != nil {
		return fmt.Errorf("prepare for jobs: %w", err)
	}
	if e.cfg.Devices != nil {
		if err := e.cfg.Devices.Refresh(ctx); err != nil { // a driver that fails must not keep the other jobs from being served
			e.cfg.Log.Warn("the devices are not all known", "err", err)
		}
	}
	list, err := e.client.ContainerService().List(ctx)
	if err != nil {
		return classify(err, "list jobs")
	}
	e.names.learn(list)
	e.heirs.learn(list) // before anything is discarded: a disk may be another job's
	for _, c := range list {
		if err := e.adopt(ctx, c); err != nil {
			return err
		}
	}
	return errors.Join(e.tidyFolders(ctx), e.finishHeirs(ctx))
}

// adopt learns what one job has.
func (e *Engine) adopt(ctx context.Context, c containers.Container) error {
	if first, ok := firstID(c); ok {
		e.ids.adopt(c.ID, first)
	}
	if _, ended := c.Labels[labelFinal]; ended || jobOf(c) == "" {
		return nil
	}
	var devices []runtime.DeviceID
	if err := readLabel(c, labelDevices, &devices); err != nil {
		return err
	}
	e.cards.adopt(c.ID, devices)
	if _, started := c.Labels[labelStarted]; started {
		return e.releaseAgain(ctx, c.ID)
	}
	if err := e.adoptCreated(ctx, c.ID); err != nil && ctx.Err() == nil {
		e.cfg.Log.Warn("a job that was made in part cannot be finished", "job", c.ID, "err", err)
	}
	return ctx.Err()
}

// adoptCreated finishes a job whose engine was killed after its processes had come into being. One that cannot be finished
// goes: it would start without what it was promised.
func (e *Engine) adoptCreated(ctx context.Context, id string) error {
	unlock, err := e.jobs.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	c, err := e.client.ContainerService().Get(ctx, id)
	if err != nil {
		return classify(err, "finish job %s", id)
	}
	t, err := e.getTask(ctx, id)
	if err != nil || t == nil || t.Status != task.Status_CREATED {
		return err
	}
	var network runtime.Network
	err = readLabel(c, labelNetwork, &network)
	if err == nil {
		err = e.finish(ctx, id, t.Pid, network)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	e.cfg.Log.Warn("a job that was made in part cannot be finished and is removed", "job", id, "err", err)
	return e.discard(ctx, id)
}
