//go:build linux

package volume_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"haggle/runtime/volume"
)

const (
	mib      = 1 << 20
	size     = 64 * mib
	owner    = 231072
	patience = time.Minute
)

// requireLoop skips a test where file systems in files cannot be mounted, and fails it there under CI, where they must.
func requireLoop(t testing.TB) {
	t.Helper()
	var missing []string
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		missing = append(missing, "/dev/loop-control")
	}
	if _, err := os.Stat("/usr/sbin/mkfs.ext4"); err != nil {
		missing = append(missing, "mkfs.ext4")
	}
	if len(missing) == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("needs %s", strings.Join(missing, ", "))
	}
	t.Skipf("needs %s", strings.Join(missing, ", "))
}

// newDisks keeps disks in a folder of the test's own, and sees to it that Purge leaves nothing.
func newDisks(t testing.TB, without ...string) (*volume.Disks, string) {
	t.Helper()
	requireLoop(t)
	dir := filepath.Join(t.TempDir(), "a disk") // the kernel writes the blank as a number
	return newDisksIn(t, dir, without...), dir
}

func newDisksIn(t testing.TB, dir string, without ...string) *volume.Disks {
	t.Helper()
	d, err := volume.New(volume.Config{Dir: dir, Without: without})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := d.Purge(ctx); err != nil {
			t.Errorf("purge: %v", err)
		}
		if left := traces(t, dir); len(left) > 0 {
			t.Errorf("purge left %q", left)
		}
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("purge left the folder: %v", err)
		}
	})
	return d
}

// traces lists files, mounts and loop devices of a folder.
func traces(t testing.TB, dir string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range mounts(t, dir) {
		left = append(left, "mount "+line)
	}
	backing, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, path := range backing {
		if file, _ := os.ReadFile(path); strings.HasPrefix(string(file), dir+"/") {
			left = append(left, path+" "+string(file))
		}
	}
	return left
}

// mounts returns the kernel's lines on what is mounted below a folder.
func mounts(t testing.TB, dir string) []string {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, strings.ReplaceAll(dir, " ", `\040`)) {
			lines = append(lines, line)
		}
	}
	return lines
}

func makeDisk(t testing.TB, d *volume.Disks, id string, bytes int64) volume.Disk {
	t.Helper()
	disk, err := d.Make(t.Context(), id, bytes, owner)
	if err != nil {
		t.Fatal(err)
	}
	return disk
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// childEnv makes the test program work as another process with disks. It holds the folder and the word what to do.
const childEnv = "HAGGLE_TEST_VOLUME"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(child(dir, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// child runs "make ID": one disk, and prints where it is; or "churn": it makes and destroys disks until it is killed.
func child(dir string, args []string) int {
	d, err := volume.New(volume.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	ctx := context.Background()
	for n := 0; ; n++ {
		id := fmt.Sprintf("churn-%d", n%3)
		if args[0] == "make" {
			id = args[1]
		}
		disk, err := d.Make(ctx, id, size, owner)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		if args[0] == "make" {
			fmt.Println(disk.Data)
			return 0
		}
		if n%2 == 1 {
			err = d.Destroy(ctx, id)
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
	}
}

func childCommand(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, args...)
	c.Env = append(os.Environ(), childEnv+"="+dir)
	return c
}
