//go:build linux

package volume_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestASettledDiskTakesWhatIsOnItAndIsNeverWrittenAgain(t *testing.T) {
	d, dir := newDisks(t)
	disk := makeDisk(t, d, "job", size)
	kept, gone := filepath.Join(disk.Data, "kept"), filepath.Join(disk.Data, "gone")
	for _, path := range []string{kept, gone} {
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 4*mib), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	freed, err := d.Settle(context.Background(), "job")
	if err != nil || freed < size/2 {
		t.Fatalf("%d of %d bytes were given back: %v", freed, size, err)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(dir, "job.img"), &st); err != nil || st.Blocks*512 > size/2 {
		t.Errorf("the file takes %d bytes: %v", st.Blocks*512, err)
	}
	if b, err := os.ReadFile(kept); err != nil || len(b) != 4*mib {
		t.Errorf("%d bytes of the file are left: %v", len(b), err)
	}
	if err := os.WriteFile(gone, []byte("x"), 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("a write after it: %v", err)
	}
	if freed, err := d.Settle(context.Background(), "job"); err != nil || freed != 0 {
		t.Errorf("settled again it gives back %d: %v", freed, err)
	}
	if err := d.Destroy(context.Background(), "job"); err != nil {
		t.Error(err)
	}
	if freed, err := d.Settle(context.Background(), "job"); err != nil || freed != 0 {
		t.Errorf("of a disk that is gone %d is given back: %v", freed, err)
	}
}
