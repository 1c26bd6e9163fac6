package nvidia

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// NoHooks is the CDIConfig.Hook of CDI specs without hooks.
const NoHooks = "none"

// specKind is the vendor and class of every device in a spec.
const specKind = "nvidia.com/gpu"

// CDIConfig says where Specs looks for the driver's files. The zero CDIConfig is right where the driver is installed in the
// machine's own root.
type CDIConfig struct {
	// Hook is the path of NVIDIA's program for CDI hooks. "" is the first of HookPrograms that exists; where there is none, and
	// with NoHooks, the specs have no hooks, and whoever uses them makes the libraries known to the linker by itself.
	Hook string
	// DriverRoot and DevRoot are the folders below which the driver's files, and /dev, are; "" is the machine's root.
	DriverRoot, DevRoot string
	// LibraryPaths are folders with the driver's libraries, at most 16, where they are not in a usual place; they replace those.
	LibraryPaths []string
}

// HookPrograms is where NVIDIA's program for CDI hooks is looked for.
func HookPrograms() []string {
	return []string{
		"/usr/bin/nvidia-cdi-hook", "/usr/local/bin/nvidia-cdi-hook", "/usr/local/nvidia/toolkit/nvidia-cdi-hook",
	}
}

func (c CDIConfig) validate() error {
	paths := append([]string{c.DriverRoot, c.DevRoot}, c.LibraryPaths...)
	if c.Hook != NoHooks {
		paths = append(paths, c.Hook)
	}
	if len(c.LibraryPaths) > maxPaths {
		return fmt.Errorf("%d folders of libraries, want at most %d", len(c.LibraryPaths), maxPaths)
	}
	for _, p := range paths {
		if p != "" && !filepath.IsAbs(p) || len(p) > maxPath {
			return fmt.Errorf("%.96q is not a whole path", p)
		}
	}
	return nil
}

// specsOrder tells a child how to make CDI specs.
type specsOrder struct {
	Version    int      `json:"version"`
	Library    string   `json:"library"`
	Deny       []string `json:"deny,omitempty"`
	Hook       string   `json:"hook,omitempty"` // "" for none
	DriverRoot string   `json:"driver_root"`
	DevRoot    string   `json:"dev_root"`
	Paths      []string `json:"paths,omitempty"`
}

// specsKept is the specs that were made last, and what they were made for.
type specsKept struct {
	made  string
	specs [][]byte
}

// Specs returns CDI specs in JSON of all cards and MIG slices that a container can be given: at most 16 of at most 1 MiB, with
// devices of the kind nvidia.com/gpu that are named by their UUID alone. A whole card in MIG mode is not among them. They are
// made by NVIDIA's nvcdi in a child of its own, within Config.SpecsTimeout, and kept until the driver's version or the list of
// cards changes; they are not kept while a card is in MIG mode, since slices come and go without a sign, nor while something is
// missing that may still come. What is missing stands in the log.
//
// Devices carry no numbers of their nodes, which may differ after a restart: whoever injects them asks the node. Hooks are
// create-symlinks and update-ldcache alone. What nvcdi would set to keep another runtime from adding cards, and sockets of the
// host's services, are left out.
//
// It returns nvml.ErrUnsupported when the driver's library is too old for nvcdi or no card has a node in /dev, nvml.ErrNoDriver
// without a driver and nvml.ErrTimeout when a card hangs.
func (d *Driver) Specs(ctx context.Context) ([][]byte, error) {
	specs, err := d.makeSpecs(ctx)
	if err != nil {
		return nil, fmt.Errorf("make CDI specs: %w", err)
	}
	return specs, nil
}

func (d *Driver) makeSpecs(ctx context.Context) ([][]byte, error) {
	r, err := d.ask(ctx, request{Op: opList})
	if err == nil && r.List == nil {
		err = errors.New("the child process answered without a list")
	}
	if err != nil {
		return nil, err
	}
	d.enrol(r.List)
	state := d.specsState(r.List)
	d.mu.Lock()
	kept, denied := d.specs, slices.Clone(d.denied)
	d.mu.Unlock()
	if kept.made == state {
		return cloned(kept.specs), nil
	}
	c := d.cfg.CDI
	order := specsOrder{
		Version: protocolVersion, Library: d.cfg.Library, Deny: denied, Hook: c.hook(), DriverRoot: c.DriverRoot,
		DevRoot: c.DevRoot, Paths: c.LibraryPaths,
	}
	a, err := d.shot(ctx, opSpecs, request{Op: opSpecs, Specs: &order}, nil, d.cfg.SpecsTimeout)
	for _, note := range a.Notes {
		d.cfg.Log.Debug("nvcdi", slog.String("says", printable(note, maxText)))
	}
	for _, lack := range a.Lacks {
		d.cfg.Log.Warn("cards are not wholly described for containers", slog.String("lacks", printable(lack, maxText)))
	}
	if err != nil {
		return nil, err
	}
	if len(a.Specs) == 0 {
		return nil, errors.New("the child process answered without a spec")
	}
	specs := make([][]byte, len(a.Specs))
	for i, s := range a.Specs {
		specs[i] = s
		if err := checkSpec(s); err != nil {
			return nil, err
		}
	}
	if len(a.Lacks) == 0 && !a.Sliced {
		d.mu.Lock()
		d.specs = specsKept{made: state, specs: cloned(specs)}
		d.mu.Unlock()
	}
	return specs, nil
}

// hook is the program for hooks, or "" for none.
func (c CDIConfig) hook() string {
	switch c.Hook {
	case NoHooks:
		return ""
	case "":
		for _, path := range HookPrograms() {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	return c.Hook
}

// specsState is what the specs depend on.
func (d *Driver) specsState(l *listing) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	state := []string{d.info.Version}
	for _, uuid := range l.UUIDs {
		if p := d.patients[uuid]; p != nil && !p.lost {
			state = append(state, uuid)
		}
	}
	return strings.Join(state, "\n")
}

func cloned(specs [][]byte) [][]byte {
	out := make([][]byte, len(specs))
	for i, s := range specs {
		out[i] = slices.Clone(s)
	}
	return out
}

// checkSpec refuses a spec of another kind and one with devices that are not named by UUID.
func checkSpec(text []byte) error {
	var s struct {
		Kind    string `json:"kind"`
		Devices []struct {
			Name string `json:"name"`
		} `json:"devices"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("read a spec: %w", err)
	}
	if s.Kind != specKind || len(s.Devices) == 0 {
		return fmt.Errorf("a spec of the kind %.32q with %d devices", s.Kind, len(s.Devices))
	}
	for _, d := range s.Devices {
		if !isDevice(d.Name) {
			return fmt.Errorf("a device named %.96q", d.Name)
		}
	}
	return nil
}

// isDevice reports whether a name is the UUID of a card or of a slice, in letters, digits and dashes.
func isDevice(name string) bool {
	if len(name) > maxUUID || !strings.HasPrefix(name, "GPU-") && !isSlice(name) {
		return false
	}
	return strings.Trim(name[len("GPU-"):], "0123456789abcdefABCDEF-") == "" && len(name) > len("GPU-")
}

// isSlice reports whether a UUID is that of a MIG slice.
func isSlice(uuid string) bool { return strings.HasPrefix(uuid, "MIG-") }
