//go:build linux

package containerd

import (
	"fmt"
	"slices"
	"sync"

	"haggle/runtime"
)

// cards says which job holds which device. What it knows follows from the labels of containers. The zero value is ready.
type cards struct {
	mu     sync.Mutex
	byJob  map[string][]runtime.DeviceID
	shared bool // several jobs may hold one: a protection that is left out
}

// take gives devices to a job, all or none. overlap tells which two must not have different holders. Simulated devices do not
// exist and are not held.
func (c *cards) take(job string, devices []runtime.DeviceID, overlap func(a, b runtime.DeviceID) bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var wanted []runtime.DeviceID
	for _, d := range devices {
		if d.Class == runtime.SimulatedGPU {
			continue
		}
		for holder, held := range c.byJob {
			taken := slices.ContainsFunc(held, func(h runtime.DeviceID) bool { return overlap(d, h) })
			if holder != job && taken && !c.shared {
				return fmt.Errorf("device %s: %w: %s", d.UUID, runtime.ErrDeviceBusy, holder)
			}
		}
		wanted = append(wanted, d)
	}
	c.set(job, wanted)
	return nil
}

// adopt notes what a job that is there already holds.
func (c *cards) adopt(job string, devices []runtime.DeviceID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(job, devices)
}

func (c *cards) set(job string, devices []runtime.DeviceID) {
	if len(devices) == 0 {
		return
	}
	if c.byJob == nil {
		c.byJob = map[string][]runtime.DeviceID{}
	}
	c.byJob[job] = devices
}

// release takes back what a job holds.
func (c *cards) release(job string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byJob, job)
}

// overlap reports whether two devices must not belong to different jobs.
func (e *Engine) overlap(a, b runtime.DeviceID) bool {
	return a == b || (e.cfg.Devices != nil && e.cfg.Devices.Overlap(a, b))
}

// realDevices reports whether a job asks for any device that exists.
func realDevices(spec runtime.Spec) bool {
	return slices.ContainsFunc(spec.Devices, func(d runtime.DeviceID) bool { return d.Class != runtime.SimulatedGPU })
}
