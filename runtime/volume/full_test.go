//go:build linux

package volume_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"haggle/runtime"
	"haggle/runtime/volume"
)

// fill writes a file until there is no room, or to the limit, and returns how much went in.
func fill(t *testing.T, path string, limit int) int {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, mib)
	for sum := 0; ; {
		n, err := f.Write(chunk[:min(mib, limit-sum)])
		if sum += n; errors.Is(err, unix.ENOSPC) || sum == limit {
			return sum
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAJobCanFillItsOwnDiskAndNothingElse(t *testing.T) {
	d, _ := newDisks(t)
	disk := makeDisk(t, d, "job", size)
	var alarm volume.Alarm
	rings := func() bool {
		u, err := d.Usage("job")
		if err != nil {
			t.Fatal(err)
		}
		return alarm.Rings(u)
	}
	if rings() {
		t.Error("an empty disk is full")
	}
	for range 2 { // layer and data share it
		got := fill(t, disk.Upper+"/big", 2*size)
		if got > size || got < size*8/10 {
			t.Errorf("%d bytes went into %d", got, size)
		}
		if n := fill(t, disk.Data+"/more", 2*size); n > mib {
			t.Errorf("another %d bytes went in", n)
		}
		if !d.Full("job") || !rings() || rings() {
			t.Error("a full disk is told other than once")
		}
		if err := errors.Join(os.Remove(disk.Upper+"/big"), os.Remove(disk.Data+"/more")); err != nil {
			t.Fatal(err)
		}
		if rings() || d.Full("job") {
			t.Error("a disk with room is full")
		}
	}
}

func TestWithoutItsProtectionADiskTakesMore(t *testing.T) {
	d, dir := newDisks(t, volume.DiskQuota)
	disk := makeDisk(t, d, "job", volume.MinBytes)
	if got := fill(t, disk.Data+"/big", 2*volume.MinBytes); got != 2*volume.MinBytes {
		t.Errorf("only %d bytes went in", got)
	}
	if again := makeDisk(t, d, "job", volume.MinBytes); again != disk {
		t.Errorf("got %+v, then %+v", disk, again)
	}
	if _, err := d.Usage("job"); err != nil {
		t.Error(err)
	}
	if lines := mounts(t, dir); len(lines) > 0 {
		t.Errorf("mounted %q", lines)
	}
}

// files makes empty files until there is no room, or limit of them, and returns how many there are.
func files(t *testing.T, dir string, limit int) int {
	t.Helper()
	for n := range limit {
		fd, err := unix.Open(fmt.Sprintf("%s/%d", dir, n), unix.O_CREAT|unix.O_WRONLY, 0o600)
		if errors.Is(err, unix.ENOSPC) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(fd)
	}
	return limit
}

func TestADiskTakesOneFileForEach16KiB(t *testing.T) {
	d, _ := newDisks(t)
	disk := makeDisk(t, d, "job", volume.MinBytes)
	most := int(volume.MinBytes / (16 << 10))
	if got := files(t, disk.Data, 2*most); got > most || got < most-32 {
		t.Errorf("%d files went in, want about %d", got, most)
	}
	u, err := d.Usage("job")
	if err != nil || !d.Full("job") || u.FreeBytes < volume.MinBytes/4 {
		t.Errorf("usage %+v, %v", u, err)
	}
	without, _ := newDisks(t, volume.InodeQuota)
	if got := files(t, makeDisk(t, without, "job", volume.MinBytes).Data, 2*most); got != 2*most {
		t.Errorf("without the protection only %d files went in", got)
	}
}

func TestAFullDiskRingsOnceUntilThereIsPlentyAgain(t *testing.T) {
	const g = 1 << 30
	free := func(bytes, inodes uint64) volume.Usage {
		return volume.Usage{SizeBytes: 10 * g, UsedBytes: 10*g - bytes, FreeBytes: bytes, SizeInodes: 1000, UsedInodes: 1000 - inodes}
	}
	var alarm volume.Alarm
	for i, step := range []struct {
		u     volume.Usage
		rings bool
	}{
		{free(g, 500), false},
		{free(2*mib, 500), false},
		{free(2*mib-1, 500), true},
		{free(0, 500), false},
		{free(4*mib, 500), false}, // a little was tidied up
		{free(0, 500), false},
		{free(8*mib, 500), false}, // enough
		{free(0, 500), true},
		{free(g, 500), false},
		{free(g, 16), false},
		{free(g, 15), true},
		{free(g, 0), false},
	} {
		if got := alarm.Rings(step.u); got != step.rings {
			t.Errorf("step %d: rings %v", i, got)
		}
	}
}

func TestADiskThatTheMachineHasNoRoomForIsRefusedBeforeAnythingIsMade(t *testing.T) {
	d, dir := newDisks(t)
	if _, err := d.Make(t.Context(), "job", volume.MaxBytes, owner); !errors.Is(err, runtime.ErrNoRoom) {
		t.Errorf("16 TiB: %v", err)
	}
	if left := traces(t, dir); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

func TestASmallMachineKeepsATwentiethFree(t *testing.T) {
	d, _ := newDisks(t)
	machine := makeDisk(t, d, "machine", 256*mib)
	inner := newDisksIn(t, filepath.Join(machine.Data, "disks"))
	makeDisk(t, inner, "one", 96*mib)
	makeDisk(t, inner, "two", 96*mib)
	for id, bytes := range map[string]int64{"three": 96 * mib, "four": 40 * mib} {
		if _, err := inner.Make(t.Context(), id, bytes, owner); !errors.Is(err, runtime.ErrNoRoom) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := inner.Destroy(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	makeDisk(t, inner, "three", 96*mib)
}

func TestWhereRoomCannotBeReservedPromisesAreCounted(t *testing.T) {
	d, _ := newDisks(t)
	host := makeDisk(t, d, "host", 256*mib)
	// ext2 cannot reserve.
	old, at := host.Data+"/old", host.Data+"/at"
	if err := errors.Join(os.WriteFile(old, nil, 0o600), os.Truncate(old, 128*mib), os.Mkdir(at, 0o700)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "/usr/sbin/mkfs.ext2", "-q", "-F", "-m", "0", old).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "mount", "-o", "loop", old, at).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Error(err)
		}
	})
	inner := newDisksIn(t, filepath.Join(at, "disks"))
	one := makeDisk(t, inner, "one", 64*mib)
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(at, "disks/one.img"), &st); err != nil || st.Blocks*512 > st.Size/2 {
		t.Errorf("the file took %d bytes: %v", st.Blocks*512, err)
	}
	if _, err := inner.Make(t.Context(), "two", 64*mib, owner); !errors.Is(err, runtime.ErrNoRoom) {
		t.Errorf("promised twice: %v", err)
	}
	if got := fill(t, one.Data+"/big", 128*mib); got < 48*mib {
		t.Errorf("only %d bytes of the promise were kept", got)
	}
}
