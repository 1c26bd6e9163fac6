//go:build linux

package containerd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"
	"github.com/containerd/typeurl/v2"

	"haggle/runtime"
)

func isNotFound(err error) bool { return errors.Is(err, runtime.ErrNotFound) }

// Start implements runtime.Runtime.
func (e *Engine) Start(ctx context.Context, id string) error {
	defer e.spares.work()()
	ctx = e.within(ctx)
	name, err := e.settled(ctx, id)
	if err != nil {
		return err
	}
	unlock, err := e.jobs.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	st, err := e.Status(ctx, id)
	switch {
	case err != nil:
		return err
	case st.State == runtime.Running:
		return nil
	case st.State == runtime.Stopped:
		return fmt.Errorf("start job %s: it has ended: %w", id, runtime.ErrConflict)
	}
	// Written first: a job that runs must be known to have been started, whatever happens to us in between.
	if err := e.setLabels(ctx, name, map[string]string{labelStarted: time.Now().UTC().Format(time.RFC3339Nano)}); err != nil {
		return err
	}
	if isSpare(name) {
		return e.release(ctx, name)
	}
	_, err = e.client.TaskService().Start(ctx, &tasks.StartRequest{ContainerID: name})
	return classifyStart(native(err), "start", id)
}

// setLabels writes labels of a container, all or none.
func (e *Engine) setLabels(ctx context.Context, name string, labels map[string]string) error {
	return e.update(ctx, name, labels, nil)
}

// update writes labels of a container and, unless it is nil, its description, all or none.
func (e *Engine) update(ctx context.Context, name string, labels map[string]string, spec typeurl.Any) error {
	var paths []string
	for key := range labels {
		paths = append(paths, "labels."+key)
	}
	if spec != nil {
		paths = append(paths, "spec")
	}
	_, err := e.client.ContainerService().Update(ctx, containers.Container{ID: name, Labels: labels, Spec: spec}, paths...)
	return classify(err, "label job %s", name)
}

// Stop implements runtime.Runtime.
func (e *Engine) Stop(ctx context.Context, id string, grace time.Duration) error {
	ctx = e.within(ctx)
	st, err := e.Status(ctx, id)
	if err != nil {
		return err
	}
	if st.State != runtime.Running { // one that waits for its start has no handler for SIGTERM
		return e.Kill(ctx, id)
	}
	name, err := e.container(ctx, id)
	if err != nil {
		return err
	}
	if err := e.signal(ctx, name, syscall.SIGTERM); err != nil {
		return err
	}
	ended := make(chan struct{})
	e.bg.Go(func() {
		defer close(ended)
		e.killAfter(id, grace)
	})
	select {
	case <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return e.awaitEnd(ctx, id)
}

// killAfter kills a job that has not ended by itself after grace. It outlives the caller of Stop.
func (e *Engine) killAfter(id string, grace time.Duration) {
	ctx, cancel := context.WithTimeout(e.within(e.ctx), grace)
	err := e.awaitEnd(ctx, id)
	cancel()
	for pause := 50 * time.Millisecond; err != nil && e.ctx.Err() == nil; pause = min(2*pause, time.Second) {
		ctx, cancel := context.WithTimeout(e.within(e.ctx), cleanupTimeout)
		err = e.Kill(ctx, id)
		cancel()
		if isNotFound(err) {
			return
		}
		if err != nil {
			select {
			case <-time.After(pause): // containerd is being restarted, or the machine is very slow
			case <-e.ctx.Done():
			}
		}
	}
}

// Kill implements runtime.Runtime.
func (e *Engine) Kill(ctx context.Context, id string) error {
	ctx = e.within(ctx)
	st, err := e.Status(ctx, id)
	if err != nil || st.State == runtime.Stopped {
		return err
	}
	name, err := e.container(ctx, id)
	if err != nil {
		return err
	}
	if err := e.signal(ctx, name, syscall.SIGKILL); err != nil {
		return err
	}
	if t, err := e.getTask(ctx, name); err == nil && t == nil { // nothing is left that could end
		if err := e.reap(ctx, name, &finalState{Lost: true}); err != nil {
			return err
		}
	}
	return e.awaitEnd(ctx, id)
}

// signal sends a signal: SIGKILL to all processes, others to the first. A job that has just ended is no error.
func (e *Engine) signal(ctx context.Context, name string, sig syscall.Signal) error {
	_, err := e.client.TaskService().Kill(ctx, &tasks.KillRequest{ContainerID: name, Signal: uint32(sig), All: sig == syscall.SIGKILL})
	if err == nil || errdefs.IsNotFound(native(err)) {
		return nil
	}
	if t, terr := e.getTask(ctx, name); terr == nil && (t == nil || t.Status == task.Status_STOPPED) {
		return nil
	}
	return classify(err, "signal job %s", name)
}

// awaitEnd returns when the job is seen stopped or removed.
func (e *Engine) awaitEnd(ctx context.Context, id string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events := e.hub.watch(ctx)
	poll := time.NewTicker(500 * time.Millisecond) // for when events are lost
	defer poll.Stop()
	for {
		st, err := e.Status(ctx, id)
		if isNotFound(err) {
			return nil
		}
		if err != nil || st.State == runtime.Stopped {
			return err
		}
		for wake := false; !wake; {
			select {
			case ev, open := <-events:
				if !open {
					events = nil
				}
				wake = ev.ID == id
			case <-poll.C:
				wake = true
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// Remove implements runtime.Runtime.
func (e *Engine) Remove(ctx context.Context, id string) error {
	if err := runtime.ValidateID(id); err != nil {
		return nil
	}
	ctx = e.within(ctx)
	name, err := e.settled(ctx, id)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := e.Kill(ctx, id); err != nil && !isNotFound(err) {
		return err
	}
	if err := e.reap(ctx, name, nil); err != nil {
		return err
	}
	unlock, err := e.jobs.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	c, err := e.client.ContainerService().Get(ctx, name)
	if err != nil && !errdefs.IsNotFound(err) {
		return classify(err, "remove job %s", id)
	}
	if err := e.endVisit(ctx, name); err != nil {
		return err
	}
	if err := e.discard(ctx, name); err != nil {
		return err
	}
	if image := c.Labels[labelImage]; image != "" {
		e.freeImage(ctx, image)
	}
	return nil
}

// reap records how a job ended and lets its shim go. A job that runs is left alone. gone tells the end of a job that
// has no task any more; nil leaves that to a later call.
func (e *Engine) reap(ctx context.Context, name string, gone *finalState) error {
	unlock, err := e.jobs.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	c, err := e.client.ContainerService().Get(ctx, name)
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return classify(err, "reap job %s", name)
	}
	if jobOf(c) == "" {
		return nil // a spare is removed by those who keep it
	}
	t, err := e.getTask(ctx, name)
	if err != nil || (t != nil && t.Status != task.Status_STOPPED) {
		return err
	}
	_, saved, err := savedFinal(c)
	if err != nil {
		return err
	}
	if !saved {
		final := gone
		if t != nil {
			seen := e.observe(t)
			if u, err := e.metrics(ctx, name); err == nil {
				seen.CPUNanos = &u.CPUNanos
			}
			final = &seen
		}
		if final != nil {
			final.NetIn, final.NetOut = e.traffic(ctx, name)
		}
		if final == nil || (t == nil && c.Labels[labelStarted] == "") {
			return nil
		}
		if err := e.saveFinal(ctx, name, *final); err != nil {
			return err
		}
	}
	if err := errors.Join(e.deleteTask(ctx, name), e.detach(ctx, name)); err != nil {
		return err
	}
	e.cards.release(name)
	if e.visited(name) { // it gives up the room when the last visitor has gone
		return nil
	}
	// The disk is kept for what is on it; its empty room is for the next job.
	if err := e.settleDisk(ctx, name); err != nil {
		e.cfg.Log.Warn("the disk of an ended job keeps all of its room", "job", name, "err", err)
	}
	return nil
}

func (e *Engine) saveFinal(ctx context.Context, name string, f finalState) error {
	b, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("end of job %s: %w", name, err)
	}
	if err := e.setLabels(ctx, name, map[string]string{labelFinal: string(b)}); err != nil {
		return err
	}
	e.tell(name, runtime.Event{Kind: runtime.EventExited, Exit: f.exit(), At: f.At})
	return nil
}

// deleteTask ends a task of any state, and with it the shim and the logger. None is no error.
func (e *Engine) deleteTask(ctx context.Context, name string) error {
	t, err := e.getTask(ctx, name)
	if err != nil || t == nil {
		return err
	}
	if t.Status != task.Status_STOPPED {
		if err := e.signal(ctx, name, syscall.SIGKILL); err != nil {
			return err
		}
		if _, err := e.client.TaskService().Wait(ctx, &tasks.WaitRequest{ContainerID: name}); err != nil && !errdefs.IsNotFound(native(err)) {
			return classify(err, "wait for job %s", name)
		}
	}
	// The shim gives up what the logger has not taken yet soon after it is told to go.
	if err := e.awaitLoggerEnd(ctx, name); err != nil {
		return err
	}
	_, err = e.client.TaskService().Delete(ctx, &tasks.DeleteTaskRequest{ContainerID: name})
	if err = native(err); err != nil && !errdefs.IsNotFound(err) {
		return classify(err, "delete task of job %s", name)
	}
	return nil
}

// reapAll records the ends that nobody saw. A job without a task is lost for certain when containerd has just come
// up; otherwise the news of its end may be on its way, and it must be missing twice: missing are those of the last
// call, the result those of this one. known are ends that shims told us. One job that fails must not keep the rest
// from being served.
func (e *Engine) reapAll(
	ctx context.Context, certain bool, missing map[string]bool, known map[string]*finalState,
) (map[string]bool, error) {
	list, err := e.client.ContainerService().List(ctx)
	if err != nil {
		return nil, classify(err, "list jobs")
	}
	without := map[string]bool{}
	for _, c := range list {
		if isVisit(c.ID) {
			e.noteVisit(ctx, c.ID)
		}
		if jobOf(c) == "" {
			continue
		}
		if _, saved, err := savedFinal(c); saved && err == nil && !certain {
			continue // its task was deleted, or will be with the next containerd
		}
		t, err := e.getTask(ctx, c.ID)
		if err == nil {
			without[c.ID] = t == nil
			gone := known[c.ID]
			if gone == nil && (certain || missing[c.ID]) {
				gone = &finalState{Lost: true}
			}
			err = e.reap(ctx, c.ID, gone)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			e.cfg.Log.Warn("the end of a job is not recorded yet", "job", c.ID, "err", err)
		}
	}
	return without, nil
}
