package rigcore

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"haggle/internal/host"
)

// describe fills in what the kernel says.
func describe(m *host.Machine) error {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err
	}
	m.CPU, m.Kernel = procField("/proc/cpuinfo", "model name"), unix.ByteSliceToString(name.Release[:])
	kib, err := strconv.ParseInt(strings.TrimSuffix(procField("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	if err != nil {
		return fmt.Errorf("size of the memory: %w", err)
	}
	m.Memory = kib << 10
	return nil
}

// procField returns the first value of a name in a file of "name : value" lines, or "".
func procField(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		key, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
