//go:build unix

package door_test

import (
	"os"
	"path/filepath"
	"testing"

	"haggle/internal/filesync"
	"haggle/internal/tunnel"
)

func TestFoldersArePushedIntoTheJobAndPulledOut(t *testing.T) {
	t.Parallel()
	j := startJob(t)
	local := filepath.Join(j.dir, "local")
	tree(t, local)
	for _, to := range []string{"relative", "/work/absolute"} {
		c, err := dial(t.Context(), j.address, tunnel.KindFiles, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := filesync.Push(t.Context(), c, filesync.PushConfig{From: local + "/", To: to})
		if err != nil || r.Files != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		_ = c.Close()
		sameTree(t, filepath.Join(j.work, filepath.Base(to)))

		c, err = dial(t.Context(), j.address, tunnel.KindFiles, nil)
		if err != nil {
			t.Fatal(err)
		}
		back := filepath.Join(j.dir, "back-"+filepath.Base(to))
		r, err = filesync.Pull(t.Context(), c, filesync.PullConfig{From: to + "/", To: back})
		if err != nil || r.Files != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		_ = c.Close()
		sameTree(t, back)
	}
	c, err := dial(t.Context(), j.address, tunnel.KindFiles, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = filesync.Push(t.Context(), c, filesync.PushConfig{From: local + "/", To: "/work/../../../" + filepath.Base(j.dir) + "-out"})
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), filepath.Base(j.dir)+"-*")); len(left) > 0 {
		t.Errorf("outside: %v", left)
	}
}
