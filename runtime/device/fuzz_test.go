//go:build linux

package device_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
	"haggle/runtime/device"
)

func FuzzWhatPassesIsHarmless(f *testing.F) {
	for _, h := range readHostile(f) {
		if len(h.Spec) < 4096 {
			f.Add([]byte(h.Spec))
		}
	}
	good, err := filepath.Glob("testdata/good/*.[jy]*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range good {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		problems := device.Check(raw)
		for _, p := range problems {
			if p.Rule == "" || p.Reason == "" || len(p.Reason) > 1000 {
				t.Fatalf("%+v", p)
			}
		}
		for _, mode := range []device.Mode{device.Hookless, device.WithHooks} {
			d, err := device.NewOnWilling(device.Config{Dirs: []string{}, Mode: mode, Specs: device.Fixed(raw)})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, id := range d.List() {
				s := job()
				if err := d.Inject(s, []runtime.DeviceID{id}); err != nil {
					t.Fatalf("%v is listed: %v", id, err)
				}
				harmless(t, s)
			}
		}
	})
}

// harmless fails unless what is in a spec is no more than a card can need.
func harmless(t *testing.T, s *specs.Spec) {
	t.Helper()
	for _, n := range s.Linux.Devices {
		if !strings.HasPrefix(n.Path, "/dev/") || strings.Contains(n.Path, "..") || n.Type != "c" {
			t.Fatalf("node %+v", n)
		}
	}
	for _, r := range s.Linux.Resources.Devices[1:] {
		if r.Type != "c" || r.Major == nil || r.Minor == nil || strings.Contains(r.Access, "m") {
			t.Fatalf("rule %+v", r)
		}
	}
	for _, m := range s.Mounts[1:] {
		for _, o := range []string{"ro", "nosuid", "nodev", "rprivate", "bind"} {
			if !slices.Contains(m.Options, o) {
				t.Fatalf("mount %+v without %s", m, o)
			}
		}
		for _, p := range []string{m.Source, m.Destination} {
			first, _, _ := strings.Cut(p[1:], "/")
			if filepath.Clean(p) != p || !slices.Contains([]string{"lib", "lib32", "lib64", "usr", "opt", "etc"}, first) || p == "/etc/passwd" {
				t.Fatalf("mount %+v", m)
			}
		}
	}
	if s.Hooks != nil {
		for _, h := range s.Hooks.CreateContainer {
			if base := filepath.Base(h.Path); base != "nvidia-cdi-hook" && base != "nvidia-ctk" || h.Env == nil {
				t.Fatalf("hook %+v", h)
			}
		}
	}
	for i, v := range s.Process.Env {
		own := i < 2 || v == "NVIDIA_VISIBLE_DEVICES=void"
		if !own && (strings.HasPrefix(v, "LD_") || strings.HasPrefix(v, "NVIDIA_") || strings.HasPrefix(v, "PATH=")) {
			t.Fatalf("variable %q", v)
		}
	}
}
