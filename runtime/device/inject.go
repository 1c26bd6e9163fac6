//go:build linux

package device

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
)

// Inject adds devices to what runc is told of a job. It comes last, because it needs the job's user namespace and the whole
// environment to be there. Simulated cards are passed over. Files that changed are read again, the driver is not asked.
//
// It is all or nothing: s is unchanged after an error, which is runtime.ErrNoDevice when the machine has no such card or no
// valid description of it, or runtime.ErrPolicy with the reason.
func (d *Devices) Inject(s *specs.Spec, ids []runtime.DeviceID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fresh()
	in := ownersOf(s)
	var g grant
	var cards []*card
	for _, id := range ids {
		if id.Class == runtime.SimulatedGPU {
			continue
		}
		c := d.cards[id]
		if c == nil {
			return d.unknown(id)
		}
		if f := d.resolve(c, in, &g); f != nil {
			return f.err(id)
		}
		if f := d.together(c, cards); f != nil {
			return f.err(id)
		}
		cards = append(cards, c)
	}
	if len(cards) == 0 {
		return nil
	}
	if d.cfg.Mode == Hookless {
		d.gather(&g)
	}
	apply(s, g, d.policy.off[ProtectHookEnv])
	return nil
}

// unknown says why there is no such card. A description that was refused as a whole may have named it.
func (d *Devices) unknown(id runtime.DeviceID) error {
	for _, r := range d.faults {
		if r.Kind == id.Class && r.Device == "" {
			return fmt.Errorf("%w: %s %s: %s: %s: %s", runtime.ErrPolicy, id.Class, id.UUID, r.Source, r.Rule, r.Reason)
		}
	}
	return fmt.Errorf("%w: %s %s: no description of it was found", runtime.ErrNoDevice, id.Class, id.UUID)
}

// together refuses a slice with its whole card in one job: the job would hold the rest of the card unpaid, or unleased.
func (d *Devices) together(c *card, others []*card) *fault {
	if d.policy.off[ProtectSlices] {
		return nil
	}
	for _, o := range others {
		if o.isSlice() != c.isSlice() && meet(o.nodes(roleCard), c.nodes(roleCard)) {
			return no(runtime.ErrPolicy, ruleNodeShared, "it is, or has, a slice of %s in the same job", o.id.UUID)
		}
	}
	return nil
}

// gather moves libraries into LibraryDir, under every name by which programs ask for them: a stand-in for the links and the
// loader's cache that hooks would make.
func (d *Devices) gather(g *grant) {
	var rest, libraries []mountWant
	sources := make(map[string]mountWant) // by name in LibraryDir
	put := func(name string, m mountWant) {
		if _, taken := sources[name]; taken || !isLibrary(name) {
			return
		}
		sources[name] = m
		libraries = append(libraries, mountWant{m.source, path.Join(LibraryDir, name), m.options})
	}
	for _, m := range g.mounts {
		if !isLibrary(path.Base(m.target)) {
			rest = append(rest, m)
			continue
		}
		soname, native := d.machine.library(m.source)
		if !native {
			continue // For programs of another architecture, which find theirs by the same names.
		}
		put(path.Base(m.target), m)
		put(soname, m)
	}
	// A link may lead to a link, libcuda.so to libcuda.so.1: in any order, so that it is found within three rounds.
	for range 3 {
		for _, l := range g.links {
			if m, ok := sources[path.Base(l.target)]; ok {
				put(path.Base(l.path), m)
			}
		}
	}
	g.mounts = slices.Concat(rest, libraries)
}

func isLibrary(name string) bool {
	ok, _ := path.Match("lib?*.so*", name)
	return ok && !strings.Contains(name, "/") && len(name) <= 255 && short(name)
}

// apply writes the grant into the spec. Nothing can fail any more.
func apply(s *specs.Spec, g grant, bareHooks bool) {
	if s.Process == nil {
		s.Process = &specs.Process{}
	}
	if s.Linux == nil {
		s.Linux = &specs.Linux{}
	}
	if s.Linux.Resources == nil {
		s.Linux.Resources = &specs.LinuxResources{}
	}
	env := slices.Clone(s.Process.Env)
	for _, v := range append(g.env, voidCards) {
		env = setEnv(env, v)
	}
	inLibraryDir := func(m mountWant) bool { return path.Dir(m.target) == LibraryDir }
	if slices.ContainsFunc(g.mounts, inLibraryDir) {
		env = leadEnv(env, "LD_LIBRARY_PATH", LibraryDir)
	}
	s.Process.Env = env
	for _, id := range g.groups {
		if !slices.Contains(s.Process.User.AdditionalGids, id) {
			s.Process.User.AdditionalGids = append(slices.Clone(s.Process.User.AdditionalGids), id)
		}
	}
	for _, n := range g.nodes {
		applyNode(s, n)
	}
	mounts := slices.Clone(s.Mounts)
	for _, m := range g.mounts {
		mounts = append(mounts, specs.Mount{Destination: m.target, Type: "bind", Source: m.source, Options: slices.Clone(m.options)})
	}
	s.Mounts = mounts
	applyHooks(s, g.hooks, bareHooks)
}

func applyNode(s *specs.Spec, n nodeGrant) {
	major, minor, mode := int64(n.node.major), int64(n.node.minor), n.node.mode
	root := uint32(0)
	gid := n.gid
	devices := slices.DeleteFunc(slices.Clone(s.Linux.Devices), func(d specs.LinuxDevice) bool { return d.Path == n.path })
	s.Linux.Devices = append(devices, specs.LinuxDevice{
		Path: n.path, Type: "c", Major: major, Minor: minor, FileMode: &mode, UID: &root, GID: &gid,
	})
	rules := slices.Clone(s.Linux.Resources.Devices)
	s.Linux.Resources.Devices = append(rules, specs.LinuxDeviceCgroup{
		Allow: true, Type: "c", Major: &major, Minor: &minor, Access: n.access,
	})
}

func applyHooks(s *specs.Spec, hooks []hookWant, bare bool) {
	if len(hooks) == 0 {
		return
	}
	all := specs.Hooks{}
	if s.Hooks != nil {
		all = *s.Hooks
	}
	all.CreateContainer = slices.Clone(all.CreateContainer)
	for _, h := range hooks {
		env, seconds := hookEnv(), hookSeconds
		if bare {
			env = h.env
		}
		all.CreateContainer = append(all.CreateContainer, specs.Hook{
			Path: h.program, Args: slices.Clone(h.args), Env: env, Timeout: &seconds,
		})
	}
	s.Hooks = &all
}

// setEnv sets a variable, in its old place where it is set already.
func setEnv(env []string, v string) []string {
	key, _, _ := strings.Cut(v, "=")
	i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, key+"=") })
	if i < 0 {
		return append(env, v)
	}
	env[i] = v
	return env
}

// leadEnv puts a folder in front of a list of folders.
func leadEnv(env []string, key, dir string) []string {
	for _, e := range env {
		if old, ok := strings.CutPrefix(e, key+"="); ok && old != "" {
			return setEnv(env, key+"="+dir+":"+old)
		}
	}
	return setEnv(env, key+"="+dir)
}
