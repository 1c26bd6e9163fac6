package rigcore

import (
	"golang.org/x/sys/unix"

	"haggle/internal/host"
)

// describe fills in what the kernel says.
func describe(m *host.Machine) error {
	memory, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return err
	}
	m.Memory = int64(memory)
	if m.CPU, err = unix.Sysctl("machdep.cpu.brand_string"); err != nil {
		return err
	}
	m.Kernel, err = unix.Sysctl("kern.osrelease")
	return err
}
