//go:build linux

package containerd_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	ctr "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/pkg/namespaces"

	"haggle/runtime"
)

// firstID reads the first id of a job's range as the kernel knows it.
func (w *world) firstID(t *testing.T, id string) int {
	t.Helper()
	pids := jobProcesses(t, w.cfg.CgroupParent+"/"+id)
	if len(pids) == 0 {
		t.Fatalf("job %s has no process", id)
	}
	var first [2]int
	for i, name := range []string{"uid_map", "gid_map"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pids[0], name))
		if err != nil {
			t.Fatal(err)
		}
		var inside, size int
		if _, err := fmt.Sscan(string(b), &inside, &first[i], &size); err != nil || inside != 0 || size != 65536 || strings.Count(string(b), "\n") != 1 {
			t.Fatalf("%s is %q: %v", name, b, err)
		}
	}
	if first[0] != first[1] {
		t.Fatalf("users begin at %d, groups at %d", first[0], first[1])
	}
	return first[0]
}

func TestEveryJobHasUsersOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.start(t, "one", "stubborn")
	w.start(t, "two", "stubborn")
	one, two := w.firstID(t, "one"), w.firstID(t, "two")
	if one < 2000224256 || two < 2000224256 || one == two {
		t.Errorf("the jobs' users begin at %d and %d", one, two)
	}
	w.end()
	w.open(t) // the next program must not give a range of these away
	w.start(t, "three", "stubborn")
	if three := w.firstID(t, "three"); three == one || three == two {
		t.Errorf("the third job's users begin at %d, as those of another's", three)
	}
	if err := w.engine.Remove(w.context(t), "one"); err != nil {
		t.Fatal(err)
	}
	w.start(t, "four", "stubborn")
	if four := w.firstID(t, "four"); four != one {
		t.Errorf("the fourth job's users begin at %d, and %d is free", four, one)
	}
}

func TestAJobWritesToItsOwnDiskOnly(t *testing.T) {
	w := newWorld(t)
	image := w.image(t)
	run := func(id, until string, args ...string) string {
		t.Helper()
		ctx := w.context(t)
		spec := runtime.Spec{ID: id, Image: image, Args: args, DiskBytes: 32 << 20}
		if err := errors.Join(w.engine.Create(ctx, spec), w.engine.Start(ctx, id)); err != nil {
			t.Fatal(err)
		}
		out, _ := w.read(t, id, 0, until)
		return out
	}
	run("writer", "", "write", "/etc/made", "x")
	disk := filepath.Join(w.cfg.Root, "disks", "writer.mnt")
	info, err := os.Stat(filepath.Join(disk, "upper", "etc", "made"))
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid < 2000224256 || st.Uid != st.Gid {
		t.Errorf("on the host the file belongs to %d:%d", st.Uid, st.Gid)
	}
	run("worker", "", "write", "/work/made", "x")
	if _, err := os.Stat(filepath.Join(w.cfg.Root, "disks", "worker.mnt", "data", "made")); err != nil {
		t.Error(err)
	}
	if out := run("reader", "", "stat", "/probe", "/work", "/", "/tmp"); out != "/probe 0 0 755\n/work 0 0 777\n/ 0 0 755\n/tmp 0 0 777\n" {
		t.Errorf("the job sees %q", out)
	}
	run("filler", "no space left on device", "fill", "/big")
}

func TestTheLayersOfAJobOutliveTheirImage(t *testing.T) {
	w := newWorld(t)
	w.start(t, "job", "polite")
	w.read(t, "job", 0, "ready")
	client, err := ctr.New(w.cfg.State + "/containerd.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := namespaces.WithNamespace(w.context(t), "haggle")
	collect := func() {
		t.Helper()
		if err := client.ImageService().Delete(ctx, "haggle.test/probe:1", images.SynchronousDelete()); err != nil {
			t.Fatal(err)
		}
	}
	count := func() int {
		t.Helper()
		found, err := filepath.Glob(w.cfg.Root + "/io.containerd.snapshotter.v1.overlayfs/snapshots/*/fs/probe")
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	collect()
	if n := count(); n != 1 {
		t.Errorf("%d copies of the image under a running job", n)
	}
	if err := w.engine.Remove(ctx, "job"); err != nil {
		t.Fatal(err)
	}
	w.image(t)
	collect()
	if n := count(); n != 0 {
		t.Errorf("%d copies of an image that nobody uses", n)
	}
}
