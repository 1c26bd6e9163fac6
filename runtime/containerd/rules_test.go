//go:build linux

package containerd

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"haggle/runtime"
)

func TestLayersAreFoundInTheMountsOfASnapshot(t *testing.T) {
	const dir = "/var/lib/c/snapshots"
	for name, c := range map[string]struct {
		kind, source string
		options      []string
		want         layers
	}{
		"the only one":           {"bind", dir + "/7/fs", []string{"ro", "rbind"}, layers{dir + "/7", []string{"fs"}}},
		"several":                {"overlay", "overlay", []string{"index=off", "lowerdir=" + dir + "/12/fs:" + dir + "/7/fs"}, layers{dir, []string{"12/fs", "7/fs"}}},
		"far apart":              {"overlay", "overlay", []string{"lowerdir=/a/1/fs:/b/2/fs"}, layers{"/", []string{"a/1/fs", "b/2/fs"}}},
		"a kind we do not know":  {"zfs", "pool/x", nil, layers{}},
		"an overlay of nothing":  {"overlay", "overlay", []string{"upperdir=/a"}, layers{}},
		"paths that are nowhere": {"overlay", "overlay", []string{"lowerdir=a:b"}, layers{}},
		"more than can be":       {"overlay", "overlay", []string{"lowerdir=" + strings.Repeat("/a:", 128) + "/b"}, layers{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findLayers(c.kind, c.source, c.options)
			if refused := errors.Is(err, runtime.ErrUnsupported); refused != (c.want.dir == "") || (err != nil) != refused {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(layers{})); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoTwoJobsShareARangeOfIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const room = 4
		r := idRanges{base: idLimit - room*idsPerJob}
		model := map[string]uint32{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			job := fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "job"))
			if rapid.Bool().Draw(t, "release") {
				r.release(job)
				delete(model, job)
				continue
			}
			first, err := r.take(job)
			if had, ok := model[job]; ok && (err != nil || first != had) {
				t.Fatalf("job %s had %d and now has %d: %v", job, had, first, err)
			} else if ok {
				continue
			}
			if full := len(model) == room; full != errors.Is(err, runtime.ErrNoRoom) || full != (err != nil) {
				t.Fatalf("with %d of %d ranges taken: %v", len(model), room, err)
			}
			if err != nil {
				continue
			}
			for other, taken := range model {
				if taken == first {
					t.Fatalf("jobs %s and %s have %d", job, other, first)
				}
			}
			if first < r.base || first%idsPerJob != 0 || first >= idLimit {
				t.Fatalf("job %s has %d", job, first)
			}
			model[job] = first
		}
	})
}

func TestADeviceHasOneHolder(t *testing.T) {
	card, slice, sim := runtime.DeviceID{Class: "c", UUID: "1"}, runtime.DeviceID{Class: "c", UUID: "1:a"}, runtime.DeviceID{Class: runtime.SimulatedGPU, UUID: "SIM-1"}
	overlap := func(a, b runtime.DeviceID) bool {
		return strings.HasPrefix(a.UUID, b.UUID) || strings.HasPrefix(b.UUID, a.UUID)
	}
	var c cards
	take := func(job string, want error, devices ...runtime.DeviceID) {
		t.Helper()
		if err := c.take(job, devices, overlap); !errors.Is(err, want) {
			t.Errorf("%s takes %v: %v", job, devices, err)
		}
	}
	take("a", nil, card, sim)
	take("a", nil, card)
	take("b", nil, sim)
	take("b", runtime.ErrDeviceBusy, card)
	take("b", runtime.ErrDeviceBusy, slice)
	c.release("a")
	take("b", nil, slice)
	take("a", runtime.ErrDeviceBusy, card)
	c = cards{shared: true}
	take("a", nil, card)
	take("b", nil, card)
}

func TestBothSidesOfACheckCount(t *testing.T) {
	inside, err := parseCheck(strings.NewReader(`{"name":"a","holds":true,"found":"x"}` + "\n" + `{"name":"b","holds":false,"found":"y","count":7}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := merge([]runtime.Protection{{Name: "a", Holds: true, Found: "w"}, {Name: "c", Holds: true}}, inside)
	want := []runtime.Protection{{Name: "a", Holds: true, Found: "w; x"}, {Name: "c", Holds: true}, {Name: "b", Found: "y"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "no object", "{}", strings.Repeat(`{"name":"a"}`+"\n", checkLines+1)} {
		if _, err := parseCheck(strings.NewReader(bad)); err == nil {
			t.Errorf("%.20q is accepted", bad)
		}
	}
	if isolationOf(got) != runtime.IsolationRunc || isolationOf(nil) != runtime.IsolationRunc || isolationOf(want[:2]) != runtime.IsolationUserns {
		t.Error("wrong kinds of isolation")
	}
}

func TestTheFilterLeavesNoWayAround(t *testing.T) {
	filter := callFilter()
	var allowed []string
	sockets := 0
	for _, r := range filter.Syscalls {
		allowed = append(allowed, r.Names...)
		if slices.Contains(r.Names, "socket") {
			if sockets++; len(r.Args) == 0 {
				t.Error("every family of sockets is open")
			}
		}
	}
	for _, name := range droppedCalls() {
		if name != "socket" && slices.Contains(allowed, name) {
			t.Errorf("%s is let through", name)
		}
	}
	for _, name := range []string{"read", "execve", "futex", "clone", "ptrace", "mlock", "process_vm_readv", "memfd_create", "sched_setaffinity"} {
		if !slices.Contains(allowed, name) {
			t.Errorf("%s is shut", name)
		}
	}
	if sockets != 4 || len(filter.Architectures) != 1 {
		t.Errorf("%d kinds of sockets, architectures %v", sockets, filter.Architectures)
	}
}

// FuzzALayerIsMeasuredOrRefused wants that no bytes take more than the bounds, or hang.
func FuzzALayerIsMeasuredOrRefused(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 3})
	_, _ = w.Write([]byte("abc"))
	_ = w.Close()
	f.Add(b.Bytes())
	f.Add([]byte("no archive"))
	f.Fuzz(func(t *testing.T, layer []byte) {
		g := gauge{bytes: 1 << 20, files: 10, room: math.MaxInt64}
		err := g.entries(bytes.NewReader(layer))
		if err == nil && (g.bytes < 0 || g.files < 0) {
			t.Errorf("passed with %d bytes and %d files left", g.bytes, g.files)
		}
		if err != nil && !errors.Is(err, runtime.ErrBadArchive) && !errors.Is(err, runtime.ErrImageTooBig) {
			t.Errorf("error %v", err)
		}
	})
}
