//go:build linux

package volume_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"haggle/runtime"
	"haggle/runtime/volume"
)

func TestAJobsDiskIsAFileSystemOfItsOwn(t *testing.T) {
	d, dir := newDisks(t)
	disk := makeDisk(t, d, "job-1", size)
	for path, want := range map[string]string{
		dir:                             "drwx--x--x 0",
		filepath.Dir(disk.Upper):        "drwx--x--- 0",
		disk.Upper:                      fmt.Sprintf("drwxr-xr-x %d", owner),
		disk.Work:                       "drwx------ 0",
		disk.Data:                       fmt.Sprintf("dtrwxrwxrwx %d", owner),
		filepath.Join(dir, "job-1.img"): "-rw------- 0",
	} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		st := info.Sys().(*syscall.Stat_t)
		if got := fmt.Sprintf("%s %d", info.Mode(), st.Uid); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
		if strings.HasSuffix(path, ".img") && st.Blocks*512 < size {
			t.Errorf("the file has taken %d bytes of %d", st.Blocks*512, size)
		}
	}
	lines := mounts(t, dir)
	if len(lines) != 1 || !strings.Contains(lines[0], " rw,nosuid,nodev,noatime ") {
		t.Errorf("mounted: %q", lines)
	}
	u, err := d.Usage("job-1")
	if err != nil || u.UsedInodes > 16 || u.SizeInodes != size/(16<<10) || u.UsedBytes > mib || u.SizeBytes < size*9/10 || u.FreeBytes > u.SizeBytes || u.Full() || d.Full("job-1") {
		t.Errorf("usage %+v, %v", u, err)
	}
	if ids, err := d.List(); err != nil || !slices.Equal(ids, []string{"job-1"}) {
		t.Errorf("list %q, %v", ids, err)
	}
}

func TestALoopDeviceBelongsToTheMountAlone(t *testing.T) {
	d, dir := newDisks(t)
	makeDisk(t, d, "job", size)
	for _, path := range traces(t, dir) {
		folder, ok := strings.CutSuffix(strings.Fields(path)[0], "/backing_file")
		if !ok {
			continue
		}
		if got := read(t, folder+"/autoclear"); got != "1\n" {
			t.Errorf("%s clears itself: %q", folder, got)
		}
		if got := read(t, folder+"/dio"); got != "1\n" {
			t.Errorf("%s goes past the page cache: %q", folder, got)
		}
		return
	}
	t.Error("no loop device found")
}

func TestMakingADiskAgainChangesNothing(t *testing.T) {
	d, _ := newDisks(t)
	disk := makeDisk(t, d, "job", size-1)
	write(t, disk.Data+"/kept", "work")
	if err := errors.Join(os.Chown(disk.Data, owner+1000, owner+1000), os.Chmod(disk.Data, 0o700)); err != nil {
		t.Fatal(err) // as a job may do with what it owns
	}
	if again := makeDisk(t, d, "job", size); again != disk {
		t.Errorf("got %+v, then %+v", disk, again)
	}
	info, err := os.Stat(disk.Data)
	if err != nil {
		t.Fatal(err)
	}
	if read(t, disk.Data+"/kept") != "work" || info.Sys().(*syscall.Stat_t).Uid != owner+1000 || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v", info)
	}
	if _, err := d.Make(t.Context(), "job", 2*size, owner); !errors.Is(err, runtime.ErrConflict) {
		t.Errorf("another size: %v", err)
	}
}

func TestADiskIsMountedAgainAfterAReboot(t *testing.T) {
	d, _ := newDisks(t)
	disk := makeDisk(t, d, "job", size)
	write(t, disk.Data+"/kept", "work")
	if err := unix.Unmount(filepath.Dir(disk.Data), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Usage("job"); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("usage of an unmounted disk: %v", err)
	}
	if _, err := os.Stat(disk.Data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there without the disk: %v", err)
	}
	makeDisk(t, d, "job", size)
	if read(t, disk.Data+"/kept") != "work" {
		t.Error("the work is lost")
	}
}

func TestADiskThatACrashOfTheMachineLeftDirtyIsMounted(t *testing.T) {
	d, dir := newDisks(t)
	disk := makeDisk(t, d, "job", size)
	f, err := os.Create(disk.Data + "/synced")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("work")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	// What a power cut leaves is what the file holds now.
	dirty, err := os.ReadFile(dir + "/job.img")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/after.img", dirty, 0o600); err != nil {
		t.Fatal(err)
	}
	after := makeDisk(t, d, "after", size)
	if got := read(t, after.Data+"/synced"); got != "work" {
		t.Errorf("the file holds %q", got)
	}
	write(t, after.Upper+"/more", "x")
}

func TestWhatWasLeftHalfMadeIsMadeAnew(t *testing.T) {
	d, dir := newDisks(t)
	disk := makeDisk(t, d, "mounted", size)
	write(t, disk.Data+"/stale", "x")
	if err := errors.Join(
		os.Rename(dir+"/mounted.img", dir+"/mounted.new"), // it died before the rename
		os.WriteFile(dir+"/begun.new", []byte("no file system"), 0o600),
		os.Mkdir(dir+"/begun.mnt", 0o700),
	); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"mounted", "begun"} {
		disk := makeDisk(t, d, id, size)
		if names, err := os.ReadDir(disk.Data); err != nil || len(names) > 0 {
			t.Errorf("%s holds %v, %v", id, names, err)
		}
		if _, err := os.Stat(dir + "/" + id + ".new"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s.new: %v", id, err)
		}
	}
}

func TestThirtyDisksMadeAndDestroyedLeaveNothing(t *testing.T) {
	d, dir := newDisks(t)
	for n := range 30 {
		id := fmt.Sprintf("job-%d", n)
		disk := makeDisk(t, d, id, size)
		write(t, disk.Data+"/f", "x")
		if err := d.Destroy(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if left := traces(t, dir); len(left) > 0 {
			t.Fatalf("%s left %q", id, left)
		}
	}
	if err := d.Destroy(t.Context(), "never-made"); err != nil {
		t.Errorf("an unknown disk: %v", err)
	}
}

func TestADiskThatCannotBeMadeLeavesNothing(t *testing.T) {
	d, dir := newDisks(t)
	if err := os.WriteFile(dir+"/job.mnt", nil, 0o600); err != nil { // nothing can be mounted on it
		t.Fatal(err)
	}
	if _, err := d.Make(t.Context(), "job", size, owner); err == nil {
		t.Error("made on a file")
	}
	if err := os.Remove(dir + "/job.mnt"); err != nil {
		t.Fatal(err)
	}
	if left := traces(t, dir); len(left) > 0 {
		t.Errorf("left %q", left)
	}
	makeDisk(t, d, "job", size)
}

func TestBadIDsAndSizesAreRefused(t *testing.T) {
	d, _ := newDisks(t)
	for _, id := range []string{"", ".", "..", "../x", "a/b", "A", "a.img", strings.Repeat("a", 65), "a\x00"} {
		if _, err := d.Make(t.Context(), id, size, owner); !errors.Is(err, runtime.ErrInvalidSpec) {
			t.Errorf("make %q: %v", id, err)
		}
		if err := d.Destroy(t.Context(), id); !errors.Is(err, runtime.ErrInvalidSpec) {
			t.Errorf("destroy %q: %v", id, err)
		}
		if _, err := d.Usage(id); !errors.Is(err, runtime.ErrInvalidSpec) {
			t.Errorf("usage of %q: %v", id, err)
		}
	}
	for _, bytes := range []int64{-1, 0, volume.MinBytes - 1, volume.MaxBytes + 1} {
		if _, err := d.Make(t.Context(), "job", bytes, owner); !errors.Is(err, runtime.ErrInvalidSpec) {
			t.Errorf("%d bytes: %v", bytes, err)
		}
	}
	makeDisk(t, d, "least", volume.MinBytes)
}

func TestABadConfigIsRefused(t *testing.T) {
	requireLoop(t)
	theirs := t.TempDir()
	if err := os.Chown(theirs, owner, owner); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	for name, cfg := range map[string]volume.Config{
		"no folder":             {},
		"a relative folder":     {Dir: "disks"},
		"the root":              {Dir: "/"},
		"an unclean path":       {Dir: "/tmp/../tmp/x"},
		"a line break":          {Dir: "/tmp/a\nb"},
		"another user's":        {Dir: theirs},
		"a file":                {Dir: file},
		"an unknown protection": {Dir: filepath.Join(theirs, "never"), Without: []string{"disk-quotas"}},
	} {
		if _, err := volume.New(cfg); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
