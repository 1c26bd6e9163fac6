//go:build linux

package device_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
	"haggle/runtime/device"
)

func TestWhatAVendorsDescriptionBringsToAJob(t *testing.T) {
	for _, c := range []struct {
		file string
		mode device.Mode
		ids  []runtime.DeviceID
		name string
	}{
		{"nvidia.yaml", device.Hookless, []runtime.DeviceID{id("nvidia.com/gpu", firstCard)}, "nvidia.hookless"},
		{"nvidia.yaml", device.WithHooks, []runtime.DeviceID{id("nvidia.com/gpu", firstCard)}, "nvidia.hooks"},
		{"nvidia.yaml", device.Hookless, []runtime.DeviceID{id("nvidia.com/gpu", firstCard), id("nvidia.com/gpu", secondCard)}, "nvidia.two"},
		{"nvidia-mig.json", device.Hookless, []runtime.DeviceID{id("nvidia.com/gpu", "MIG-0a0a0a0a-1111-2222-3333-444444444444")}, "nvidia-mig.hookless"},
		{"amd.json", device.Hookless, []runtime.DeviceID{id("amd.com/gpu", "pci-0000-83-00.0")}, "amd.hookless"},
		{"intel.yaml", device.Hookless, []runtime.DeviceID{id("intel.com/gpu", "0000-0f-00-0-0x56a0")}, "intel.hookless"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := folder(t, map[string]string{c.file: "good/" + c.file})
			d := open(t, device.Config{Dirs: []string{dir}, Mode: c.mode}, rig())
			s := job()
			if err := d.Inject(s, c.ids); err != nil {
				t.Fatal(err, d.Refusals())
			}
			golden(t, c.name, s)
			if refused := d.Refusals(); len(refused) > 0 {
				t.Error(refused)
			}
		})
	}
}

func TestTheHooksOfAJobKeepThoseThatAreThere(t *testing.T) {
	d := open(t, device.Config{Dirs: []string{folder(t, map[string]string{"a.yaml": "good/nvidia.yaml"})}, Mode: device.WithHooks}, rig())
	s := job()
	s.Hooks = &specs.Hooks{CreateContainer: []specs.Hook{{Path: "/first"}}}
	before := s.Hooks
	if err := d.Inject(s, []runtime.DeviceID{id("nvidia.com/gpu", firstCard)}); err != nil {
		t.Fatal(err)
	}
	hooks := s.Hooks.CreateContainer
	if len(before.CreateContainer) != 1 || len(hooks) < 2 || hooks[0].Path != "/first" {
		t.Fatal(hooks)
	}
	for _, h := range hooks[1:] {
		if !slices.Equal(h.Env, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}) || h.Timeout == nil {
			t.Errorf("%v runs with %q", h.Args, h.Env)
		}
	}
}

func TestInjectIsAllOrNothing(t *testing.T) {
	f := rig()
	delete(f.Nodes, "/dev/nvidia1")
	dir := folder(t, map[string]string{
		"a.yaml": "good/nvidia.yaml", "c.json": one("evil.example/gpu", "x-y", "/dev/sda"),
	})
	d := open(t, device.Config{Dirs: []string{dir}}, f)
	good := id("nvidia.com/gpu", firstCard)
	for name, c := range map[string]struct {
		ids  []runtime.DeviceID
		want error
		says string
	}{
		"an unknown card":                {[]runtime.DeviceID{good, id("nvidia.com/gpu", "GPU-unknown")}, runtime.ErrNoDevice, "no description"},
		"a card by its index":            {[]runtime.DeviceID{good, id("nvidia.com/gpu", "0")}, runtime.ErrNoDevice, "no description"},
		"all cards":                      {[]runtime.DeviceID{id("nvidia.com/gpu", "all")}, runtime.ErrNoDevice, "no description"},
		"a card that is gone":            {[]runtime.DeviceID{good, id("nvidia.com/gpu", secondCard)}, runtime.ErrNoDevice, "/dev/nvidia1"},
		"a card of a hostile kind":       {[]runtime.DeviceID{good, id("evil.example/gpu", "x-y")}, runtime.ErrPolicy, "node-forbidden"},
		"a slice beside its own card":    {[]runtime.DeviceID{good, id("nvidia.com/gpu", "MIG-0a0a0a0a-1111-2222-3333-444444444444")}, runtime.ErrPolicy, "slice"},
		"a card beside one of its slice": {[]runtime.DeviceID{id("nvidia.com/gpu", "MIG-0a0a0a0a-1111-2222-3333-444444444444"), good}, runtime.ErrPolicy, "slice"},
	} {
		t.Run(name, func(t *testing.T) {
			d := d
			if strings.Contains(name, "slice") {
				d = open(t, device.Config{Dirs: []string{folder(t, map[string]string{"a.json": slicesAndCard()})}}, rig())
			}
			s := job()
			err := d.Inject(s, c.ids)
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if diff := cmp.Diff(job(), s); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// slicesAndCard describes a card and a slice of it, as a tool does that is asked between two settings of the card.
func slicesAndCard() string {
	return `{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [
	{"name": "` + firstCard + `", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}},
	{"name": "MIG-0a0a0a0a-1111-2222-3333-444444444444", "containerEdits": {"deviceNodes": [
		{"path": "/dev/nvidia0"}, {"path": "/dev/nvidia-caps/nvidia-cap30"}, {"path": "/dev/nvidia-caps/nvidia-cap31"}]}}]}`
}

func TestCardsAndSlicesThatMustNotBeLeasedApart(t *testing.T) {
	d := open(t, device.Config{Dirs: []string{folder(t, map[string]string{"a.json": "good/nvidia-mig.json"})}}, rig())
	gpu := id("nvidia.com/gpu", "GPU-00000000-1111-2222-3333-444444444444")
	a, b, c := id("nvidia.com/gpu", "MIG-0a0a0a0a-1111-2222-3333-444444444444"),
		id("nvidia.com/gpu", "MIG-0b0b0b0b-1111-2222-3333-444444444444"), id("nvidia.com/gpu", "MIG-0c0c0c0c-1111-2222-3333-444444444444")
	for _, v := range []struct {
		x, y runtime.DeviceID
		want bool
	}{{gpu, a, true}, {a, gpu, true}, {gpu, gpu, true}, {a, b, false}, {b, c, true}, {a, id("nvidia.com/gpu", "GPU-x"), false}} {
		if got := d.Overlap(v.x, v.y); got != v.want {
			t.Errorf("%s and %s: %v", v.x.UUID, v.y.UUID, got)
		}
	}
}

func TestAJobWithoutCardsIsLeftAlone(t *testing.T) {
	d := open(t, device.Config{Dirs: []string{t.TempDir()}}, rig())
	s := job()
	if err := d.Inject(s, []runtime.DeviceID{id(runtime.SimulatedGPU, "SIM-1")}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(job(), s); diff != "" {
		t.Error(diff)
	}
}

func TestANodeThatOnlyAGroupMayOpen(t *testing.T) {
	f := rig()
	for _, p := range []string{"/dev/dri/renderD128", "/dev/dri/renderD129", "/dev/kfd"} {
		n := f.Nodes[p]
		n.Mode = 0o660
		f.Nodes[p] = n
	}
	dir := folder(t, map[string]string{"amd.json": "good/amd.json"})
	card := []runtime.DeviceID{id("amd.com/gpu", "pci-0000-03-00.0")}

	d := open(t, device.Config{Dirs: []string{dir}}, f)
	err := d.Inject(job(), card)
	if !errors.Is(err, runtime.ErrPolicy) || !strings.Contains(err.Error(), `KERNEL=="renderD128", MODE="0666"`) {
		t.Errorf("got %v", err)
	}
	if got := d.List(); len(got) > 0 {
		t.Errorf("%v are offered", got)
	}
	if got := d.Refusals(); len(got) != 2 || got[0].Rule != "access" {
		t.Errorf("refused are %v", got)
	}

	d = open(t, device.Config{Dirs: []string{dir}, Groups: []uint32{105}}, f)
	if got := d.List(); len(got) != 2 {
		t.Errorf("offered are %v", got)
	}
	s := job(105)
	if err := d.Inject(s, card); err != nil || !slices.Equal(s.Process.User.AdditionalGids, []uint32{70_000}) {
		t.Errorf("groups %v: %v", s.Process.User.AdditionalGids, err)
	}
	s = bare()
	if err := d.Inject(s, card); err != nil || !slices.Equal(s.Process.User.AdditionalGids, []uint32{105}) {
		t.Errorf("without a user namespace: groups %v: %v", s.Process.User.AdditionalGids, err)
	}
}

func TestTheOwnerAllowsMoreNodesButNotTheMachines(t *testing.T) {
	text := `{"cdiVersion": "0.6.0", "kind": "haggle.test/gpu", "devices": [
	{"name": "CARD-a", "containerEdits": {"deviceNodes": [{"path": "/dev/haggle-test/card-a"}]}}],
	"containerEdits": {"deviceNodes": [{"path": "/dev/haggle-test/control"}]}}`
	dir := folder(t, map[string]string{"a.json": text, "b.json": one("haggle.test/gpu", "CARD-b", "/dev/sda")})
	card := []runtime.DeviceID{id("haggle.test/gpu", "CARD-a")}
	d := open(t, device.Config{Dirs: []string{dir}}, rig())
	if err := d.Inject(job(), card); !errors.Is(err, runtime.ErrPolicy) {
		t.Errorf("got %v", err)
	}
	d = open(t, device.Config{Dirs: []string{dir}, Nodes: []string{"/dev/haggle-test/*", "/dev/sd*"}}, rig())
	s := job()
	if err := d.Inject(s, card); err != nil || len(s.Linux.Devices) != 2 {
		t.Errorf("%v: %v", s.Linux.Devices, err)
	}
	if err := d.Inject(job(), []runtime.DeviceID{id("haggle.test/gpu", "CARD-b")}); !errors.Is(err, runtime.ErrPolicy) {
		t.Errorf("a disk: %v", err)
	}
}

func TestWhatTheMachineShowsIsHeldAgainstTheDescription(t *testing.T) {
	card := []runtime.DeviceID{id("nvidia.com/gpu", firstCard)}
	const library = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"
	node := func(n device.FakeNode) func(*device.Fake) {
		return func(f *device.Fake) { f.Nodes["/dev/nvidia0"] = n }
	}
	for name, c := range map[string]struct {
		spoil func(f *device.Fake)
		want  error
		says  string
	}{
		"a node with another number": {node(device.FakeNode{Major: 195, Minor: 7, Mode: 0o666}), runtime.ErrPolicy, "described as 195:0 and is 195:7"},
		"a node that is a link":      {node(device.FakeNode{Err: device.ErrLink}), runtime.ErrPolicy, "symbolic link"},
		"a node that is a disk":      {node(device.FakeNode{Err: device.ErrNoChar}), runtime.ErrPolicy, "no character device"},
		"no driver":                  {func(f *device.Fake) { f.Nodes = nil }, runtime.ErrNoDevice, "is the driver loaded"},
		"a library that is gone":     {func(f *device.Fake) { delete(f.Files, library) }, runtime.ErrNoDevice, "older than the driver"},
		"a library that leads out":   {func(f *device.Fake) { f.Files[library] = "/etc/shadow" }, runtime.ErrPolicy, "is really /etc/shadow"},
		"a library that is a folder": {func(f *device.Fake) { f.Folders = map[string]bool{library: true} }, runtime.ErrPolicy, "whole folder"},
		"a private library":          {func(f *device.Fake) { f.Private = map[string]bool{library: true} }, runtime.ErrPolicy, "not everybody"},
		"a hook that is not there":   {func(f *device.Fake) { f.Programs = nil }, runtime.ErrPolicy, "hook-program"},
	} {
		t.Run(name, func(t *testing.T) {
			f := rig()
			c.spoil(&f)
			d := open(t, device.Config{Dirs: []string{folder(t, map[string]string{"a.yaml": "good/nvidia.yaml"})}, Mode: device.WithHooks}, f)
			s := job()
			if err := d.Inject(s, card); !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(job(), s); diff != "" {
				t.Error(diff)
			}
			if slices.Contains(d.List(), card[0]) || len(d.Refusals()) == 0 {
				t.Errorf("offered %v, refused %v", d.List(), d.Refusals())
			}
		})
	}
}

func TestWithoutAProtectionWhatItRefusesPasses(t *testing.T) {
	const hooked = `{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [{"name": "` + firstCard + `", "containerEdits": {
	"deviceNodes": [{"path": "/dev/nvidia0"}], "hooks": [{"hookName": "createContainer", "path": "/tmp/evil", "args": ["evil"]}]}}]}`
	const mounted = `{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [{"name": "` + firstCard + `", "containerEdits": {
	"deviceNodes": [{"path": "/dev/nvidia0"}], "mounts": [{"hostPath": "/etc", "containerPath": "/mnt"}]}}]}`
	const variable = `{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [{"name": "` + firstCard + `", "containerEdits": {
	"deviceNodes": [{"path": "/dev/nvidia0"}], "env": ["LD_PRELOAD=/evil.so"]}}]}`
	f := rig()
	f.Nodes["/dev/sda-like"] = device.FakeNode{Major: 1, Minor: 1, Mode: 0o600}
	for name, c := range map[string]struct {
		text string
		ids  []string
	}{
		device.ProtectNodes:  {one("nvidia.com/gpu", firstCard, "/dev/sda-like"), []string{firstCard}},
		device.ProtectMounts: {mounted, []string{firstCard}},
		device.ProtectHooks:  {hooked, []string{firstCard}},
		device.ProtectEnv:    {variable, []string{firstCard}},
		device.ProtectSlices: {slicesAndCard(), []string{firstCard, "MIG-0a0a0a0a-1111-2222-3333-444444444444"}},
	} {
		t.Run(name, func(t *testing.T) {
			var ids []runtime.DeviceID
			for _, uuid := range c.ids {
				ids = append(ids, id("nvidia.com/gpu", uuid))
			}
			cfg := device.Config{Dirs: []string{folder(t, map[string]string{"a.json": c.text})}, Mode: device.WithHooks}
			if err := open(t, cfg, f).Inject(job(), ids); !errors.Is(err, runtime.ErrPolicy) {
				t.Errorf("with it: %v", err)
			}
			cfg.Without = []string{name}
			if err := open(t, cfg, f).Inject(job(), ids); err != nil {
				t.Errorf("without it: %v", err)
			}
		})
	}
	t.Run(device.ProtectHookEnv, func(t *testing.T) {
		cfg := device.Config{Dirs: []string{folder(t, map[string]string{"a.yaml": "good/nvidia.yaml"})}, Mode: device.WithHooks}
		cfg.Without = []string{device.ProtectHookEnv}
		s := job()
		if err := open(t, cfg, f).Inject(s, []runtime.DeviceID{id("nvidia.com/gpu", firstCard)}); err != nil {
			t.Fatal(err)
		}
		if got := s.Hooks.CreateContainer[0].Env; !slices.Equal(got, []string{"NVIDIA_CTK_DEBUG=false"}) {
			t.Errorf("a hook runs with %q", got)
		}
	})
}
