//go:build linux

package containerd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/errdefs"

	"haggle/runtime"
)

// finalState is how a job ended, as kept in a label of its container.
type finalState struct {
	Lost     bool      `json:"lost,omitempty"` // nobody saw it; the rest is empty
	Code     int       `json:"code"`
	OOMKills uint64    `json:"oomKills"`
	DiskFull bool      `json:"diskFull,omitempty"`
	At       time.Time `json:"at"`
	CPUNanos *uint64   `json:"cpuNanos,omitempty"` // nil when it could not be read
	NetIn    uint64    `json:"netIn,omitempty"`
	NetOut   uint64    `json:"netOut,omitempty"`
}

func (f finalState) exit() *runtime.Exit {
	if f.Lost {
		return nil
	}
	e := runtime.NewExit(f.Code, f.OOMKills)
	e.DiskFull = f.DiskFull && f.Code != 0
	return &e
}

// Status implements runtime.Runtime.
func (e *Engine) Status(ctx context.Context, id string) (runtime.Status, error) {
	ctx = e.within(ctx)
	name, err := e.container(ctx, id)
	if err != nil {
		return runtime.Status{}, err
	}
	c, err := e.client.ContainerService().Get(ctx, name)
	if err != nil {
		return runtime.Status{}, classify(err, "status of job %s", id)
	}
	return e.status(ctx, c, nil)
}

// List implements runtime.Runtime.
func (e *Engine) List(ctx context.Context) ([]runtime.Status, error) {
	ctx = e.within(ctx)
	list, err := e.client.ContainerService().List(ctx)
	if err != nil {
		return nil, classify(err, "list jobs")
	}
	all := make([]runtime.Status, 0, len(list))
	for _, c := range list {
		if isCheck(c.ID) || jobOf(c) == "" {
			continue
		}
		st, err := e.status(ctx, c, nil)
		if isNotFound(err) {
			continue // removed meanwhile, or never made whole
		}
		if err != nil {
			return nil, err
		}
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b runtime.Status) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// getTask returns the task of a container, nil when there is none.
func (e *Engine) getTask(ctx context.Context, name string) (*task.Process, error) {
	r, err := e.client.TaskService().Get(ctx, &tasks.GetRequest{ContainerID: name})
	if err != nil {
		if errdefs.IsNotFound(native(err)) {
			return nil, nil
		}
		return nil, classify(err, "task of job %s", name)
	}
	return r.Process, nil
}

// status reads a job off its container and, unless it is given, its task. A container that has no task and was
// never started is no job: its creation did not end.
func (e *Engine) status(ctx context.Context, c containers.Container, t *task.Process) (runtime.Status, error) {
	st := runtime.Status{ID: jobOf(c), Labels: map[string]string{}, State: runtime.Stopped}
	for k, v := range c.Labels {
		if k, ours := strings.CutPrefix(k, labelSpecs); ours {
			st.Labels[k] = v
		}
	}
	if s, ok := c.Labels[labelStarted]; ok {
		at, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			return st, fmt.Errorf("start time of job %s: %w", c.ID, err)
		}
		st.StartedAt = at
	}
	if final, ok, err := savedFinal(c); err != nil {
		return st, err
	} else if ok {
		st.Exit, st.ExitedAt = final.exit(), final.At
		return st, nil
	}
	if t == nil {
		var err error
		if t, err = e.getTask(ctx, c.ID); err != nil {
			return st, err
		}
	}
	switch {
	case t == nil && st.StartedAt.IsZero():
		return st, fmt.Errorf("job %s: its creation did not end: %w", c.ID, runtime.ErrNotFound)
	case t == nil: // its end is not recorded yet
		st.State = runtime.Running
	case t.Status == task.Status_CREATED:
		st.State, st.StartedAt = runtime.Created, time.Time{}
	case t.Status == task.Status_STOPPED:
		final := e.observe(t)
		st.Exit, st.ExitedAt = final.exit(), final.At
	case st.StartedAt.IsZero(): // its first process is ours and waits
		st.State = runtime.Created
	default:
		st.State = runtime.Running
	}
	return st, nil
}

func savedFinal(c containers.Container) (finalState, bool, error) {
	s, ok := c.Labels[labelFinal]
	if !ok {
		return finalState{}, false, nil
	}
	var f finalState
	if err := json.Unmarshal([]byte(s), &f); err != nil {
		return f, false, fmt.Errorf("end of job %s: %w", c.ID, err)
	}
	return f, true, nil
}

// observe reads the end off a stopped task. The kernel's own count of its kills is asked, because the events
// about them may come late or be lost; its cgroup lives as long as the task.
func (e *Engine) observe(t *task.Process) finalState {
	return finalState{
		Code: int(t.ExitStatus), OOMKills: oomKills(e.cfg.CgroupParent, t.ID), DiskFull: e.disks.Full(t.ID), At: t.ExitedAt.AsTime(),
	}
}
