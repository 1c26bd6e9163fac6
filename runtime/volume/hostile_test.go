//go:build linux

package volume_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"haggle/runtime/volume"
)

func TestAKilledProcessLeavesNothingThatPurgeOrMakeCannotClear(t *testing.T) {
	d, dir := newDisks(t)
	for n := range 20 {
		c := childCommand(t, dir, "churn")
		var out strings.Builder
		c.Stdout = &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		// It makes a disk in about 20 ms: somewhere within the first few.
		<-time.After(time.Duration(5+rand.IntN(100)) * time.Millisecond)
		_ = c.Process.Kill()
		if _ = c.Wait(); out.Len() > 0 {
			t.Fatalf("before it was killed: %s", out.String())
		}
		if n%2 == 0 {
			for _, id := range []string{"churn-0", "churn-1", "churn-2"} {
				disk := makeDisk(t, d, id, size)
				write(t, disk.Data+"/f", "x")
				write(t, disk.Upper+"/f", "x")
			}
			continue
		}
		if err := d.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := traces(t, dir); len(left) > 0 {
			t.Fatalf("kill %d left %q", n, left)
		}
	}
}

func TestTwoProcessesAtOnceMakeOneDisk(t *testing.T) {
	d, dir := newDisks(t)
	var wg sync.WaitGroup
	outs := make([]string, 6)
	for i := range outs {
		id := "same"
		if i >= 4 {
			id = "other-" + strconv.Itoa(i)
		}
		c := childCommand(t, dir, "make", id)
		wg.Go(func() {
			out, err := c.CombinedOutput()
			if outs[i] = string(out); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	for _, out := range outs[:4] {
		if out != filepath.Join(dir, "same.mnt/data")+"\n" {
			t.Errorf("got %q", out)
		}
	}
	if lines := mounts(t, dir); len(lines) != 3 {
		t.Errorf("mounted %q", lines)
	}
	for _, id := range []string{"same", "other-4", "other-5"} {
		wg.Go(func() {
			if err := d.Destroy(t.Context(), id); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if left := traces(t, dir); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

func TestMountsAndLinksInsideADiskLeadNowhere(t *testing.T) {
	d, dir := newDisks(t)
	disk := makeDisk(t, d, "job", size)
	makeDisk(t, d, "job-2", size) // a name that begins alike
	outside := t.TempDir()
	write(t, outside+"/canary", "alive")
	deep := disk.Data + "/a b/c"
	if err := errors.Join(
		os.MkdirAll(deep, 0o755), os.Mkdir(disk.Upper+"/m", 0o755),
		os.Symlink(outside, disk.Data+"/link"), os.Symlink(outside, disk.Upper+"/link"),
		unix.Mount(outside, deep, "", unix.MS_BIND, ""),
		unix.Mount("none", disk.Upper+"/m", "tmpfs", 0, "size=1m"),
		unix.Mount("none", disk.Data, "tmpfs", 0, "size=1m"), // hides what lies below
		unix.Mount("none", filepath.Dir(disk.Data), "tmpfs", 0, "size=1m"),
	); err != nil {
		t.Fatal(err)
	}
	if err := d.Destroy(t.Context(), "job"); err != nil {
		t.Fatal(err)
	}
	if read(t, outside+"/canary") != "alive" {
		t.Error("something outside was touched")
	}
	for _, trace := range traces(t, dir) {
		if !strings.Contains(trace, "job-2.") {
			t.Errorf("left %s", trace)
		}
	}
	if !strings.Contains(strings.Join(traces(t, dir), " "), "job-2.img") {
		t.Error("another disk is gone")
	}
}

func TestAFolderOfMountsInPlaceOfADiskIsNotWalked(t *testing.T) {
	d, _ := newDisks(t, volume.DiskQuota)
	disk := makeDisk(t, d, "job", size)
	outside := t.TempDir()
	write(t, outside+"/canary", "alive")
	at := disk.Data + "/m"
	if err := errors.Join(os.Mkdir(at, 0o755), unix.Mount(outside, at, "", unix.MS_BIND, "")); err != nil {
		t.Fatal(err)
	}
	if err := d.Destroy(t.Context(), "job"); err == nil {
		t.Error("destroyed through a mount")
	}
	if read(t, outside+"/canary") != "alive" {
		t.Error("something outside was touched")
	}
	if err := unix.Unmount(at, 0); err != nil {
		t.Fatal(err)
	}
}

func TestADiskInUseIsWaitedFor(t *testing.T) {
	d, dir := newDisks(t)
	disk := makeDisk(t, d, "job", size)
	// A process with a mount namespace of its own keeps the disk for as long as it runs.
	holder := exec.CommandContext(t.Context(), "cat")
	holder.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it runs
		t.Fatal(err)
	}
	file, err := os.Create(disk.Data + "/open")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := d.Destroy(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("destroyed in use: %v", err)
	}
	if _, err := os.Stat(disk.Data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it can still be reached: %v", err)
	}
	if ids, err := d.List(); err != nil || len(ids) != 1 {
		t.Errorf("list %q, %v", ids, err)
	}
	makeDisk(t, d, "neighbour", size) // who waits holds nobody up
	done := make(chan error, 1)
	go func() { done <- d.Destroy(t.Context(), "job") }()
	if err := errors.Join(file.Close(), in.Close(), holder.Wait()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, trace := range traces(t, dir) {
		if !strings.Contains(trace, "neighbour.") {
			t.Errorf("left %s", trace)
		}
	}
}

func TestAnOverlayOnADiskGoesByItsOwnMountOptions(t *testing.T) {
	d, _ := newDisks(t)
	disk := makeDisk(t, d, "job", size)
	lower, root := t.TempDir(), t.TempDir()
	options := "lowerdir=" + lower + ",upperdir=" + disk.Upper + ",workdir=" + disk.Work
	if err := unix.Mount("overlay", root, "overlay", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(root, 0); err != nil {
			t.Error(err)
		}
	})
	id, err := exec.LookPath("id")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, uid string }{{root, "0\n"}, {disk.Data, "65534\n"}} {
		path := c.dir + "/id"
		if err := errors.Join(os.WriteFile(path, program, 0o755), os.Chown(path, 0, 0), os.Chmod(path, 0o755|os.ModeSetuid)); err != nil {
			t.Fatal(err)
		}
		dir, err := os.Open(c.dir) // which nobody else may pass
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "/proc/self/fd/3/id", "-u")
		cmd.ExtraFiles = []*os.File{dir}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if got, err := cmd.CombinedOutput(); string(got) != c.uid {
			t.Errorf("a setuid program in %s runs as %q, %v", c.dir, got, err)
		}
		_ = dir.Close()
	}
	node := disk.Data + "/null"
	if err := unix.Mknod(node, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Open(node); !errors.Is(err, unix.EACCES) {
		t.Errorf("a device on the disk opens: %v", err)
	}
}

// BenchmarkMake10GB is the figure in the comment on Make.
func BenchmarkMake10GB(b *testing.B) {
	d, _ := newDisks(b)
	var destroy time.Duration
	for b.Loop() {
		makeDisk(b, d, "job", 10e9)
		begun := time.Now()
		if err := d.Destroy(b.Context(), "job"); err != nil {
			b.Fatal(err)
		}
		destroy += time.Since(begun)
	}
	b.ReportMetric(float64(destroy.Microseconds())/1000/float64(b.N), "ms-destroy/op")
}
