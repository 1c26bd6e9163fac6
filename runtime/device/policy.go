//go:build linux

package device

import (
	"fmt"
	"slices"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/parser"
	cdispecs "tags.cncf.io/container-device-interface/specs-go"

	"haggle/runtime"
)

// Rules of the policy, as Problem.Rule names them.
const (
	ruleFormat      = "format"       // no description at all
	ruleVersion     = "version"      // of CDI, unknown or too old for what is asked
	ruleBounds      = "bounds"       // too much of something
	ruleKind        = "kind"         // vendor and class
	ruleName        = "name"         // of a device
	ruleOther       = "unknown-edit" // network interfaces, cache allocation
	ruleGroups      = "groups"       // other than those of the nodes
	ruleEnv         = "environment"
	ruleNodePath    = "node-path"
	ruleNodeHost    = "node-host-path"
	ruleNodeType    = "node-type"
	ruleNodeAccess  = "node-permissions"
	ruleNodeNumber  = "node-number"
	ruleNodeDenied  = "node-forbidden"
	ruleNodeUnknown = "node-unknown"
	ruleNodeShared  = "node-shared" // a card in the hands of more than one name
	ruleCardNodes   = "card-nodes"  // a card without, or with more than its own
	ruleSource      = "mount-source"
	ruleTarget      = "mount-target"
	ruleOptions     = "mount-options"
	ruleMountType   = "mount-type"
	ruleProgram     = "hook-program"
	ruleStage       = "hook-stage"
	ruleCommand     = "hook-command"
	ruleArgs        = "hook-arguments"
	ruleConflict    = "conflict" // two descriptions of one name
	ruleMissing     = "missing"  // what the description names is not there
	ruleAccess      = "access"   // the job could not open it
	ruleFile        = "file"     // the file of the description itself
)

// Problem is one thing that a description asks for and does not get.
type Problem struct {
	// Device is the name of the device in the description; empty when the problem is one of all its devices.
	Device string
	// Rule is the short name of the rule that is broken. It stays the same over versions.
	Rule string
	// Reason is a sentence about it. What it repeats of the description is quoted.
	Reason string
}

func (p Problem) String() string {
	if p.Device == "" {
		return p.Rule + ": " + p.Reason
	}
	return fmt.Sprintf("%q: %s: %s", p.Device, p.Rule, p.Reason)
}

// Check judges one description, JSON or YAML, by the default policy and without looking at this machine. It returns every
// problem; none means that the description can pass on a machine that has all that it names. Any bytes may be given.
func Check(raw []byte) []Problem {
	_, problems := policy{programs: defaultPrograms()}.judge(raw)
	return problems
}

// policy is what descriptions may ask for.
type policy struct {
	nodes, sources, programs []string
	off                      map[string]bool // protections left out
}

// description is what remains of one that was judged: nothing but what passes.
type description struct {
	kind    string
	common  edits
	devices []described
}

// described is one device of a description.
type described struct {
	name     string
	edits    edits
	problems []Problem // of this device; it cannot be used if there are any
}

// edits are what a job gets.
type edits struct {
	env     []string
	nodes   []nodeWant
	mounts  []mountWant
	links   []link
	hooks   []hookWant
	leftOut []string // in words
}

// judge returns what passes and every problem. The description means nothing when a problem without a device is among them.
func (p policy) judge(raw []byte) (description, []Problem) {
	spec, problem := decode(raw)
	if problem != nil {
		return description{}, []Problem{*problem}
	}
	j := &judge{policy: p, kind: spec.Kind}
	j.checkKind()
	d := description{kind: spec.Kind, common: j.edits(&spec.ContainerEdits)}
	problems := j.problems
	seen := make(map[string]bool)
	for i := range spec.Devices {
		dev := &spec.Devices[i]
		j.device, j.problems = dev.Name, nil
		if seen[dev.Name] {
			j.problems = append(j.problems, Problem{Rule: ruleName, Reason: fmt.Sprintf("device %.100q is there twice", dev.Name)})
		} else if err := parser.ValidateDeviceName(dev.Name); err != nil || len(dev.Name) > 128 {
			j.no(ruleName, "%.100q is no name of a device", dev.Name)
		}
		seen[dev.Name] = true
		one := described{name: dev.Name, edits: j.edits(&dev.ContainerEdits)}
		j.checkCard(one)
		one.problems = j.problems
		d.devices = append(d.devices, one)
		problems = append(problems, j.problems...)
	}
	if len(spec.Devices) == 0 {
		problems = append(problems, Problem{Rule: ruleFormat, Reason: "no device is described"})
	}
	return d, problems
}

// judge goes through one description.
type judge struct {
	policy
	kind     string
	device   string // empty: of the edits of all devices
	problems []Problem
}

func (j *judge) no(rule, format string, args ...any) {
	j.problems = append(j.problems, Problem{Device: j.device, Rule: rule, Reason: fmt.Sprintf(format, args...)})
}

func (j *judge) vendor() string {
	vendor, _ := parser.ParseQualifier(j.kind)
	return vendor
}

func (j *judge) checkKind() {
	vendor, class := parser.ParseQualifier(j.kind)
	if parser.ValidateVendorName(vendor) != nil || parser.ValidateClassName(class) != nil || len(j.kind) > 128 ||
		strings.ToLower(j.kind) != j.kind {
		j.no(ruleKind, "%.100q is no kind of device", j.kind)
	}
	simulated, _ := parser.ParseQualifier(runtime.SimulatedGPU)
	if vendor == simulated {
		j.no(ruleKind, "%s names cards that do not exist, so it has no files", vendor)
	}
}

// edits judges one set of edits and returns what passes of it.
func (j *judge) edits(e *cdispecs.ContainerEdits) edits {
	var out edits
	if len(e.NetDevices) > 0 {
		j.no(ruleOther, "the machine's network interface %.100q would move into the job", e.NetDevices[0].HostInterfaceName)
	}
	if e.IntelRdt != nil {
		j.no(ruleOther, "the processor's caches would be divided anew (intelRdt)")
	}
	j.env(e.Env, &out)
	for _, n := range e.DeviceNodes {
		j.node(n, &out)
	}
	for _, g := range e.AdditionalGIDs {
		own := slices.ContainsFunc(e.DeviceNodes, func(n *cdispecs.DeviceNode) bool { return n.GID != nil && *n.GID == g })
		if (g == 0 || !own) && !j.off[ProtectNodes] {
			j.no(ruleGroups, "group %d is not that of a node beside it", g)
		}
	}
	for _, m := range e.Mounts {
		j.mount(m, &out)
	}
	for _, h := range e.Hooks {
		j.hook(h, &out)
	}
	return out
}

// env takes variables for programs in the job that know the card. The loader's, the shell's and what the engine itself
// states are not a description's to set.
func (j *judge) env(all []string, out *edits) {
	for _, v := range all {
		key, _, ok := strings.Cut(v, "=")
		switch {
		case j.off[ProtectEnv]:
			out.env = append(out.env, v)
		case key == "NVIDIA_CTK_LIBCUDA_DIR", v == voidCards:
			out.leftOut = append(out.leftOut, "variable "+key)
		case !ok || !variableName(key):
			j.no(ruleEnv, "%.100q is no variable", v)
		case reserved(key):
			j.no(ruleEnv, "a description of a card may not set %.100q", key)
		default:
			out.env = append(out.env, v)
		}
	}
}

// voidCards keeps a vendor's wrapper on the machine from adding cards by itself.
const voidCards = "NVIDIA_VISIBLE_DEVICES=void"

func variableName(s string) bool {
	return s != "" && len(s) <= 128 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && (s[0] < '0' || s[0] > '9')
}

func reserved(key string) bool {
	for _, prefix := range []string{"LD_", "NVIDIA_", "HAGGLE_", "GLIBC_", "MALLOC_", "BASH_", "PYTHON", "PERL", "RUBY", "NODE_", "GIT_"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"PATH", "HOME", "USER", "SHELL", "ENV", "IFS", "TERM", "TMPDIR", "PWD", "LOCPATH", "GCONV_PATH", "NLSPATH", "HOSTALIASES",
	}, key)
}
