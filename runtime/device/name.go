//go:build linux

package device

import (
	"strings"

	"haggle/runtime"
)

// identity reports whether a name in a description stays with its card, so that it can be leased under it.
func identity(kind, name string) bool {
	if strings.HasPrefix(kind, "nvidia.com/") {
		rest, ok := strings.CutPrefix(name, "GPU-")
		if !ok {
			rest, ok = strings.CutPrefix(name, "MIG-")
		}
		return ok && len(rest) >= 4 && len(rest) <= 64 && strings.Trim(strings.ToLower(rest), "0123456789abcdefghijklmnopqrstuvwxyz-") == ""
	}
	switch name {
	case "", "all", "none", "void":
		return false
	}
	// "0", "gpu1", "card-0", "0:1" only count.
	counts := strings.Trim(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz"), "0123456789.:_-") == ""
	return (!counts || strings.HasPrefix(name, "pci-")) && leasable(name)
}

// leasable reports whether a name can be one of runtime.DeviceID.
func leasable(name string) bool {
	return len(name) <= 128 && strings.Trim(strings.ToLower(name), "0123456789abcdefghijklmnopqrstuvwxyz._-") == ""
}

// offered returns the id under which a device is leased; false when it has no lasting name.
func (d *Devices) offered(kind string, dev described) (runtime.DeviceID, bool) {
	if identity(kind, dev.name) {
		return runtime.DeviceID{Class: kind, UUID: dev.name}, true
	}
	if strings.HasPrefix(kind, "nvidia.com/") {
		return runtime.DeviceID{}, false
	}
	render := ""
	for _, n := range dev.edits.nodes {
		if strings.HasPrefix(n.path, "/dev/dri/renderD") {
			if render != "" {
				return runtime.DeviceID{}, false
			}
			render = n.path
		}
	}
	if render == "" {
		return runtime.DeviceID{}, false
	}
	bus, ok := d.machine.bus(render)
	id := "pci-" + strings.ReplaceAll(bus, ":", "-")
	return runtime.DeviceID{Class: kind, UUID: id}, ok && leasable(id)
}
