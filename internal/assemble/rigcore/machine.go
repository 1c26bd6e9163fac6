package rigcore

import (
	"fmt"
	goruntime "runtime"

	"haggle/internal/config"
	"haggle/internal/host"
)

// readMachine asks the system about the machine around the cards.
func readMachine(cfg config.Rig) (host.Machine, error) {
	m := host.Machine{Threads: int64(goruntime.NumCPU()), SlotThreads: cfg.Host.Threads, SlotMemory: cfg.Host.Memory}
	if err := describe(&m); err != nil {
		return m, fmt.Errorf("read the machine's facts: %w", err)
	}
	var err error
	// The database is on the same disk as the engine's folder, and there already.
	if m.DiskFree, err = diskFree(cfg.Paths.Database); err != nil {
		return m, fmt.Errorf("read the free disk: %w", err)
	}
	return m, nil
}
