package filesync_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"haggle/internal/filesync"
)

// requireSmallDisk mounts a file system of so many bytes.
func requireSmallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		if os.Getenv("CI") == "true" && os.Getuid() == 0 {
			t.Fatalf("mount a tmpfs: %v", err)
		}
		t.Skipf("needs root, to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestAFullDiskIsOneErrorAndLeavesNoHalfFile(t *testing.T) {
	large, small := map[string]string{"a": "first", "big": noise(1, 3<<20)}, map[string]string{}
	for i := range 60 {
		small["f"+string(rune('A'+i))] = noise(uint64(i), 40_000)
	}
	for name, c := range map[string]struct {
		files   map[string]string
		options string
	}{"one large file": {large, "size=2m"}, "many small files": {small, "size=1m"}, "no inodes": {small, "nr_inodes=20"}} {
		for _, pulls := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				dst, src := requireSmallDisk(t, c.options), t.TempDir()
				write(t, src, c.files)
				var err error
				if pulls {
					_, err = pull(t, src, filesync.PullConfig{From: ".", To: dst})
				} else {
					_, err = push(t, dst, filesync.PushConfig{From: src + "/"})
				}
				if e, ok := errors.AsType[*filesync.Error](err); !ok || e.Code != filesync.CodeNoSpace {
					t.Errorf("%v, and not no_space", err)
				}
				got := read(t, dst)
				noHalfFiles(t, read(t, src), got)
				for p := range got {
					if strings.Contains(p, ".haggle-part") {
						t.Errorf("%s takes room still", p)
					}
				}
			})
		}
	}
}
