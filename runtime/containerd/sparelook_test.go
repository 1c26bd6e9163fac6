//go:build linux

package containerd_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"haggle/runtime"
)

var buildLooker = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "looker")
	cmd := exec.Command("go", "build", "-o", path, "./testdata/looker")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build looker: %w: %s", err, out)
	}
	return path, nil
})

// lookerImage holds the program that looks around, and files that are none.
func (w *world) lookerImage(t *testing.T, user string) string {
	t.Helper()
	path, err := buildLooker()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bodies := map[string]string{
		"bin/look": string(program), "bin/text": "no program\n", "bin/readme": "no program\n",
		"etc/passwd": "root:x:0:0::/root:/bin/sh\nann:x:1000:1001::/home/ann:/bin/sh\n",
		"etc/group":  "root:x:0:\nstaff:x:1001:\nextra:x:77:ann\n",
	}
	var headers []tar.Header
	for name := range bodies {
		h := tar.Header{Name: name, Typeflag: tar.TypeReg}
		if name == "bin/readme" {
			h.Mode = 0o644
		}
		headers = append(headers, h)
	}
	slices.SortFunc(headers, func(a, b tar.Header) int { return strings.Compare(a.Name, b.Name) })
	p := parcel{
		layers: [][]byte{layer(t, headers, bodies)},
		config: v1.ImageConfig{User: user, WorkingDir: "/made/by/runc", Env: []string{"PATH=/bin", "OF=image"}},
	}
	img, err := w.engine.Import(w.context(t), "haggle.test/look"+user+":1", p.archive(t))
	if err != nil {
		t.Fatal(err)
	}
	return img.Digest
}

func TestAJobThatWasASpareSeesWhatAnyJobSees(t *testing.T) {
	networks := newNetworks(t)
	w := newWarmWorld(t, 0)
	w.end()
	w.cfg.Networks = networks
	w.open(t)
	look := func(spec runtime.Spec) map[string]string {
		t.Helper()
		if err := w.engine.Start(w.context(t), spec.ID); err != nil {
			t.Fatal(err)
		}
		out, _ := w.read(t, spec.ID, 0, "")
		seen := map[string]string{}
		if err := json.Unmarshal([]byte(out), &seen); err != nil {
			t.Fatalf("%v: %q", err, out)
		}
		u, err := w.engine.Usage(w.context(t), spec.ID)
		if err != nil || u.NetInBytes != 0 || u.NetOutBytes != 0 {
			t.Errorf("it has used %+v: %v", u, err)
		}
		t.Logf("%s: processor time %s, of its disk %d", spec.ID, time.Duration(u.CPUNanos), u.DiskBytes)
		if err := w.engine.Remove(w.context(t), spec.ID); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	secrets := map[string][]byte{"key": []byte("of the job")}
	for name, spec := range map[string]runtime.Spec{
		"plain":   {},
		"network": {Network: runtime.Network{Mode: runtime.NetworkInternet}},
		"rich": {
			Env: []string{"A=1", "OF=job", "odd=\xff", "A=2"}, Args: []string{"look", "", "two words", "\xfe"}, Workdir: "/work/deep/er", Secrets: secrets,
			Devices: []runtime.DeviceID{{Class: runtime.SimulatedGPU, UUID: "SIM-1"}}, Network: runtime.Network{Mode: runtime.NetworkInternet},
		},
		"home": {Env: []string{"HOME="}},
	} {
		for _, user := range []string{"", "ann"} {
			t.Run(name+user, func(t *testing.T) {
				spec.ID, spec.Image, spec.DiskBytes = "cold-1", w.lookerImage(t, user), 32<<20
				if spec.Args == nil {
					spec.Args = []string{"look"}
				}
				if err := w.engine.Create(w.context(t), spec); err != nil {
					t.Fatal(err)
				}
				cold := look(spec)
				w.warm(t, spec) // under the same id, which a job may see
				if diff := cmp.Diff(cold, look(spec)); diff != "" {
					t.Error(diff)
				}
				if name == "rich" {
					t.Logf("%s\n%s\n%s", cold["status"], cold["mounts"], cold["self"])
				}
			})
		}
	}
}

func TestACommandThatIsNotThereIsTheJobsFaultInASpareToo(t *testing.T) {
	w := newWarmWorld(t, 0)
	image := w.lookerImage(t, "")
	for _, warm := range []bool{false, true} {
		for name, args := range map[string][]string{
			"an unknown command": {"nowhere"}, "an unknown path": {"/nowhere/at/all"}, "a file without rights": {"/bin/readme"},
			"a folder": {"/bin"}, "no program": {"text"},
		} {
			spec := runtime.Spec{ID: "bad", Image: image, Args: args}
			if warm {
				if _, err := w.engine.Warm(w.context(t), spec); err != nil {
					t.Fatal(err)
				}
			}
			err := w.engine.Create(w.context(t), spec)
			if name == "no program" && err == nil { // which only the kernel finds out
				if err := w.engine.Start(w.context(t), "bad"); err != nil {
					t.Errorf("warm %v, %s: %v", warm, name, err)
				}
				if st := w.awaitExit(t, "bad"); st.Exit == nil || st.Exit.Code != 1 {
					t.Errorf("warm %v, %s: %+v", warm, name, st.Exit)
				}
			} else if !errors.Is(err, runtime.ErrInvalidSpec) {
				t.Errorf("warm %v, %s: %v", warm, name, err)
			}
			if err := w.engine.Remove(w.context(t), "bad"); err != nil {
				t.Error(err)
			}
		}
	}
	if found := w.spares(t); len(found) > 1 {
		t.Errorf("spares that were told are left: %q", found)
	}
}
