//go:build linux

package device

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
)

// fault is why a card does not reach a job on this machine now.
type fault struct {
	class error // runtime.ErrNoDevice or runtime.ErrPolicy
	Problem
}

func (f *fault) err(id runtime.DeviceID) error {
	return fmt.Errorf("%w: %s %s: %s: %s", f.class, id.Class, id.UUID, f.Rule, f.Reason)
}

// owners says which groups of the machine a job can be in.
type owners struct {
	userns bool                                  // the job has a user namespace
	inside func(gid uint32) (id uint32, ok bool) // what a group of the machine is called in it
}

// ownersOf reads them from what runc is told of the job.
func ownersOf(s *specs.Spec) owners {
	userns := func(n specs.LinuxNamespace) bool { return n.Type == specs.UserNamespace }
	if s.Linux == nil || !slices.ContainsFunc(s.Linux.Namespaces, userns) {
		return owners{inside: func(gid uint32) (uint32, bool) { return gid, true }}
	}
	return owners{userns: true, inside: func(gid uint32) (uint32, bool) {
		for _, m := range s.Linux.GIDMappings {
			if gid >= m.HostID && gid-m.HostID < m.Size {
				return m.ContainerID + gid - m.HostID, true
			}
		}
		return 0, false
	}}
}

// expected is what the engine is said to give a job.
func (d *Devices) expected() owners {
	return owners{userns: true, inside: func(gid uint32) (uint32, bool) { return gid, slices.Contains(d.cfg.Groups, gid) }}
}

// nodeGrant is a node as a job gets it.
type nodeGrant struct {
	path   string
	node   node
	gid    uint32 // as the job calls it
	access string
}

// grant is what one or more cards bring to a job.
type grant struct {
	env    []string
	nodes  []nodeGrant
	groups []uint32 // as the job calls them
	mounts []mountWant
	links  []link
	hooks  []hookWant
}

// resolve adds to g what a card needs, all of it looked up on the machine.
func (d *Devices) resolve(c *card, in owners, g *grant) *fault {
	if c.refused != nil {
		return &fault{runtime.ErrPolicy, *c.refused}
	}
	for _, e := range []edits{c.common, c.own} {
		for _, v := range e.env {
			if !slices.Contains(g.env, v) {
				g.env = append(g.env, v)
			}
		}
		for _, n := range e.nodes {
			if f := d.resolveNode(n, in, g); f != nil {
				return f
			}
		}
		for _, m := range e.mounts {
			if f := d.resolveMount(m, g); f != nil {
				return f
			}
		}
		g.links = append(g.links, e.links...)
		if f := d.resolveHooks(e.hooks, g); f != nil {
			return f
		}
	}
	return nil
}

func no(class error, rule, format string, args ...any) *fault {
	return &fault{class, Problem{Rule: rule, Reason: fmt.Sprintf(format, args...)}}
}

func (d *Devices) resolveNode(want nodeWant, in owners, g *grant) *fault {
	if slices.ContainsFunc(g.nodes, func(have nodeGrant) bool { return have.path == want.path }) {
		return nil
	}
	n, err := d.machine.node(want.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return no(runtime.ErrNoDevice, ruleMissing, "there is no %s: is the driver loaded?", want.path)
	case errors.Is(err, errLink):
		return no(runtime.ErrPolicy, ruleNodePath, "%s: %v", want.path, err)
	case errors.Is(err, errNoChar):
		return no(runtime.ErrPolicy, ruleNodeType, "%s: %v", want.path, err)
	case err != nil:
		return no(runtime.ErrNoDevice, ruleMissing, "%s: %v", want.path, err)
	}
	if !d.policy.off[ProtectNodes] {
		if (want.major != 0 || want.minor != 0) && (want.major != int64(n.major) || want.minor != int64(n.minor)) {
			return no(runtime.ErrPolicy, ruleNodeNumber, "%s is described as %d:%d and is %d:%d: the description is old or wrong",
				want.path, want.major, want.minor, n.major, n.minor)
		}
		if deniedNumber(n.major, n.minor) {
			return no(runtime.ErrPolicy, ruleNodeDenied, "%s is %d:%d, a device of the machine itself", want.path, n.major, n.minor)
		}
		if f := join(want, n, in, g); f != nil {
			return f
		}
	}
	gid, _ := in.inside(n.gid)
	g.nodes = append(g.nodes, nodeGrant{want.path, n, gid, want.access})
	return nil
}

// join sees to it that the job may open a node by its mode, through a group if need be.
func join(want nodeWant, n node, in owners, g *grant) *fault {
	need := fs.FileMode(0)
	for _, c := range want.access {
		need |= map[rune]fs.FileMode{'r': 4, 'w': 2}[c]
	}
	if want.role == roleSlice {
		need = 4 // Drivers open these for reading, and make them 0444.
	}
	if n.mode&need == need {
		return nil
	}
	id, mapped := in.inside(n.gid)
	if n.mode>>3&need == need && mapped && n.gid != 0 {
		if !slices.Contains(g.groups, id) {
			g.groups = append(g.groups, id)
		}
		return nil
	}
	if !in.userns {
		return nil // The job's root is root.
	}
	return no(runtime.ErrPolicy, ruleAccess,
		"%s is %04o of group %d, so that jobs cannot open it: a udev rule KERNEL==%q, MODE=\"0666\" changes that",
		want.path, uint32(n.mode), n.gid, path.Base(want.path))
}

func (d *Devices) resolveMount(want mountWant, g *grant) *fault {
	if slices.ContainsFunc(g.mounts, func(have mountWant) bool { return have.target == want.target }) {
		return nil
	}
	if !d.policy.off[ProtectMounts] {
		s, err := d.machine.source(want.source)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return no(runtime.ErrNoDevice, ruleMissing, "there is no %s: the description is older than the driver, make it anew", want.source)
		case err != nil:
			return no(runtime.ErrPolicy, ruleSource, "%v", err)
		case !d.policy.mayShow(s.path):
			return no(runtime.ErrPolicy, ruleSource, "%s is really %s, which is in no place of libraries", want.source, s.path)
		case s.folder && !d.policy.mayShowFolder(s.path):
			return no(runtime.ErrPolicy, ruleSource, "%s is a whole folder", want.source)
		case s.mode&0o004 == 0:
			return no(runtime.ErrPolicy, ruleSource, "not everybody on the machine may read %s", want.source)
		}
		want.source = s.path
	}
	g.mounts = append(g.mounts, want)
	return nil
}

func (d *Devices) resolveHooks(hooks []hookWant, g *grant) *fault {
	if d.cfg.Mode != WithHooks {
		return nil
	}
	for _, h := range hooks {
		if !d.policy.off[ProtectHooks] {
			if err := d.machine.program(h.program); err != nil {
				return no(runtime.ErrPolicy, ruleProgram, "%v", err)
			}
		}
		same := func(have hookWant) bool { return have.program == h.program && slices.Equal(have.args, h.args) }
		if !slices.ContainsFunc(g.hooks, same) {
			g.hooks = append(g.hooks, h)
		}
	}
	return nil
}

// List returns the cards that a job could get now, in the order of their ids.
func (d *Devices) List() []runtime.DeviceID {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fresh()
	var out []runtime.DeviceID
	for _, c := range d.sorted() {
		if d.resolve(c, d.expected(), &grant{}) == nil {
			out = append(out, c.id)
		}
	}
	return out
}

// Refusals returns what is described and reaches no job now, with the reasons. Devices that are only left unnamed ("0", "all")
// are not among them.
func (d *Devices) Refusals() []Refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fresh()
	out := slices.Clone(d.faults)
	for _, c := range d.sorted() {
		if c.refused != nil {
			continue // stands there already
		}
		if f := d.resolve(c, d.expected(), &grant{}); f != nil {
			out = append(out, c.refusal(f.Problem))
		}
	}
	slices.SortStableFunc(out, compareRefusals)
	return out
}

// Overlap reports whether two devices must not be leased apart: one device, a card and a slice of it, or slices that share
// memory. Of devices that are not described it knows only whether they are one.
func (d *Devices) Overlap(a, b runtime.DeviceID) bool {
	if a == b {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fresh()
	x, y := d.cards[a], d.cards[b]
	if x == nil || y == nil {
		return false
	}
	if x.isSlice() && y.isSlice() {
		return meet(x.nodes(roleSlice), y.nodes(roleSlice))
	}
	return meet(x.nodes(roleCard), y.nodes(roleCard))
}

// meet reports whether two sets have something in common.
func meet(a, b map[string]bool) bool {
	for p := range a {
		if b[p] {
			return true
		}
	}
	return false
}
