//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	v1stats "github.com/containerd/cgroups/v3/cgroup1/stats"
	v2stats "github.com/containerd/cgroups/v3/cgroup2/stats"
	"github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/typeurl/v2"

	"haggle/runtime"
)

// Usage implements runtime.Runtime.
func (e *Engine) Usage(ctx context.Context, id string) (runtime.Usage, error) {
	ctx = e.within(ctx)
	st, err := e.Status(ctx, id)
	if err != nil {
		return runtime.Usage{}, err
	}
	name, err := e.container(ctx, id)
	if err != nil {
		return runtime.Usage{}, err
	}
	if st.State != runtime.Stopped {
		u, err := e.metrics(ctx, name)
		u.DiskBytes = e.diskUse(name)
		u.NetInBytes, u.NetOutBytes = e.traffic(ctx, name)
		return u, err
	}
	if err := e.reap(ctx, name, nil); err != nil { // the engine may not have come to it yet
		return runtime.Usage{}, err
	}
	c, err := e.client.ContainerService().Get(ctx, name)
	if err != nil {
		return runtime.Usage{}, classify(err, "usage of job %s", id)
	}
	final, saved, err := savedFinal(c)
	if err != nil {
		return runtime.Usage{}, err
	}
	if !saved || final.CPUNanos == nil {
		return runtime.Usage{}, fmt.Errorf("usage of job %s: %w", id, runtime.ErrNotFound)
	}
	return runtime.Usage{
		CPUNanos: *final.CPUNanos, DiskBytes: e.diskUse(name), NetInBytes: final.NetIn, NetOutBytes: final.NetOut,
	}, nil
}

// diskUse is what a job's disk holds; 0 also when nobody can tell.
func (e *Engine) diskUse(id string) uint64 {
	u, err := e.disks.Usage(id)
	if err != nil {
		return 0
	}
	return u.UsedBytes
}

func (e *Engine) metrics(ctx context.Context, id string) (runtime.Usage, error) {
	r, err := e.client.TaskService().Metrics(ctx, &tasks.MetricsRequest{Filters: []string{"id==" + id}})
	if err != nil {
		return runtime.Usage{}, classify(err, "usage of job %s", id)
	}
	if len(r.Metrics) == 0 || r.Metrics[0].Data == nil {
		return runtime.Usage{}, fmt.Errorf("usage of job %s: %w", id, runtime.ErrNotFound)
	}
	data, err := typeurl.UnmarshalAny(r.Metrics[0].Data)
	if err != nil {
		return runtime.Usage{}, fmt.Errorf("usage of job %s: %w", id, err)
	}
	return usageOf(data)
}

// usageOf reads the figures of either cgroup version. Files that the kernel can drop at any time do not count as
// used memory.
func usageOf(data any) (runtime.Usage, error) {
	switch m := data.(type) {
	case *v1stats.Metrics:
		return runtime.Usage{
			CPUNanos:    m.GetCPU().GetUsage().GetTotal(),
			MemoryBytes: less(m.GetMemory().GetUsage().GetUsage(), m.GetMemory().GetTotalInactiveFile()),
			Pids:        m.GetPids().GetCurrent(),
		}, nil
	case *v2stats.Metrics:
		return runtime.Usage{
			CPUNanos:    m.GetCPU().GetUsageUsec() * uint64(time.Microsecond),
			MemoryBytes: less(m.GetMemory().GetUsage(), m.GetMemory().GetInactiveFile()),
			Pids:        m.GetPids().GetCurrent(),
		}, nil
	}
	return runtime.Usage{}, fmt.Errorf("usage in an unknown format %T", data)
}

func less(a, b uint64) uint64 { return a - min(a, b) }

// Probe implements runtime.Runtime.
func (e *Engine) Probe(ctx context.Context) (runtime.Capabilities, error) {
	v, err := e.client.Version(e.within(ctx))
	if err != nil {
		return runtime.Capabilities{}, classify(err, "version of containerd")
	}
	runc, err := lookPath("runc")
	if err != nil {
		return runtime.Capabilities{}, err
	}
	out, err := exec.CommandContext(ctx, runc, "--version").Output()
	if err != nil {
		return runtime.Capabilities{}, errors.Join(fmt.Errorf("version of runc: %w", err), ctx.Err())
	}
	caps := runtime.Capabilities{
		Protections: e.checked(),
		Engine:      "containerd " + strings.TrimPrefix(v.Version, "v"),
		Runner:      "runc " + runcVersion(string(out)),
		Cgroup:      cgroupVersion(),
	}
	caps.Isolation = isolationOf(caps.Protections)
	if e.cfg.Networks != nil { // they tell whether jobs reach the internet; what they must not reach was tried from inside
		caps.Protections = slices.Concat(caps.Protections, e.cfg.Networks.Check(ctx))
	}
	if e.cfg.Devices != nil {
		caps.Devices = e.cfg.Devices.List()
	}
	return caps, nil
}

// runcVersion reads the first line of `runc --version`: "runc version 1.1.5+ds1".
func runcVersion(out string) string {
	line, _, _ := strings.Cut(out, "\n")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return "unknown"
	}
	return fields[len(fields)-1]
}
