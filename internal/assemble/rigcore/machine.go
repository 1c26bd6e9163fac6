package rigcore

import (
	"fmt"
	goruntime "runtime"

	"haggle/internal/config"
	"haggle/internal/host"
	"haggle/market"
)

// readMachine asks the system about the machine around the cards.
func readMachine(cfg config.Rig) (host.Machine, error) {
	m := host.Machine{Threads: int64(goruntime.NumCPU()), SlotThreads: cfg.Host.Threads, SlotMemory: cfg.Host.Memory}
	if err := describe(&m); err != nil {
		return m, fmt.Errorf("read the machine's facts: %w", err)
	}
	var err error
	// The database is on the same disk as the engine's folder, and there already.
	if m.DiskFree, _, err = space(cfg.Paths.Database); err != nil {
		return m, fmt.Errorf("read the free disk: %w", err)
	}
	if market.IsLab(cfg.Network) {
		m.DiskFree = min(m.DiskFree, labDisk(cfg))
	}
	return m, nil
}

// labDisk is what a lab's rig offers of the machine's disk. A job's disk is taken from the machine as soon as it is made, and a
// lab is a guest there.
func labDisk(cfg config.Rig) int64 {
	const each = 2_000_000_000
	slots := int64(1)
	for _, c := range cfg.Cards.Simulated {
		slots += int64(c.Count)
	}
	return each * slots
}
