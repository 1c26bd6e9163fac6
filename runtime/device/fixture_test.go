//go:build linux

package device_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
	"haggle/runtime/device"
)

var update = flag.Bool("update", false, "write the golden files anew")

// job is what an engine tells runc of a job before its devices: a user namespace, with one group of the machine in it.
func job(groups ...uint32) *specs.Spec {
	s := &specs.Spec{
		Process: &specs.Process{Env: []string{"PATH=/bin", "LD_LIBRARY_PATH=/opt/mine"}},
		Mounts:  []specs.Mount{{Destination: "/proc", Type: "proc", Source: "proc"}},
		Linux: &specs.Linux{
			Namespaces:  []specs.LinuxNamespace{{Type: specs.UserNamespace}},
			UIDMappings: []specs.LinuxIDMapping{{ContainerID: 0, HostID: 200_000, Size: 65_536}},
			GIDMappings: []specs.LinuxIDMapping{{ContainerID: 0, HostID: 200_000, Size: 65_536}},
			Resources:   &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}},
		},
	}
	for i, g := range groups {
		s.Linux.GIDMappings = append(s.Linux.GIDMappings, specs.LinuxIDMapping{ContainerID: 70_000 + uint32(i), HostID: g, Size: 1})
	}
	return s
}

// bare is a job without a user namespace.
func bare() *specs.Spec {
	s := job()
	s.Linux.Namespaces, s.Linux.UIDMappings, s.Linux.GIDMappings = nil, nil, nil
	return s
}

func id(class, uuid string) runtime.DeviceID { return runtime.DeviceID{Class: class, UUID: uuid} }

const (
	firstCard  = "GPU-11111111-2222-3333-4444-555555555555"
	secondCard = "GPU-66666666-7777-8888-9999-aaaaaaaaaaaa"
)

// rig is a machine with what the descriptions in testdata/good name.
func rig() device.Fake {
	const lib = "/usr/lib/x86_64-linux-gnu/"
	const version = ".so.580.65.06"
	return device.Fake{
		Nodes: map[string]device.FakeNode{
			"/dev/nvidia0":                   {Major: 195, Mode: 0o666},
			"/dev/nvidia1":                   {Major: 195, Minor: 1, Mode: 0o666},
			"/dev/nvidiactl":                 {Major: 195, Minor: 255, Mode: 0o666},
			"/dev/nvidia-uvm":                {Major: 508, Mode: 0o666},
			"/dev/nvidia-uvm-tools":          {Major: 508, Minor: 1, Mode: 0o666},
			"/dev/nvidia-caps/nvidia-cap30":  {Major: 237, Minor: 30, Mode: 0o444},
			"/dev/nvidia-caps/nvidia-cap31":  {Major: 237, Minor: 31, Mode: 0o444},
			"/dev/nvidia-caps/nvidia-cap39":  {Major: 237, Minor: 39, Mode: 0o444},
			"/dev/nvidia-caps/nvidia-cap40":  {Major: 237, Minor: 40, Mode: 0o444},
			"/dev/nvidia-caps/nvidia-cap41":  {Major: 237, Minor: 41, Mode: 0o444},
			"/dev/dri/renderD128":            {Major: 226, Minor: 128, Mode: 0o666, Group: 105},
			"/dev/dri/renderD129":            {Major: 226, Minor: 129, Mode: 0o666, Group: 105},
			"/dev/kfd":                       {Major: 510, Mode: 0o666, Group: 105},
			"/dev/haggle-test/card-a":        {Major: 10, Minor: 234, Mode: 0o666},
			"/dev/haggle-test/control":       {Major: 10, Minor: 235, Mode: 0o666},
			"/dev/haggle-test/not-in-policy": {Major: 10, Minor: 235, Mode: 0o666},
		},
		Files: map[string]string{
			lib + "libcuda" + version: "", lib + "libnvidia-ml" + version: "", lib + "libGLX_nvidia" + version: "",
			lib + "libnvidia-allocator" + version: "", "/usr/lib/i386-linux-gnu/libcuda" + version: "",
			"/usr/lib/xorg/modules/drivers/nvidia_drv.so": "", "/usr/share/nvidia/nvoptix.bin": "",
			"/usr/share/vulkan/icd.d/nvidia_icd.json": "", "/etc/OpenCL/vendors/nvidia.icd": "", "/usr/bin/nvidia-smi": "",
			"/lib/firmware/nvidia/580.65.06/gsp_ga10x.bin": "/usr/lib/firmware/nvidia/580.65.06/gsp_ga10x.bin",
		},
		Sonames: map[string]string{
			lib + "libcuda" + version: "libcuda.so.1", lib + "libnvidia-ml" + version: "libnvidia-ml.so.1",
			lib + "libGLX_nvidia" + version: "libGLX_nvidia.so.0", lib + "libnvidia-allocator" + version: "libnvidia-allocator.so.1",
		},
		Programs: map[string]error{"/usr/bin/nvidia-cdi-hook": nil},
		Buses:    map[string]string{"/dev/dri/renderD128": "0000:03:00.0", "/dev/dri/renderD129": "0000:83:00.0"},
	}
}

// folder is a folder with descriptions, by file name; the text of those that name a file of testdata is read from there.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if raw, err := os.ReadFile(filepath.Join("testdata", text)); err == nil {
			text = string(raw)
		}
		write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, cfg device.Config, f device.Fake) *device.Devices {
	t.Helper()
	d, err := device.NewOn(cfg, f)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// golden compares a spec with a file of testdata/good.
func golden(t *testing.T, name string, s *specs.Spec) {
	t.Helper()
	got, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	file := filepath.Join("testdata", "good", name+".golden")
	if *update {
		write(t, file, string(got))
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

// one is a description of one card with a node of its own.
func one(kind, name, node string) string {
	raw, err := json.Marshal(map[string]any{
		"cdiVersion": "0.6.0", "kind": kind,
		"devices": []any{map[string]any{
			"name": name, "containerEdits": map[string]any{"deviceNodes": []any{map[string]any{"path": node}}},
		}},
	})
	if err != nil {
		panic(err)
	}
	return string(raw)
}
