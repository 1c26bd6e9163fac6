//go:build linux

package containerd

import (
	"context"
	"time"

	"haggle/runtime"
	"haggle/runtime/volume"
)

// diskEvery is how often each job's disk is looked at, which costs one system call.
const diskEvery = 2 * time.Second

// watchDisks tells when the disk of a running job becomes full, until ctx ends.
func (e *Engine) watchDisks(ctx context.Context) {
	alarms := map[string]*volume.Alarm{}
	for sleep(ctx, diskEvery) == nil {
		now := map[string]*volume.Alarm{}
		for _, name := range e.ids.holders() {
			id := e.names.job(name)
			if id == "" {
				continue
			}
			u, err := e.disks.Usage(name)
			if err != nil {
				continue // it is being made or removed
			}
			alarm := alarms[name]
			if alarm == nil {
				alarm = &volume.Alarm{}
			}
			now[name] = alarm
			if !alarm.Rings(u) {
				continue
			}
			if st, err := e.Status(ctx, id); err == nil && st.State == runtime.Running {
				e.tell(name, runtime.Event{Kind: runtime.EventDiskFull, At: time.Now()})
			}
		}
		alarms = now
	}
}
