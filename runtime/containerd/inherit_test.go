//go:build linux

package containerd_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"haggle/runtime"
	"haggle/runtime/containerd"
)

// inherit lets a second job take over what the first has kept. It prints the id of the first when that has something to lose.
func inherit(ctx context.Context, e *containerd.Engine, first runtime.Spec, out io.Writer) error {
	first.Args = []string{"write", "/work/kept", "kept"}
	if err := errors.Join(e.Create(ctx, first), e.Start(ctx, first.ID)); err != nil {
		return err
	}
	log, err := e.Log(ctx, first.ID, 0, true)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, log)
	if err := errors.Join(err, log.Close(), e.Kill(ctx, first.ID)); err != nil {
		return err
	}
	fmt.Fprintln(out, first.ID) // from here on it has something to lose
	if got, err := ask(ctx, e, first.ID, "read /work/kept\n"); err != nil || got != "kept" {
		return fmt.Errorf("the visit finds %q: %w", got, err)
	}
	second := heirOf(first)
	if err := e.Create(ctx, second); err != nil {
		return err
	}
	if got, err := ask(ctx, e, second.ID, "read /work/kept\n"); err != nil || got != "kept" {
		return fmt.Errorf("the second job finds %q: %w", got, err)
	}
	return errors.Join(e.Start(ctx, second.ID), e.Kill(ctx, second.ID))
}

// heirOf is the job that takes over from another.
func heirOf(first runtime.Spec) runtime.Spec {
	second := first
	second.ID, second.From, second.Args = first.ID+"-b", first.ID, []string{"stubborn"}
	return second
}

func TestAnEngineThatIsKilledOverATakeoverLosesNothing(t *testing.T) {
	w := newWorld(t)
	image := w.image(t)
	before := w.remains(t)
	kills := 4
	if full() {
		kills = 30
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for n := range kills {
		w.end()
		bare := w.cfg
		bare.Log = nil
		id := runVictim(t, victim{Config: bare, Image: image, Prefix: fmt.Sprintf("k%d", n), Do: doInherit}, random, 1500*time.Millisecond)
		w.open(t)
		ctx := w.context(t)
		first := victimSpec(id, image, "")
		first.Args = []string{"write", "/work/kept", "kept"}
		_, err := w.engine.Status(ctx, heirOf(first).ID)
		taken := err == nil
		if st, err := w.engine.Status(ctx, id); err == nil && st.State == runtime.Stopped {
			got, err := ask(ctx, w.engine, id, "read /work/kept\n")
			if !taken && got != "kept" || taken && !errors.Is(err, runtime.ErrNotFound) {
				t.Errorf("kill %d: taken %t, what the first job kept is %q: %v", n, taken, got, err)
			}
			if err := w.engine.Create(ctx, heirOf(first)); err != nil {
				t.Errorf("kill %d: taken %t, take over again: %v", n, taken, err)
			}
			if got := w.ask(t, heirOf(first).ID, "read /work/kept\n"); got != "kept" {
				t.Errorf("kill %d: taken %t, the second job finds %q", n, taken, got)
			}
		} else {
			t.Logf("kill %d: the first job is %+v: %v", n, st, err)
		}
		if _, err := w.engine.Sweep(ctx, func(string) bool { return false }); err != nil {
			t.Fatalf("kill %d: sweep: %v", n, err)
		}
		w.wantRemains(t, before)
	}
}

func TestFilesBelongToTheSameUsersInTheNextJob(t *testing.T) {
	w := newVisitWorld(t)
	ctx := w.context(t)
	etc := []tar.Header{
		{Name: "etc/passwd", Typeflag: tar.TypeReg, Mode: 0o666},
		{Name: "etc/group", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "tmp", Typeflag: tar.TypeDir, Mode: 0o1777},
	}
	for user, want := range map[string]string{"": "0 0", "trainer": "1234 77"} {
		p := parcel{layers: [][]byte{probeLayer(t, etc...)}, config: v1.ImageConfig{Entrypoint: []string{"/probe"}, User: user}}
		img, err := w.engine.Import(ctx, "haggle.test/from:1", p.archive(t))
		if err != nil {
			t.Fatal(err)
		}
		last := ""
		for n, args := range [][]string{
			{"write", "/work/mine", "1"},
			{"write", "/tmp/mine", "2"},
			{"write", "/etc/passwd", "nobody is anybody"}, // of which nothing may depend
			{"stat", "/work/mine", "/tmp/mine", "/etc/group", "/proc/self"},
		} {
			spec := runtime.Spec{ID: fmt.Sprintf("job%s-%d", user, n), From: last, Image: img.Digest, Args: args, DiskBytes: 32 << 20}
			if err := errors.Join(w.engine.Create(ctx, spec), w.engine.Start(ctx, spec.ID)); err != nil {
				t.Fatal(err)
			}
			if st := w.awaitExit(t, spec.ID); st.Exit == nil || st.Exit.Code != 0 {
				t.Fatalf("%q ended as %+v", args, st)
			}
			if last != "" && n == 2 { // it is in nobody's way any more
				if err := w.engine.Remove(ctx, last); err != nil {
					t.Fatal(err)
				}
			}
			last = spec.ID
		}
		out, _ := w.read(t, last, 0, "")
		if want := fmt.Sprintf("/work/mine %s 644\n/tmp/mine %s 644\n/etc/group 0 0 644\n/proc/self %s 555\n", want, want, want); out != want {
			t.Errorf("user %q: %q", user, out)
		}
		w.start(t, "stranger", "stubborn") // the jobs before have gone, but not their range of ids
		ids := strings.Fields(w.ask(t, last, "read /proc/self/uid_map\n"))
		if first := fmt.Sprint(w.firstID(t, "stranger")); len(ids) != 3 || ids[1] == first {
			t.Errorf("the stranger has the ids from %s on, and what was kept %q", first, ids)
		}
		if err := w.engine.Remove(ctx, "stranger"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADiskFindsItsWayBackAfterATakeoverThatFails(t *testing.T) {
	w := newVisitWorld(t)
	ctx := w.context(t)
	image := w.image(t)
	w.keep(t, runtime.Spec{ID: "ended", Image: image, DiskBytes: 32 << 20})
	for name, change := range map[string]func(s *runtime.Spec){
		"no such command": func(s *runtime.Spec) { s.Workdir = "/probe" },
		"another size":    func(s *runtime.Spec) { s.DiskBytes = 64 << 20 },
		"no network":      func(s *runtime.Spec) { s.Network.Mode = runtime.NetworkInternet },
	} {
		spec := runtime.Spec{ID: "next", From: "ended", Image: image, Args: []string{"stubborn"}, DiskBytes: 32 << 20}
		change(&spec)
		if err := w.engine.Create(ctx, spec); err == nil {
			t.Errorf("%s: it was made", name)
		}
		if got := w.ask(t, "ended", "read /work/kept\n"); got != "kept" {
			t.Errorf("%s: the first job has %q", name, got)
		}
	}
	spec := runtime.Spec{ID: "next", From: "ended", Image: image, Args: []string{"cat", "/work/kept"}, DiskBytes: 32 << 20}
	if err := errors.Join(w.engine.Create(ctx, spec), w.engine.Start(ctx, "next")); err != nil {
		t.Fatal(err)
	}
	if out, _ := w.read(t, "next", 0, ""); out != "kept" {
		t.Errorf("the next job finds %q", out)
	}
}
