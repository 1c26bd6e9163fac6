//go:build linux && cgo

package nvidia_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/nvml"
	"haggle/nvml/nvidia"
)

var update = flag.Bool("update", false, "write the golden files anew")

// hookPath stands in the specs of tests; nobody runs it.
const hookPath = "/usr/bin/nvidia-cdi-hook"

// installed is a rig with a driver's files below a folder of its own.
type installed struct {
	*rig
	root string
}

// install makes a rig with nodes and the files of a driver. Nodes are those of /dev/null.
func install(t *testing.T, variant, cards string, nodes ...string) *installed {
	t.Helper()
	r := &installed{rig: newRig(t, variant, cards), root: t.TempDir()}
	for _, dir := range []string{"usr/lib/x86_64-linux-gnu", "usr/bin", "lib/firmware/nvidia/550.163.01", "dev/nvidia-caps"} {
		if err := os.MkdirAll(filepath.Join(r.root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	libs := filepath.Join(r.root, "usr/lib/x86_64-linux-gnu")
	copied(t, cudas()["full"], filepath.Join(libs, "libcuda.so.550.163.01"))
	copied(t, builds()["full"], filepath.Join(libs, "libnvidia-ml.so.550.163.01"))
	for _, name := range []string{"usr/bin/nvidia-smi", "lib/firmware/nvidia/550.163.01/gsp_ga10x.bin"} {
		if err := os.WriteFile(filepath.Join(r.root, name), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range nodes {
		r.node(name)
	}
	return r
}

// node makes a character device in the rig's /dev.
func (r *installed) node(name string) {
	r.t.Helper()
	path := filepath.Join(r.root, "dev", name)
	err := syscall.Mknod(path, syscall.S_IFCHR, 1<<8|3)
	if err == nil {
		err = os.Chmod(path, 0o666)
	}
	if errors.Is(err, os.ErrPermission) {
		r.t.Skip("needs root to make device nodes")
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// openHere opens a driver that looks for its files below the rig's folder.
func (r *installed) openHere(cfg nvidia.Config) *nvidia.Driver {
	r.t.Helper()
	cfg.CDI.DriverRoot, cfg.CDI.DevRoot = r.root, r.root
	if cfg.CDI.Hook == "" {
		cfg.CDI.Hook = hookPath
	}
	return r.open(cfg)
}

// specOf returns the one spec of a driver, as text with the rig's folder called $ROOT.
func (r *installed) specOf(d *nvidia.Driver) string {
	r.t.Helper()
	specs, err := d.Specs(r.t.Context())
	if err != nil || len(specs) != 1 {
		r.t.Fatalf("%d specs, %v", len(specs), err)
	}
	var text bytes.Buffer
	if err := json.Indent(&text, specs[0], "", "  "); err != nil {
		r.t.Fatal(err)
	}
	return strings.ReplaceAll(text.String(), r.root, "$ROOT") + "\n"
}

// golden compares a spec with the file of that name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "cdi", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func controlNodes() []string {
	return []string{"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}
}

func TestTwoCardsAreDescribedForContainers(t *testing.T) {
	r := install(t, "full", "RTX4090 A100", append(controlNodes(), "nvidia0", "nvidia1")...)
	d := r.openHere(nvidia.Config{})
	golden(t, "two-cards.json", r.specOf(d))
	if d.Starts() != 1 {
		t.Errorf("the readings needed %d children", d.Starts())
	}
}

func TestCardsAreDescribedWithoutHooks(t *testing.T) {
	r := install(t, "full", "A100", append(controlNodes(), "nvidia0")...)
	golden(t, "no-hooks.json", r.specOf(r.openHere(nvidia.Config{CDI: nvidia.CDIConfig{Hook: nvidia.NoHooks}})))
}

// sliced is the command of a child that finds the file by which the driver numbers the nodes of slices.
func sliced(t *testing.T, minors string) []string {
	t.Helper()
	for _, tool := range []string{"unshare", "mount"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("needs root for a mount namespace: %v, %s", err, out)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "nvidia-caps"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "nvidia-caps", "mig-minors"), []byte(minors), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"unshare", "--mount", "sh", "-c", `mount --bind "$1" /proc/driver && exec "$2" ` + childArg, "sh", dir, self}
}

func TestSlicesAreDescribedForContainers(t *testing.T) {
	nodes := append(controlNodes(), "nvidia0", "nvidia1")
	minors := "config 1\nmonitor 2\n"
	for slice := range 2 {
		gi, ci := 10*(slice+1), 10*(slice+1)+1
		minors += fmt.Sprintf("gpu1/gi%d/access %d\ngpu1/gi%d/ci0/access %d\n", slice+7, gi, slice+7, ci)
		nodes = append(nodes, fmt.Sprintf("nvidia-caps/nvidia-cap%d", gi), fmt.Sprintf("nvidia-caps/nvidia-cap%d", ci))
	}
	r := install(t, "full", "RTX4090 A100", nodes...)
	r.set("1.mig", "1")
	r.set("1.slices", "2")
	d := r.openHere(nvidia.Config{Command: sliced(t, minors)})
	golden(t, "slices.json", r.specOf(d))
	// Slices go without a sign, so that nothing is kept.
	r.set("1.slices", "1")
	if got := r.specOf(d); strings.Contains(got, "MIG-00000000-0000-4000-9000-000001000002") || strings.Count(got, "MIG-") != 1 {
		t.Errorf("a slice that went is still described:\n%s", got)
	}
}

func TestSpecsAreMadeAnewWhenTheCardsOrTheDriverChange(t *testing.T) {
	r := install(t, "full", "A100 H100", append(controlNodes(), "nvidia0", "nvidia1")...)
	d := r.openHere(nvidia.Config{})
	first := r.specOf(d)
	if err := os.Remove(filepath.Join(r.root, "usr/bin/nvidia-smi")); err != nil {
		t.Fatal(err)
	}
	if r.specOf(d) != first {
		t.Error("the specs were made again for nothing")
	}
	specs, err := d.Specs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clear(specs[0]) // the bytes are ours: what we do to them must not reach the driver
	if r.specOf(d) != first {
		t.Error("the caller's change reached the driver")
	}
	r.set("1.lost", "1")
	if _, err := d.Sample(t.Context(), uuid(1)); !errors.Is(err, nvml.ErrLost) {
		t.Fatal(err)
	}
	second := r.specOf(d)
	if strings.Contains(second, uuid(1)) || strings.Contains(second, "nvidia-smi") {
		t.Errorf("after a card was lost:\n%s", second)
	}
	libs := filepath.Join(r.root, "usr/lib/x86_64-linux-gnu")
	for _, name := range []string{"libcuda.so.", "libnvidia-ml.so."} {
		if err := os.Rename(filepath.Join(libs, name+"550.163.01"), filepath.Join(libs, name+"580.65.06")); err != nil {
			t.Fatal(err)
		}
	}
	r.set("driver", "580.65.06")
	kill(t, d, syscall.SIGKILL)
	sampleOf(t, d, uuid(0))
	if third := r.specOf(d); !strings.Contains(third, "libcuda.so.580.65.06") {
		t.Errorf("after the driver changed:\n%s", third)
	}
}

func TestWhatIsMissingIsMadeGoodLater(t *testing.T) {
	r := install(t, "full", "A100 H100", "nvidiactl", "nvidia1")
	d := r.openHere(nvidia.Config{})
	if got := r.specOf(d); strings.Contains(got, uuid(0)) || !strings.Contains(got, uuid(1)) || strings.Contains(got, "nvidia-uvm") {
		t.Errorf("one card has no node:\n%s", got)
	}
	r.node("nvidia0")
	r.node("nvidia-uvm")
	if got := r.specOf(d); !strings.Contains(got, uuid(0)) || !strings.Contains(got, "/dev/nvidia-uvm") {
		t.Errorf("the nodes have come:\n%s", got)
	}
}

func TestSpecsThatCannotBeMadeDisturbNoReading(t *testing.T) {
	for name, x := range map[string]struct {
		variant string
		change  func(r *installed)
		nodes   []string
		want    error
		says    string
	}{
		"a library without what nvcdi calls": {
			"old", func(*installed) {}, append(controlNodes(), "nvidia0"), nvml.ErrUnsupported, "lacks the function nvmlDevice",
		},
		"no nodes": {"full", func(*installed) {}, nil, nvml.ErrUnsupported, "no card can be given"},
		"no libraries": {
			"full", func(r *installed) { _ = os.RemoveAll(filepath.Join(r.root, "usr")) }, append(controlNodes(), "nvidia0"),
			nil, "find the driver's files",
		},
		"a card that fails": {
			"full", func(r *installed) { r.set("0.fail.minor", "999") }, append(controlNodes(), "nvidia0"),
			nvml.ErrUnsupported, "no card can be given",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := install(t, x.variant, "A100", x.nodes...)
			d := r.openHere(nvidia.Config{})
			x.change(r)
			specs, err := d.Specs(t.Context())
			if err == nil || x.want != nil && !errors.Is(err, x.want) || !strings.Contains(err.Error(), x.says) {
				t.Errorf("%d specs, %v, want %v with %q", len(specs), err, x.want, x.says)
			}
			sampleOf(t, d, uuid(0))
			if d.Starts() != 1 || len(d.Denied()) != 0 {
				t.Errorf("the readings needed %d children, denied %v", d.Starts(), d.Denied())
			}
		})
	}
}

func TestSpecsWaitForNoHangingLibrary(t *testing.T) {
	r := install(t, "full", "A100", append(controlNodes(), "nvidia0")...)
	d := r.openHere(nvidia.Config{SpecsTimeout: 300 * time.Millisecond})
	r.set("init.hang", "600000")
	if _, err := d.Specs(t.Context()); !errors.Is(err, nvml.ErrTimeout) {
		t.Errorf("specs: %v, want ErrTimeout", err)
	}
	sampleOf(t, d, uuid(0))
	r.set("init.hang", "")
	until(t, func() bool { _, err := d.Specs(t.Context()); return err == nil })
	_ = d.Close()
	if _, err := d.Specs(t.Context()); !errors.Is(err, nvml.ErrClosed) {
		t.Errorf("specs of a closed driver: %v, want ErrClosed", err)
	}
}
