//go:build linux

package containerd_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"haggle/runtime"
	"haggle/runtime/archive"
)

// bring imports an image of the probe under a name; the word makes it another one.
func (w *world) bring(t *testing.T, name, word string) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := archive.Write(&b, archive.Image{
		Files: []archive.File{probeFile(t)}, Entrypoint: []string{"/probe"}, Cmd: []string{"print", word},
	}); err != nil {
		t.Fatal(err)
	}
	img, err := w.engine.Import(w.context(t), name, &b)
	if err != nil {
		t.Fatal(err)
	}
	return img.Digest
}

// stored counts the blobs and the layers that containerd has on the disk.
func (w *world) stored(t *testing.T) (blobs, layers int) {
	t.Helper()
	packed, err := filepath.Glob(filepath.Join(w.cfg.Root, "io.containerd.content.v1.content/blobs/sha256/*"))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := filepath.Glob(filepath.Join(w.cfg.Root, "io.containerd.snapshotter.v1.*/snapshots/*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(packed), len(unpacked)
}

func TestTheRoomOfAnImageIsFreeWhenItsLastJobIsGone(t *testing.T) {
	w := newWarmWorld(t, 0)
	blobs, layers := w.stored(t)
	digest := w.bring(t, "one", "x")
	ctx := w.context(t)
	spec := runtime.Spec{ID: "a", Image: digest, Args: []string{"stubborn"}}
	w.warm(t, spec)
	if _, err := w.engine.Warm(ctx, spec); err != nil { // another that nobody takes
		t.Fatal(err)
	}
	if err := w.engine.RemoveImage(ctx, digest); err != nil {
		t.Fatal(err)
	}
	if b, l := w.stored(t); b != blobs+1 || l != layers+1 {
		t.Errorf("%d blobs and %d layers more while a job needs the config and one layer", b-blobs, l-layers)
	}
	if _, err := w.engine.Warm(ctx, spec); !errors.Is(err, runtime.ErrImageNotFound) {
		t.Errorf("a spare of an image that is gone: %v", err)
	}
	if err := errors.Join(w.engine.Start(ctx, "a"), w.engine.Kill(ctx, "a")); err != nil {
		t.Fatal(err)
	}
	heir := heirOf(spec)
	if err := errors.Join(w.engine.Create(ctx, heir), w.engine.Remove(ctx, "a")); err != nil {
		t.Fatal(err)
	}
	if b, l := w.stored(t); b != blobs+1 || l != layers+1 {
		t.Errorf("%d blobs and %d layers more while the heir needs them", b-blobs, l-layers)
	}
	if err := errors.Join(w.engine.Start(ctx, heir.ID), w.engine.Remove(ctx, heir.ID)); err != nil {
		t.Fatal(err)
	}
	if b, l := w.stored(t); b != blobs || l != layers {
		t.Errorf("%d blobs and %d layers are left", b-blobs, l-layers)
	}
}

func TestAJobAndTheEndOfItsImageAtOnceLeaveAllOrNothing(t *testing.T) {
	w := newWorld(t)
	blobs, layers := w.stored(t)
	for n := range 10 {
		digest := w.bring(t, "one", "x")
		ctx := w.context(t)
		var made, gone error
		var both sync.WaitGroup
		start := make(chan struct{})
		both.Go(func() {
			<-start
			made = w.engine.Create(ctx, runtime.Spec{ID: "a", Image: digest, Args: []string{"print", "whole"}})
		})
		both.Go(func() {
			<-start
			for range rand.IntN(20) {
				_, _ = w.engine.Images(ctx)
			}
			gone = w.engine.RemoveImage(ctx, digest)
		})
		close(start)
		both.Wait()
		if gone != nil || made != nil && !errors.Is(made, runtime.ErrImageNotFound) {
			t.Fatalf("round %d: created: %v; removed: %v", n, made, gone)
		}
		if made == nil {
			if err := w.engine.Start(ctx, "a"); err != nil {
				t.Fatal(err)
			}
			if out, _ := w.read(t, "a", 0, ""); out != "whole\n" {
				t.Errorf("round %d: the job says %q", n, out)
			}
		}
		if err := w.engine.Remove(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		if b, l := w.stored(t); b != blobs || l != layers {
			t.Errorf("round %d: %d blobs and %d layers are left", n, b-blobs, l-layers)
		}
	}
}
