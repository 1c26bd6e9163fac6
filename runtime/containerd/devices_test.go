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
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"haggle/runtime"
	"haggle/runtime/device"
)

const cardClass = "example.com/card"

// fakeCards makes two character devices below /dev and their description. Their drivers do nothing when they are opened.
func fakeCards(t *testing.T) (nodes [2]string, devices *device.Devices) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev", "haggle-test-") //nolint:usetesting // devices of cards lie below /dev
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	type node struct {
		Path string `json:"path"`
	}
	type card struct {
		Name  string `json:"name"`
		Edits struct {
			Nodes []node `json:"deviceNodes"`
		} `json:"containerEdits"`
	}
	var cards []card
	for i, minor := range []uint32{235, 234} { // autofs, btrfs-control
		nodes[i] = fmt.Sprintf("%s/card%d", dir, i)
		if err := unix.Mknod(nodes[i], unix.S_IFCHR, int(unix.Mkdev(10, minor))); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(nodes[i], 0o666); err != nil {
			t.Fatal(err)
		}
		c := card{Name: fmt.Sprintf("CARD-%d", i)}
		c.Edits.Nodes = []node{{nodes[i]}}
		cards = append(cards, c)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"cdiVersion": "0.6.0", "kind": cardClass, "devices": cards})
	if err != nil {
		t.Fatal(err)
	}
	specs := t.TempDir()
	if err := os.WriteFile(filepath.Join(specs, "card.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	devices, err = device.New(device.Config{Dirs: []string{specs}, Nodes: []string{dir + "/*"}})
	if err != nil {
		t.Fatal(err)
	}
	return nodes, devices
}

func cardID(n int) runtime.DeviceID {
	return runtime.DeviceID{Class: cardClass, UUID: fmt.Sprintf("CARD-%d", n)}
}

func TestOnlyTheLeasedCardOpens(t *testing.T) {
	nodes, devices := fakeCards(t)
	w := newWorld(t)
	w.end()
	w.cfg.Devices = devices
	w.open(t)
	ctx := w.context(t)
	caps, err := w.engine.Probe(ctx)
	if err != nil || len(caps.Devices) != 2 {
		t.Fatalf("the engine has %+v: %v", caps, err)
	}
	other := tar.Header{Name: "other", Typeflag: tar.TypeChar, Mode: 0o666, Devmajor: 10, Devminor: 234}
	p := parcel{layers: [][]byte{probeLayer(t, other)}, config: v1.ImageConfig{Entrypoint: []string{"/probe"}}}
	img, err := w.engine.Import(ctx, "haggle.test/card:1", p.archive(t))
	if err != nil {
		t.Fatal(err)
	}
	run := func(id string, card int, args ...string) {
		t.Helper()
		spec := runtime.Spec{ID: id, Image: img.Digest, Args: args, Devices: []runtime.DeviceID{cardID(card)}, DiskBytes: 32 << 20}
		if err := errors.Join(w.engine.Create(ctx, spec), w.engine.Start(ctx, id)); err != nil {
			t.Fatal(err)
		}
	}
	run("holder", 0, "stubborn")
	run("neighbour", 1, "stubborn")
	if err := w.engine.Kill(ctx, "neighbour"); err != nil {
		t.Fatal(err)
	}
	w.awaitFree(t, 1)
	run("opener", 1, "open", nodes[1], nodes[0], "/other")
	want := nodes[1] + " opened\n" + nodes[0] + " no such file or directory\n/other permission denied\n"
	if out, _ := w.read(t, "opener", 0, ""); out != want {
		t.Errorf("opening:\n%swant:\n%s", out, want)
	}
	w.awaitFree(t, 1)
	run("maker", 1, "mknod", "/dev/made", "10", "235")
	if st := w.awaitExit(t, "maker"); st.Exit == nil || st.Exit.Code != 1 {
		t.Errorf("making a device ended as %+v", st.Exit)
	}
	// What the job's cgroup lets through, tried by a process of ours in it: no path or right of the job is in the way.
	want = nodes[0] + " opened\n" + nodes[1] + " operation not permitted\n"
	if out := w.openIn(t, "holder", nodes[0], nodes[1]); out != want {
		t.Errorf("in the job's cgroup:\n%swant:\n%s", out, want)
	}
}

// awaitFree waits until no job holds a card.
func (w *world) awaitFree(t *testing.T, card int) {
	t.Helper()
	ctx, image := w.context(t), w.image(t)
	for {
		err := w.engine.Create(ctx, runtime.Spec{ID: "asker", Image: image, Devices: []runtime.DeviceID{cardID(card)}, DiskBytes: 32 << 20})
		if err := w.engine.Remove(ctx, "asker"); err != nil {
			t.Fatal(err)
		}
		if err == nil {
			return
		}
		if !errors.Is(err, runtime.ErrDeviceBusy) {
			t.Fatal(err)
		}
	}
}

// openIn opens files from a process that is in the job's cgroup and in nothing else of it.
func (w *world) openIn(t *testing.T, id string, paths ...string) string {
	t.Helper()
	cgroup := "/sys/fs/cgroup" + w.cfg.CgroupParent + "/" + id
	if _, err := os.Stat(cgroup); err != nil {
		cgroup = "/sys/fs/cgroup/devices" + w.cfg.CgroupParent + "/" + id
	}
	script := `echo $$ > "$1/cgroup.procs" && shift && exec "$@"`
	cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", script, "sh", cgroup, probeBinary(t), "open"}, paths...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestACardHasOneJobAtATime(t *testing.T) {
	_, devices := fakeCards(t)
	w := newWorld(t)
	w.end()
	w.cfg.Devices = devices
	w.open(t)
	ctx := w.context(t)
	spec := runtime.Spec{
		ID: "holder", Image: w.image(t), Args: []string{"stubborn"}, Devices: []runtime.DeviceID{cardID(0)}, DiskBytes: 32 << 20,
	}
	if err := w.engine.Create(ctx, spec); err != nil {
		t.Fatal(err)
	}
	rival := spec
	rival.ID = "rival"
	if err := w.engine.Create(ctx, rival); !errors.Is(err, runtime.ErrDeviceBusy) {
		t.Errorf("a second job: %v", err)
	}
	if err := w.engine.Start(ctx, "holder"); err != nil {
		t.Fatal(err)
	}
	w.end()
	w.open(t) // what is known of the card stands with the job
	if err := w.engine.Create(ctx, rival); !errors.Is(err, runtime.ErrDeviceBusy) {
		t.Errorf("a second job after a restart: %v", err)
	}
	unknown := spec
	unknown.ID, unknown.Devices = "unknown", []runtime.DeviceID{cardID(7)}
	if err := w.engine.Create(ctx, unknown); !errors.Is(err, runtime.ErrNoDevice) {
		t.Errorf("a card that is not there: %v", err)
	}
	if err := w.engine.Kill(ctx, "holder"); err != nil {
		t.Fatal(err)
	}
	w.awaitFree(t, 0)
	if err := errors.Join(w.engine.Create(ctx, rival), w.engine.Remove(ctx, "rival")); err != nil {
		t.Errorf("after the end: %v", err)
	}
}
