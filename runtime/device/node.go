//go:build linux

package device

import (
	"path"
	"strconv"
	"strings"

	cdispecs "tags.cncf.io/container-device-interface/specs-go"
)

// role is what a node is to a job.
type role int

const (
	roleUnknown role = iota
	roleDenied       // belongs to the machine and never to a job
	roleScreen       // drives screens: no job needs it, so it is left out
	roleControl      // of a driver, for all its cards
	roleCard         // one card
	roleSlice        // right to one slice of a card
)

// nodeWant is one node that a description asks for.
type nodeWant struct {
	path         string
	role         role
	major, minor int64  // as described; both 0: whatever they are
	access       string // for the job's device cgroup
}

// classify tells what a path below /dev is to a job, and which vendor's cards it belongs to, if it is one vendor's.
func classify(p string) (r role, vendor string) {
	name := strings.TrimPrefix(p, "/dev/")
	number := func(prefix string) (int, bool) {
		digits, ok := strings.CutPrefix(name, prefix)
		n, err := strconv.Atoi(digits)
		return n, ok && err == nil && n >= 0 && n < 10_000 && strconv.Itoa(n) == digits
	}
	if n, ok := number("nvidia-caps/nvidia-cap"); ok {
		// 1 and 2 configure and monitor the slices of every card.
		if n <= 2 {
			return roleDenied, ""
		}
		return roleSlice, "nvidia.com"
	}
	if _, ok := number("nvidia"); ok {
		return roleCard, "nvidia.com"
	}
	for _, prefix := range []string{"dri/renderD", "accel/accel"} {
		if _, ok := number(prefix); ok {
			return roleCard, ""
		}
	}
	for _, prefix := range []string{"dri/card", "dri/controlD"} {
		if _, ok := number(prefix); ok {
			return roleScreen, ""
		}
	}
	switch name {
	case "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools":
		return roleControl, "nvidia.com"
	case "nvidia-modeset":
		return roleScreen, "nvidia.com"
	case "kfd":
		return roleControl, "amd.com"
	}
	if forbidden(name) {
		return roleDenied, ""
	}
	return roleUnknown, ""
}

// forbidden reports whether a name below /dev is the machine's own, whatever the owner allows.
func forbidden(name string) bool {
	for _, pattern := range []string{
		"mem", "kmem", "port", "kmsg", "nvram", "cpu/*/*", "cpu_dma_latency", "mcelog", "userfaultfd", "udmabuf", "dma_heap/*",
		"sd*", "hd*", "vd*", "xvd*", "sr*", "sg*", "nvme*", "mmcblk*", "md*", "dm-*", "zd*", "nbd*", "loop*", "ram*", "zram*", "raw/*",
		"mapper/*", "disk/*/*", "btrfs-control", "bsg/*", "fd*", "fuse", "cuse", "autofs",
		"net/*", "ppp", "tun", "tap*", "vhost*", "vsock", "kvm", "sev*", "tdx*", "vfio/*", "vfio/*/*", "iommu", "mei*", "ipmi*",
		"tty*", "console", "ptmx", "pts/*", "vcs*", "input/*", "uinput", "uhid", "hidraw*", "usb*", "bus/*/*/*", "snd/*", "video*", "media*",
		"fb*", "dxg", "tpm*", "watchdog*", "rtc*", "hpet", "hwrng", "i2c-*", "spidev*", "gpiochip*", "snapshot", "shm/*", "mqueue/*",
		"nvidia-nvswitch*", "nvidia-nvlink", "nvidia-vgpu*", "nvidia-fs*", "nvidia-caps-imex-channels/*",
	} {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

// deniedNumber reports whether a device number is the machine's own, whatever its path: memory, terminals, and those of the
// miscellaneous drivers that give a way out.
func deniedNumber(major, minor uint32) bool {
	switch major {
	case 1, 4, 5, 7, 13, 21, 29, 81, 89, 108, 116, 136, 180, 188, 189, 202, 203:
		return true
	case 10:
		switch minor {
		case 196, 200, 223, 227, 229, 232, 237, 238, 239, 241, 242: // vfio, tun, uinput, mcelog, fuse, kvm, loop-control, vhost-*, uhid, vsock
			return true
		}
	}
	return false
}

// owned reports whether the owner of the machine allows a node.
func (p policy) owned(node string) bool {
	for _, pattern := range p.nodes {
		if ok, _ := path.Match(pattern, node); ok {
			return true
		}
	}
	return false
}

// node judges one node. Mode, owner and group of a description are not looked at: those of the real node count.
func (j *judge) node(n *cdispecs.DeviceNode, out *edits) {
	before := len(j.problems)
	want := nodeWant{path: n.Path, major: n.Major, minor: n.Minor, access: "rw"}
	if j.off[ProtectNodes] {
		want.role, want.access = roleControl, "rwm"
		if want.path = n.HostPath; want.path == "" {
			want.path = n.Path
		}
		out.nodes = append(out.nodes, want)
		return
	}
	if !cleanPath(n.Path) || !strings.HasPrefix(n.Path, "/dev/") {
		j.no(ruleNodePath, "%.100q is no clean path below /dev", n.Path)
		return
	}
	if n.HostPath != "" && n.HostPath != n.Path {
		j.no(ruleNodeHost, "%.100q would appear as %.100q: a node keeps its path", n.HostPath, n.Path)
	}
	if n.Type != "" && n.Type != "c" {
		j.no(ruleNodeType, "%.100q is of type %.10q: only character devices are passed on", n.Path, n.Type)
	}
	// CDI reads nothing as everything, and vendors' tools write "rwm". Making nodes is never granted, so that asking is no fault.
	switch strings.Trim(n.Permissions, "m") {
	case "", "rw", "wr":
	case "r":
		want.access = "r"
	case "w":
		want.access = "w"
	default:
		j.no(ruleNodeAccess, "permissions %.20q of %.100q are not of r, w and m", n.Permissions, n.Path)
	}
	if n.Major < 0 || n.Minor < 0 || n.Major > 1<<12-1 || n.Minor > 1<<20-1 {
		j.no(ruleNodeNumber, "%.100q has the number %d:%d, which no node has", n.Path, n.Major, n.Minor)
	} else if n.Major != 0 && deniedNumber(uint32(n.Major), uint32(n.Minor)) {
		j.no(ruleNodeDenied, "%.100q has the number %d:%d of a device of the machine itself", n.Path, n.Major, n.Minor)
	}
	j.role(&want)
	if want.role == roleScreen {
		out.leftOut = append(out.leftOut, "node "+n.Path)
		return
	}
	if len(j.problems) == before {
		out.nodes = append(out.nodes, want)
	}
}

// role decides what the node is, and refuses it where no job may have it.
func (j *judge) role(want *nodeWant) {
	r, vendor := classify(want.path)
	if r != roleDenied && j.owned(want.path) {
		if r == roleUnknown || r == roleScreen {
			r, vendor = roleCard, ""
			if j.device == "" {
				r = roleControl
			}
		}
	}
	want.role = r
	switch {
	case r == roleDenied:
		j.no(ruleNodeDenied, "%.100q is the machine's own and reaches no job", want.path)
	case r == roleUnknown:
		j.no(ruleNodeUnknown, "%.100q is not known as a node of a card; the owner can allow it", want.path)
	case vendor != "" && vendor != j.vendor():
		j.no(ruleNodeUnknown, "%.100q belongs to %s and not to %.100q", want.path, vendor, j.kind)
	case j.device == "" && (r == roleCard || r == roleSlice):
		j.no(ruleNodeShared, "%.100q is one card, and would be given to every job with any card of the description", want.path)
	}
}

// checkCard checks that a device which would be offered has the nodes of one card and no more.
func (j *judge) checkCard(d described) {
	if j.off[ProtectNodes] || len(j.problems) > 0 || !identity(j.kind, d.name) {
		return
	}
	count := make(map[string]int)
	cards, slices := 0, 0
	for _, n := range d.edits.nodes {
		switch n.role {
		case roleSlice:
			slices++
		case roleCard:
			cards++
			count[strings.TrimRight(n.path, "0123456789")]++
		}
	}
	if cards == 0 {
		j.no(ruleCardNodes, "no node of a card is described")
	}
	for _, prefix := range []string{"/dev/nvidia", "/dev/dri/renderD", "/dev/accel/accel"} {
		if count[prefix] > 1 {
			j.no(ruleCardNodes, "%d nodes %s… are more than one card has", count[prefix], prefix)
		}
	}
	if j.vendor() == "nvidia.com" {
		if slice := strings.HasPrefix(d.name, "MIG-"); slice != (slices > 0) {
			j.no(ruleCardNodes, "%d rights to slices do not fit this name", slices)
		}
		if count["/dev/nvidia"] != 1 {
			j.no(ruleCardNodes, "%d nodes /dev/nvidia… are not one card", count["/dev/nvidia"])
		}
	}
}

// cleanPath reports whether a path is absolute, clean and printable.
func cleanPath(p string) bool {
	return short(p) && p != "/" && path.IsAbs(p) && path.Clean(p) == p
}
