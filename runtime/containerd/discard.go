//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"
)

// discard removes whatever there is of a job: task, container, file system, secrets, disk and log. The job's lock is held.
func (e *Engine) discard(ctx context.Context, name string) error {
	if err := e.settle(ctx, name); err != nil {
		return err
	}
	if err := e.deleteTask(ctx, name); err != nil {
		return err
	}
	if err := e.client.ContainerService().Delete(ctx, name); err != nil && !errdefs.IsNotFound(err) {
		return classify(err, "delete container of job %s", name)
	}
	return e.discardFiles(ctx, name)
}

// discardFiles removes what a job without a container has left outside containerd.
func (e *Engine) discardFiles(ctx context.Context, name string) error {
	if err := e.detach(ctx, name); err != nil {
		return fmt.Errorf("delete network of job %s: %w", name, err)
	}
	if err := e.removeJobDir(name); err != nil {
		return fmt.Errorf("delete folder of job %s: %w", name, err)
	}
	if err := e.giveBack(ctx, name); err != nil {
		return fmt.Errorf("give the disk of job %s back: %w", name, err)
	}
	if err := e.disks.Destroy(ctx, name); err != nil {
		return fmt.Errorf("delete disk of job %s: %w", name, err)
	}
	err := e.removeFiles(ctx, name)
	if job := e.names.job(name); job != name && job != "" {
		err = errors.Join(err, removeAll(e.logPath(job)))
	}
	if err != nil {
		return fmt.Errorf("delete log of job %s: %w", name, err)
	}
	// A shim that was killed over its work leaves its socket. One that is there is on its way out, or would be used again.
	if socket := e.shimSocket(name); e.daemon != nil && socketOwner(socket) == 0 {
		if err := removeAll(socket); err != nil {
			return fmt.Errorf("delete socket of job %s: %w", name, err)
		}
	}
	e.ids.release(name)
	e.cards.release(name)
	e.names.forget(name)
	return nil
}
