package host_test

import (
	"context"
	"strings"
	"sync"

	"haggle/nvml"
	"haggle/nvml/sim"
	"haggle/runtime"
	"haggle/runtime/runtimetest"
)

// real makes real cards of simulated ones, whose memory can be overwritten and whose power can be limited.
type real struct {
	*sim.Driver
	// scrub answers for the card's memory; it may be changed while no job runs.
	scrub func(ctx context.Context, uuid string) (int64, error)

	mu     sync.Mutex
	limits []string // power limits in the order in which they were set
	broken error    // of SetPowerLimit
}

const memory = int64(24564) << 20

func newReal(d *sim.Driver) *real {
	return &real{Driver: d, scrub: func(context.Context, string) (int64, error) { return memory, nil }}
}

// simulated is the name of a real card's simulation.
func simulated(uuid string) string { return strings.Replace(uuid, "GPU-", nvml.SimPrefix, 1) }

func (c *real) Cards(ctx context.Context) ([]nvml.Card, error) {
	list, err := c.Driver.Cards(ctx)
	for i := range list {
		list[i].UUID = strings.Replace(list[i].UUID, nvml.SimPrefix, "GPU-", 1)
		list[i].Vendor, list[i].Simulated = nvml.VendorNVIDIA, false
	}
	return list, err
}

func (c *real) Sample(ctx context.Context, uuid string) (nvml.Sample, error) {
	return c.Driver.Sample(ctx, simulated(uuid))
}

func (c *real) Scrub(ctx context.Context, uuid string) (int64, error) { return c.scrub(ctx, uuid) }

func (c *real) SetPowerLimit(_ context.Context, uuid string, milliwatt int64) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if milliwatt == 0 {
		c.limits = append(c.limits, "default")
	} else {
		c.limits = append(c.limits, "limited")
	}
	return milliwatt, c.broken
}

func (c *real) set() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits
}

// giving is an engine that can give real cards to jobs and counts what they use.
type giving struct {
	*runtimetest.Fake

	extra chan runtime.Event // told beside the Fake's own; nil where there are none

	mu    sync.Mutex
	about runtime.Capabilities
	use   runtime.Usage // of every job
	full  bool          // jobs that end have a full disk
	specs []runtime.Spec
}

func (e *giving) Probe(ctx context.Context) (runtime.Capabilities, error) {
	about, err := e.Fake.Probe(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	about.Devices, about.Protections = e.about.Devices, e.about.Protections
	if e.about.Isolation != "" {
		about.Isolation = e.about.Isolation
	}
	return about, err
}

func (e *giving) Watch(ctx context.Context) (<-chan runtime.Event, error) {
	own, err := e.Fake.Watch(ctx)
	if err != nil || e.extra == nil {
		return own, err
	}
	both := make(chan runtime.Event)
	go func() {
		defer close(both)
		for {
			var next runtime.Event
			var ok bool
			select {
			case next, ok = <-own:
			case next = <-e.extra:
				ok = true
			}
			if !ok {
				return
			}
			select {
			case both <- next:
			case <-ctx.Done():
				return
			}
		}
	}()
	return both, nil
}

func (e *giving) Create(ctx context.Context, spec runtime.Spec) error {
	e.mu.Lock()
	e.specs = append(e.specs, spec)
	e.mu.Unlock()
	var devices []runtime.DeviceID
	for _, d := range spec.Devices { // the Fake knows simulated cards only
		devices = append(devices, runtime.DeviceID{Class: runtime.SimulatedGPU, UUID: simulated(d.UUID)})
	}
	spec.Devices = devices
	return e.Fake.Create(ctx, spec)
}

func (e *giving) Usage(ctx context.Context, id string) (runtime.Usage, error) {
	u, err := e.Fake.Usage(ctx, id)
	e.mu.Lock()
	defer e.mu.Unlock()
	u.NetInBytes, u.NetOutBytes, u.DiskBytes = e.use.NetInBytes, e.use.NetOutBytes, e.use.DiskBytes
	return u, err
}

func (e *giving) Status(ctx context.Context, id string) (runtime.Status, error) {
	s, err := e.Fake.Status(ctx, id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.Exit != nil {
		s.Exit.DiskFull = e.full
	}
	return s, err
}

func (e *giving) change(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

// realRig gives a rig two real cards on the network main, of which the engine can give away so many.
func realRig(r *rig, passable int) (*real, *giving) {
	cards := newReal(r.cards)
	list, err := cards.Cards(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	engine := &giving{Fake: r.engine}
	for _, c := range list[:passable] {
		engine.about.Devices = append(engine.about.Devices, runtime.DeviceID{Class: "nvidia.com/gpu", UUID: c.UUID})
	}
	r.config.Network, r.config.Cards, r.config.Runtime = "main", cards, engine
	r.config.Net.Reach = "direct"
	return cards, engine
}
