//go:build linux

package containerd

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
)

// discard removes whatever there is of a job: task, container, file system, secrets, disk and log. The job's lock is held.
func (e *Engine) discard(ctx context.Context, id string) error {
	if err := e.settle(ctx, id); err != nil {
		return err
	}
	if err := e.deleteTask(ctx, id); err != nil {
		return err
	}
	if err := e.client.ContainerService().Delete(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return classify(err, "delete container of job %s", id)
	}
	return e.discardFiles(ctx, id)
}

// discardFiles removes what a job without a container has left outside containerd.
func (e *Engine) discardFiles(ctx context.Context, id string) error {
	if err := e.detach(ctx, id); err != nil {
		return fmt.Errorf("delete network of job %s: %w", id, err)
	}
	if err := e.removeJobDir(id); err != nil {
		return fmt.Errorf("delete folder of job %s: %w", id, err)
	}
	if err := e.disks.Destroy(ctx, id); err != nil {
		return fmt.Errorf("delete disk of job %s: %w", id, err)
	}
	if err := e.removeFiles(ctx, id); err != nil {
		return fmt.Errorf("delete log of job %s: %w", id, err)
	}
	e.ids.release(id)
	e.cards.release(id)
	return nil
}
