//go:build linux && cgo

package nvidia

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	nv "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi"
	"github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi/spec"
	"tags.cncf.io/container-device-interface/specs-go"
)

// maxSlices is how many MIG slices a card can have at most.
const maxSlices = 16

// makeSpecs has nvcdi describe the cards. Unlike this package, nvcdi calls functions of the driver's library without looking
// whether they are there; one that is not ends the process.
func makeSpecs(o specsOrder) shotReply {
	lib, err := openLibrary(o.Library, o.Deny)
	if err != nil {
		return shotReply{Code: codeNoDriver, Text: printable(err.Error(), maxText)}
	}
	log := new(journal)
	r := shotReply{}
	s, err := describeAll(lib, o, log, &r)
	r.Notes, r.Lacks = log.notes, log.lacks
	if err == nil {
		var text []byte
		if text, err = json.Marshal(s); err == nil {
			r.Specs = []json.RawMessage{text}
		}
	}
	if err != nil {
		bad := failed(err)
		bad.Notes, bad.Lacks = r.Notes, r.Lacks
		return bad
	}
	return r
}

// describeAll makes one spec. A card that cannot be described hides no other.
func describeAll(lib *library, o specsOrder, log *journal, r *shotReply) (*specs.Spec, error) {
	uuids, sliced := containable(lib, log)
	r.Sliced = sliced
	gen, err := nvcdi.New(options(lib, o, log)...)
	if err != nil {
		return nil, fmt.Errorf("start nvcdi: %w", err)
	}
	var devices []specs.Device
	for _, uuid := range uuids {
		found, err := gen.GetDeviceSpecsByID(uuid)
		switch {
		case err != nil:
			log.lack("%s: %v", uuid, err)
		case len(found) != 1 || found[0].Name != uuid:
			log.lack("%s: nvcdi describes something else", uuid)
		case !hasNode(found[0].ContainerEdits, "/dev/nvidia"):
			log.lack("%s: it has no node in /dev", uuid)
		default:
			devices = append(devices, found[0])
		}
	}
	if len(devices) == 0 {
		return nil, unsupported("no card can be given to a container")
	}
	common, err := gen.GetCommonEdits()
	if err != nil {
		return nil, fmt.Errorf("find the driver's files: %w", err)
	}
	s, err := spec.New(spec.WithVendor("nvidia.com"), spec.WithClass("gpu"), spec.WithDeviceSpecs(devices),
		spec.WithEdits(*common.ContainerEdits))
	if err != nil {
		return nil, fmt.Errorf("put a spec together: %w", err)
	}
	return tidy(s.Raw(), log)
}

func options(lib *library, o specsOrder, log *journal) []nvcdi.Option {
	root := "/"
	if o.DriverRoot != "" {
		root = o.DriverRoot
	}
	byUUID, _ := nvcdi.NewDeviceNamer(nvcdi.DeviceNameStrategyUUID) // a name that it knows
	opts := []nvcdi.Option{
		nvcdi.WithMode(nvcdi.ModeNvml), nvcdi.WithNvmlLib(lib.api), nvcdi.WithLogger(log), nvcdi.WithDeviceNamers(byUUID),
		nvcdi.WithDriverRoot(root), nvcdi.WithDevRoot(o.DevRoot), nvcdi.WithLibrarySearchPaths(o.Paths),
		// Another library of the driver's, which can end the process as this one can, and sockets of services of the host's.
		nvcdi.WithFeatureFlags(nvcdi.FeatureDisableNvsandboxUtils, nvcdi.FeatureDisableIPCDiscoverer),
		nvcdi.WithDisabledHooks(nvcdi.AllHooks),
	}
	if o.Hook != "" {
		// enable-cuda-compat, which let a job's own files into a program of root's (CVE-2025-23266), and hooks that need more
		// than the container's folders stay out.
		opts = append(opts, nvcdi.WithNVIDIACDIHookPath(o.Hook),
			nvcdi.WithEnabledHooks(nvcdi.CreateSymlinksHook, nvcdi.UpdateLDCacheHook))
	}
	return opts
}

// containable lists the UUIDs of what a container can be given, and says whether a card is divided.
func containable(lib *library, log *journal) (uuids []string, sliced bool) {
	n, _ := ask(&probe{lib: lib}, "DeviceGetCount", lib.api.DeviceGetCount).Get()
	for i := range min(max(n, 0), maxCards) {
		p := &probe{lib: lib}
		dev, ok := ask(p, "DeviceGetHandleByIndex", func() (nv.Device, nv.Return) {
			return lib.api.DeviceGetHandleByIndex(i)
		}).Get()
		switch {
		case p.lost: // the parent knows
			continue
		case !ok:
			log.lack("card %d does not answer", i)
			continue
		}
		mode, _ := ask(p, "GetMigMode", func() (int, nv.Return) {
			now, _, ret := dev.GetMigMode()
			return now, ret
		}).Get()
		if mode == nv.DEVICE_MIG_ENABLE {
			sliced = true
			uuids = append(uuids, slicesOf(p, dev)...)
			continue
		}
		uuid, _ := ask(p, "GetUUID", dev.GetUUID).Get()
		if !isDevice(uuid) || slices.Contains(uuids, uuid) {
			log.lack("card %d is named %.96q", i, uuid)
			continue
		}
		uuids = append(uuids, uuid)
	}
	return uuids, sliced
}

// slicesOf lists the UUIDs of a card's slices.
func slicesOf(p *probe, card nv.Device) []string {
	n, _ := ask(p, "GetMaxMigDeviceCount", card.GetMaxMigDeviceCount).Get()
	var uuids []string
	for i := range min(max(n, 0), maxSlices) {
		slice, ok := ask(p, "GetMigDeviceHandleByIndex", func() (nv.Device, nv.Return) {
			return card.GetMigDeviceHandleByIndex(i)
		}).Get()
		if !ok {
			continue // fewer than there could be
		}
		if uuid, ok := ask(p, "GetUUID", slice.GetUUID).Get(); ok && isSlice(uuid) && isDevice(uuid) {
			uuids = append(uuids, uuid)
		}
	}
	return uuids
}

// tidy takes out of a spec what its user sets better, and notes which nodes are missing.
func tidy(s *specs.Spec, log *journal) (*specs.Spec, error) {
	for _, path := range []string{"/dev/nvidiactl", "/dev/nvidia-uvm"} {
		if !hasNode(s.ContainerEdits, path) {
			log.lack("the node %s is not there: run nvidia-modprobe -u -c 0", path)
		}
	}
	s.ContainerEdits.Env = nil // NVIDIA_VISIBLE_DEVICES=void and the folder of libcuda, which only hooks of others read
	s.ContainerEdits.Mounts = slices.DeleteFunc(s.ContainerEdits.Mounts, func(m *specs.Mount) bool {
		return m.HostPath == "/dev/null" // over a folder that another runtime looks into
	})
	edits := []*specs.ContainerEdits{&s.ContainerEdits}
	for i := range s.Devices {
		edits = append(edits, &s.Devices[i].ContainerEdits)
	}
	for _, e := range edits {
		for _, n := range e.DeviceNodes {
			// The numbers of a module's nodes can change with every start of the machine.
			n.Type, n.Major, n.Minor, n.Permissions = "", 0, 0, "rw"
		}
	}
	version, err := specs.MinimumRequiredVersion(s)
	if err != nil {
		return nil, fmt.Errorf("find the spec's version: %w", err)
	}
	s.Version = version
	return s, nil
}

// hasNode reports whether a node is given that has the path, or the path and a number.
func hasNode(e specs.ContainerEdits, path string) bool {
	return slices.ContainsFunc(e.DeviceNodes, func(n *specs.DeviceNode) bool {
		rest, ok := strings.CutPrefix(n.Path, path)
		return ok && strings.Trim(rest, "0123456789") == ""
	})
}

// journal keeps what nvcdi says, and what is missing. nvcdi warns of every file that a driver may have and this one has not.
type journal struct{ notes, lacks []string }

func (j *journal) lack(format string, args ...any) { j.lacks = written(j.lacks, format, args) }

// Debugf is for nvcdi, which tells every step.
func (j *journal) Debugf(string, ...any) {}

// Tracef is for nvcdi, which tells every step.
func (j *journal) Tracef(string, ...any) {}

// Infof is for nvcdi, which tells every file that it found.
func (j *journal) Infof(string, ...any) {}

// Warningf is for nvcdi.
func (j *journal) Warningf(format string, args ...any) { j.notes = written(j.notes, format, args) }

// Errorf is for nvcdi.
func (j *journal) Errorf(format string, args ...any) { j.notes = written(j.notes, format, args) }

// written adds a line, as long as there are few.
func written(lines []string, format string, args []any) []string {
	if len(lines) == maxNotes {
		return lines
	}
	return append(lines, printable(fmt.Sprintf(format, args...), maxText))
}
