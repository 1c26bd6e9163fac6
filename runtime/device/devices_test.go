//go:build linux

package device_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"haggle/runtime"
	"haggle/runtime/device"
)

func TestCardsAreOfferedByNamesThatLast(t *testing.T) {
	dir := folder(t, map[string]string{
		"nvidia.yaml": "good/nvidia.yaml", "other.json": one("other.example/npu", "npu0", "/dev/accel/accel0"),
	})
	f := rig()
	f.Nodes["/dev/accel/accel0"] = device.FakeNode{Major: 261, Mode: 0o666}
	got := open(t, device.Config{Dirs: []string{dir}}, f).List()
	want := []runtime.DeviceID{id("nvidia.com/gpu", firstCard), id("nvidia.com/gpu", secondCard)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	amd := open(t, device.Config{Dirs: []string{folder(t, map[string]string{"amd.json": "good/amd.json"})}}, rig()).List()
	want = []runtime.DeviceID{id("amd.com/gpu", "pci-0000-03-00.0"), id("amd.com/gpu", "pci-0000-83-00.0")}
	if diff := cmp.Diff(want, amd); diff != "" {
		t.Error(diff)
	}
}

func TestOneNodeUnderTwoNamesIsRefusedAsBoth(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.json": one("nvidia.com/gpu", firstCard, "/dev/nvidia0"), "b.json": one("nvidia.com/gpu", secondCard, "/dev/nvidia0"),
	})
	d := open(t, device.Config{Dirs: []string{dir}}, rig())
	if got := d.List(); len(got) > 0 {
		t.Errorf("%v are offered", got)
	}
	if got := d.Refusals(); len(got) != 2 || got[0].Rule != "node-shared" || got[1].Rule != "node-shared" {
		t.Error(got)
	}
}

func TestTheLaterFolderWinsAndTheDriverLast(t *testing.T) {
	nodeOf := func(d *device.Devices) string {
		s := job()
		if err := d.Inject(s, []runtime.DeviceID{id("nvidia.com/gpu", firstCard)}); err != nil {
			return err.Error()
		}
		return s.Linux.Devices[0].Path
	}
	static := folder(t, map[string]string{"a.json": one("nvidia.com/gpu", firstCard, "/dev/nvidia0")})
	dynamic := folder(t, map[string]string{"a.json": one("nvidia.com/gpu", firstCard, "/dev/nvidia1")})
	f := rig()
	f.Nodes["/dev/nvidia2"] = device.FakeNode{Major: 195, Minor: 2, Mode: 0o666}
	if got := nodeOf(open(t, device.Config{Dirs: []string{static, dynamic}}, f)); got != "/dev/nvidia1" {
		t.Error(got)
	}
	failing := false
	d := open(t, device.Config{Dirs: []string{static, dynamic}, Specs: func(context.Context) ([][]byte, error) {
		if failing {
			return nil, errors.New("the driver hangs")
		}
		return [][]byte{[]byte(one("nvidia.com/gpu", firstCard, "/dev/nvidia2"))}, nil
	}}, f)
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := nodeOf(d); got != "/dev/nvidia2" {
		t.Error(got)
	}
	failing = true
	if err := d.Refresh(t.Context()); err == nil || nodeOf(d) != "/dev/nvidia2" {
		t.Errorf("a driver that fails takes its cards along: %v, %s", err, nodeOf(d))
	}
	both := folder(t, map[string]string{
		"a.json": one("nvidia.com/gpu", firstCard, "/dev/nvidia0"), "b.json": one("nvidia.com/gpu", firstCard, "/dev/nvidia1"),
	})
	if got := nodeOf(open(t, device.Config{Dirs: []string{both}}, f)); !strings.Contains(got, "conflict") {
		t.Error(got)
	}
}

func TestAChangedFileIsNoticed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cdi")
	d := open(t, device.Config{Dirs: []string{dir}}, rig())
	if got := d.List(); len(got) > 0 {
		t.Fatal(got)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.json")
	write(t, file, one("nvidia.com/gpu", firstCard, "/dev/nvidia0"))
	if got := d.List(); !slices.Equal(got, []runtime.DeviceID{id("nvidia.com/gpu", firstCard)}) {
		t.Errorf("a new file: %v", got)
	}
	write(t, file+"~", one("nvidia.com/gpu", secondCard, "/dev/nvidia1"))
	if err := os.Rename(file+"~", file); err != nil {
		t.Fatal(err)
	}
	if got := d.List(); !slices.Equal(got, []runtime.DeviceID{id("nvidia.com/gpu", secondCard)}) {
		t.Errorf("a changed file: %v", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := d.List(); len(got) > 0 {
		t.Errorf("no file: %v", got)
	}
}

func TestFilesThatOthersCanChangeAreNotRead(t *testing.T) {
	text := one("nvidia.com/gpu", firstCard, "/dev/nvidia0")
	for name, prepare := range map[string]func(t *testing.T, dir string) error{
		"a file that everybody can write": func(_ *testing.T, dir string) error { return os.Chmod(filepath.Join(dir, "a.json"), 0o666) },
		"a file of a group":               func(_ *testing.T, dir string) error { return os.Chmod(filepath.Join(dir, "a.json"), 0o664) },
		"a folder that everybody can write": func(_ *testing.T, dir string) error {
			return os.Chmod(dir, 0o777)
		},
		"a pipe": func(_ *testing.T, dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "a.json")), unix.Mkfifo(filepath.Join(dir, "a.json"), 0o600))
		},
		"somebody's file": func(t *testing.T, dir string) error {
			requireRoot(t)
			return os.Chown(filepath.Join(dir, "a.json"), 4711, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"a.json": text})
			if err := prepare(t, dir); err != nil {
				t.Fatal(err)
			}
			d := open(t, device.Config{Dirs: []string{dir}}, rig())
			if got := d.List(); len(got) > 0 {
				t.Errorf("%v are offered", got)
			}
			if got := d.Refusals(); len(got) != 1 || got[0].Rule != "file" {
				t.Error(got)
			}
		})
	}
}

func TestDevicesAreIndependentAndLeaveNoWatcher(t *testing.T) {
	var all sync.WaitGroup
	for i := range 8 {
		uuid := fmt.Sprintf("GPU-%08d", i)
		d := open(t, device.Config{Dirs: []string{folder(t, map[string]string{"a.json": one("nvidia.com/gpu", uuid, "/dev/nvidia0")})}}, rig())
		all.Go(func() {
			for range 20 {
				if err := d.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
				if got := d.List(); !slices.Equal(got, []runtime.DeviceID{id("nvidia.com/gpu", uuid)}) {
					t.Errorf("%s sees %v", uuid, got)
				}
				if err := d.Inject(job(), []runtime.DeviceID{id("nvidia.com/gpu", uuid)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.Contains(to, "inotify") {
			t.Errorf("a watcher is open: %s", to)
		}
	}
}

func TestAConfigurationWithMistakesIsRefused(t *testing.T) {
	for name, cfg := range map[string]device.Config{
		"an unknown protection":  {Without: []string{"everything"}},
		"an unknown mode":        {Mode: "magic"},
		"a relative folder":      {Dirs: []string{"cdi"}},
		"a relative program":     {Hooks: device.HookPolicy{Programs: []string{"hook"}}},
		"nodes outside dev":      {Nodes: []string{"/etc/*"}},
		"nodes by dots":          {Nodes: []string{"/dev/../etc/*"}},
		"a pattern that is none": {Nodes: []string{"/dev/[a"}},
	} {
		if _, err := device.New(cfg); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := device.New(device.Config{Without: device.Protections()}); err != nil {
		t.Error(err)
	}
}

func requireRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: to make device nodes and change owners")
	}
}

// realNodes makes a folder below /dev with character devices that have no driver.
func realNodes(t *testing.T) string {
	requireRoot(t)
	dir, err := os.MkdirTemp("/dev", "haggle-test-") //nolint:usetesting // nodes are only passed on from below /dev
	if err != nil {
		t.Skipf("needs a writable /dev: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	err = os.Chmod(dir, 0o755)
	for name, n := range map[string]struct {
		kind, mode   uint32
		major, minor uint32
	}{
		"good": {unix.S_IFCHR, 0o666, 240, 17}, "private": {unix.S_IFCHR, 0o660, 240, 18}, "disk": {unix.S_IFBLK, 0o666, 240, 19},
		"memory": {unix.S_IFCHR, 0o666, 1, 3},
	} {
		p := path.Join(dir, name)
		err = errors.Join(err, unix.Mknod(p, n.kind|n.mode, int(unix.Mkdev(n.major, n.minor))), os.Chmod(p, fs.FileMode(n.mode)))
	}
	err = errors.Join(err, os.Symlink("good", path.Join(dir, "link")), os.Mkdir(path.Join(dir, "sub"), 0o755),
		os.Symlink(dir, path.Join(dir, "sub", "back")), os.WriteFile(path.Join(dir, "file"), nil, 0o600))
	if err != nil {
		t.Skipf("needs a machine that makes device nodes: %v", err)
	}
	return dir
}

func TestRealNodesAreHeldAgainstTheDescription(t *testing.T) {
	dev := realNodes(t)
	for name, c := range map[string]struct {
		node         string
		major, minor int
		rule         string
	}{
		"the real node":               {"good", 0, 0, ""},
		"the real node by number":     {"good", 240, 17, ""},
		"another number":              {"good", 240, 18, "node-number"},
		"a link":                      {"link", 0, 0, "node-path"},
		"a link on the way":           {"sub/back/good", 0, 0, "node-path"},
		"a disk":                      {"disk", 0, 0, "node-type"},
		"a file":                      {"file", 0, 0, "node-type"},
		"a folder":                    {"sub", 0, 0, "node-type"},
		"null of the machine":         {"memory", 0, 0, "node-forbidden"},
		"nothing":                     {"absent", 0, 0, "missing"},
		"a node that jobs can't open": {"private", 0, 0, "access"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(map[string]any{"cdiVersion": "0.6.0", "kind": "haggle.test/gpu", "devices": []any{map[string]any{
				"name": "CARD-x", "containerEdits": map[string]any{"deviceNodes": []any{map[string]any{
					"path": path.Join(dev, c.node), "major": c.major, "minor": c.minor,
				}}},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			d, err := device.New(device.Config{
				Dirs: []string{folder(t, map[string]string{"a.json": string(raw)})}, Nodes: []string{dev + "/*", dev + "/sub/back/*"},
			})
			if err != nil {
				t.Fatal(err)
			}
			s := job()
			err = d.Inject(s, []runtime.DeviceID{id("haggle.test/gpu", "CARD-x")})
			if c.rule == "" {
				if err != nil || s.Linux.Devices[0].Major != 240 || s.Linux.Devices[0].Minor != 17 {
					t.Errorf("%v: %v", s.Linux.Devices, err)
				}
				return
			}
			if refused := d.Refusals(); err == nil || len(refused) != 1 || refused[0].Rule != c.rule {
				t.Errorf("%v: %v", err, refused)
			}
		})
	}
}

func TestAHookThatOthersCanChangeDoesNotRun(t *testing.T) {
	const real = "/usr/bin/env"
	if info, err := os.Lstat(real); err != nil || !info.Mode().IsRegular() {
		t.Skipf("needs %s as a file: %v", real, err)
	}
	dir := t.TempDir()
	mine, linked := filepath.Join(dir, "mine"), filepath.Join(dir, "linked")
	write(t, mine, "#!/bin/sh\n")
	if err := os.Symlink(real, linked); err != nil {
		t.Fatal(err)
	}
	for program, passes := range map[string]bool{real: true, mine: false, linked: false, "/usr/bin/no-such-program": false} {
		node := "/dev/dri/renderD128"
		text := `{"cdiVersion": "0.6.0", "kind": "haggle.test/gpu", "devices": [{"name": "CARD-x", "containerEdits": {
		"deviceNodes": [{"path": "` + node + `"}],
		"hooks": [{"hookName": "createContainer", "path": "` + program + `",
			"args": ["` + path.Base(program) + `", "update-ldcache", "--folder", "/usr/lib"]}]}}]}`
		err := device.CheckProgram(program)
		if (err == nil) != passes {
			t.Errorf("%s: %v", program, err)
		}
		f := rig()
		f.Programs = map[string]error{program: err}
		d := open(t, device.Config{
			Dirs: []string{folder(t, map[string]string{"a.json": text})}, Mode: device.WithHooks,
			Hooks: device.HookPolicy{Programs: []string{program}},
		}, f)
		if err := d.Inject(job(), []runtime.DeviceID{id("haggle.test/gpu", "CARD-x")}); (err == nil) != passes {
			t.Errorf("%s: %v", program, err)
		}
	}
}

func TestNamesOfRealLibrariesAreRead(t *testing.T) {
	files, err := filepath.Glob("/usr/lib/*-linux-gnu*/libc.so.6")
	if err != nil || len(files) == 0 {
		t.Skip("needs a C library in its Debian place")
	}
	if name, native := device.Soname(files[0]); name != "libc.so.6" || !native {
		t.Errorf("%s is %q, native %v", files[0], name, native)
	}
	if name, native := device.Soname("/etc/passwd"); name != "" || native {
		t.Errorf("a text is %q, native %v", name, native)
	}
}
