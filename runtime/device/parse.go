//go:build linux

package device

import (
	"errors"
	"fmt"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	cdispecs "tags.cncf.io/container-device-interface/specs-go"
)

// Bounds of one description. NVIDIA's of eight cards with all slices takes 200 KiB.
const (
	maxSpecBytes   = 1 << 20
	maxDevices     = 512 // names of devices
	maxNodes       = 128 // in one set of edits, as the rest
	maxMounts      = 256
	maxHooks       = 32
	maxHookArgs    = 1024
	maxEnv         = 32
	maxGroups      = 16
	maxStringBytes = 4096
)

// decode reads a description, JSON or YAML, and checks all that can be said without knowing what it means. Unknown fields
// and repeated keys are errors.
func decode(raw []byte) (*cdispecs.Spec, *Problem) {
	no := func(rule, format string, args ...any) (*cdispecs.Spec, *Problem) {
		return nil, &Problem{Rule: rule, Reason: fmt.Sprintf(format, args...)}
	}
	if len(raw) > maxSpecBytes {
		return no(ruleBounds, "the description takes %d bytes, more than %d", len(raw), maxSpecBytes)
	}
	spec, err := cdi.ParseSpec(raw)
	if err != nil {
		return no(ruleFormat, "%.200q", err.Error())
	}
	if spec == nil {
		return no(ruleFormat, "the description is empty")
	}
	if n := len(spec.Devices); n > maxDevices {
		return no(ruleBounds, "%d devices are more than %d", n, maxDevices)
	}
	all := []*cdispecs.ContainerEdits{&spec.ContainerEdits}
	for i := range spec.Devices {
		all = append(all, &spec.Devices[i].ContainerEdits)
	}
	for _, e := range all {
		if err := bounded(e); err != nil {
			return no(ruleBounds, "%s", err)
		}
		if hasNull(e) {
			return no(ruleFormat, "an entry of a list is null")
		}
		if err := (&cdi.ContainerEdits{ContainerEdits: e}).Validate(); err != nil {
			return no(ruleFormat, "%.200q", err.Error())
		}
	}
	if err := cdispecs.ValidateVersion(spec); err != nil {
		return no(ruleVersion, "%.200q", err.Error())
	}
	return spec, nil
}

func bounded(e *cdispecs.ContainerEdits) error {
	for _, l := range []struct {
		what      string
		have, max int
	}{
		{"device nodes", len(e.DeviceNodes), maxNodes},
		{"mounts", len(e.Mounts), maxMounts},
		{"hooks", len(e.Hooks), maxHooks},
		{"variables", len(e.Env), maxEnv},
		{"groups", len(e.AdditionalGIDs), maxGroups},
	} {
		if l.have > l.max {
			return fmt.Errorf("%d %s are more than %d", l.have, l.what, l.max)
		}
	}
	for _, h := range e.Hooks {
		if h == nil {
			continue
		}
		if len(h.Args) > maxHookArgs || len(h.Env) > maxEnv {
			return fmt.Errorf("a hook has %d arguments and %d variables: more than %d and %d", len(h.Args), len(h.Env), maxHookArgs, maxEnv)
		}
		if !short(h.Args...) {
			return errors.New("an argument of a hook is too long or holds a control character")
		}
	}
	if !short(e.Env...) {
		return errors.New("a variable is too long or holds a control character")
	}
	return nil
}

func hasNull(e *cdispecs.ContainerEdits) bool {
	for _, v := range e.DeviceNodes {
		if v == nil {
			return true
		}
	}
	for _, v := range e.Mounts {
		if v == nil {
			return true
		}
	}
	for _, v := range e.Hooks {
		if v == nil {
			return true
		}
	}
	for _, v := range e.NetDevices {
		if v == nil {
			return true
		}
	}
	return false
}

// short reports whether all strings are short and free of control characters.
func short(all ...string) bool {
	for _, s := range all {
		if len(s) > maxStringBytes || strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) >= 0 {
			return false
		}
	}
	return true
}
