//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/errdefs"

	"haggle/runtime"
)

// Sweep implements runtime.Runtime.
func (e *Engine) Sweep(ctx context.Context, keep func(id string) bool) (runtime.SweepReport, error) {
	ctx = e.within(ctx)
	var report runtime.SweepReport
	all, err := e.allContainers(ctx)
	if err != nil {
		return report, err
	}
	errs := []error{e.sweepSpares(ctx, all), e.sweepVisits(ctx, all)}
	keep = e.byContainer(keep)
	for _, name := range all {
		id := e.names.job(name)
		if id == "" || keep(name) || id == e.check.running() {
			continue
		}
		if err := e.Remove(ctx, id); err != nil {
			errs = append(errs, err)
			continue
		}
		report.Jobs = append(report.Jobs, id)
	}
	errs = append(errs, e.sweepLogs(ctx, keep, &report), e.sweepFiles(ctx, keep, &report))
	return report, errors.Join(errs...)
}

// byContainer asks keep about the job that a container belongs to. Those of spares are kept as long as the spares are.
func (e *Engine) byContainer(keep func(id string) bool) func(name string) bool {
	return func(name string) bool {
		if id := e.names.job(name); id != "" {
			return keep(id)
		}
		return e.spares.owns(name)
	}
}

// allContainers names what has a container or a task, also what is only half made.
func (e *Engine) allContainers(ctx context.Context) ([]string, error) {
	list, err := e.client.ContainerService().List(ctx)
	if err != nil {
		return nil, classify(err, "list jobs")
	}
	e.names.learn(list)
	var ids []string
	seen := map[string]bool{}
	add := func(id string) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for _, c := range list {
		add(c.ID)
	}
	r, err := e.client.TaskService().List(ctx, &tasks.ListTasksRequest{})
	if err != nil {
		return nil, classify(err, "list tasks")
	}
	for _, t := range r.Tasks {
		add(t.ID)
	}
	return ids, nil
}

// orphan reports whether id has no container now; asked under the job's lock, so that a creation is not disturbed.
func (e *Engine) orphan(ctx context.Context, id string) (bool, error) {
	_, err := e.client.ContainerService().Get(ctx, id)
	if errdefs.IsNotFound(err) {
		return true, nil
	}
	return false, classify(err, "look for job %s", id)
}

func (e *Engine) sweepOrphan(ctx context.Context, id string, remove func() error) (bool, error) {
	unlock, err := e.jobs.lock(ctx, id)
	if err != nil {
		return false, err
	}
	defer unlock()
	if alone, err := e.orphan(ctx, id); err != nil || !alone {
		return false, err
	}
	return true, remove()
}

// sweepFiles removes the folders, disks and networks of jobs that have no container.
func (e *Engine) sweepFiles(ctx context.Context, keep func(string) bool, report *runtime.SweepReport) error {
	folders, err := e.jobDirs()
	if err != nil {
		return fmt.Errorf("list folders of jobs: %w", err)
	}
	disks, err := e.disks.List()
	if err != nil {
		return fmt.Errorf("list disks: %w", err)
	}
	var networks []string
	if e.cfg.Networks != nil {
		if networks, err = e.cfg.Networks.Jobs(ctx); err != nil {
			return err
		}
	}
	for _, kind := range []struct {
		ids  []string
		done *[]string
	}{{folders, &report.Snapshots}, {disks, &report.Disks}, {networks, &report.Networks}} {
		for _, id := range kind.ids {
			if keep(id) {
				continue
			}
			done, err := e.sweepOrphan(ctx, id, func() error { return e.discardFiles(ctx, id) })
			if err != nil {
				return err
			}
			if done && !isVisit(id) {
				*kind.done = append(*kind.done, id)
			}
		}
	}
	return nil
}

func (e *Engine) sweepLogs(ctx context.Context, keep func(string) bool, report *runtime.SweepReport) error {
	files, err := os.ReadDir(e.cfg.LogDir)
	if err != nil {
		return fmt.Errorf("list logs: %w", err)
	}
	for _, f := range files {
		id, isLog := logOwner(f.Name())
		if !isLog || keep(id) || slices.Contains(report.Logs, id) {
			continue
		}
		done, err := e.sweepOrphan(ctx, id, func() error { return e.removeFiles(ctx, id) })
		if err != nil {
			return fmt.Errorf("delete log of job %s: %w", id, err)
		}
		if done {
			report.Logs = append(report.Logs, id)
		}
	}
	return nil
}

// logOwner names the job to which a file in the folder of logs belongs.
func logOwner(name string) (id string, ok bool) {
	for _, suffix := range []string{logSuffix, stdoutSuffix, stderrSuffix} {
		if id, ok := strings.CutSuffix(name, suffix); ok && runtime.ValidateID(id) == nil {
			return id, true
		}
	}
	return "", false
}
