package filesync_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"haggle/internal/filesync"
)

// grow makes a random change to the tree at root.
func grow(t *rapid.T, root string) {
	dirs := []string{"", "a", "a/b", "c"}
	p := filepath.Join(root, rapid.SampledFrom(dirs).Draw(t, "folder"), rapid.SampledFrom([]string{"x", "y", "a", "b", "ü .t"}).Draw(t, "name"))
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if fi, err := os.Lstat(filepath.Dir(p)); err != nil || !fi.IsDir() {
		os.RemoveAll(filepath.Dir(p))
		if os.MkdirAll(filepath.Dir(p), 0o755) != nil {
			return
		}
	}
	must(os.Chmod(filepath.Dir(p), 0o755))
	must(os.RemoveAll(p))
	switch rapid.SampledFrom([]string{"small", "small", "large", "folder", "symlink", "nothing"}).Draw(t, "kind") {
	case "small":
		text := noise(rapid.Uint64().Draw(t, "text"), rapid.SampledFrom([]int{0, 1, 100, 64 << 10}).Draw(t, "size"))
		must(os.WriteFile(p, []byte(text), 0o644))
		must(os.Chmod(p, os.FileMode(rapid.SampledFrom([]int{0o644, 0o600, 0o755, 0o444}).Draw(t, "mode"))))
	case "large":
		text := []byte(noise(1, rapid.SampledFrom([]int{64<<10 + 1, 1 << 20, 1<<20 + 1, 5 << 19}).Draw(t, "size")))
		text[rapid.IntRange(0, len(text)-1).Draw(t, "at")]++
		must(os.WriteFile(p, text, 0o644))
	case "folder":
		must(os.MkdirAll(p, 0o755))
		must(os.Chmod(p, os.FileMode(rapid.SampledFrom([]int{0o755, 0o700, 0o555}).Draw(t, "mode"))))
	case "symlink":
		must(os.Symlink("x", p))
	}
	if fi, err := os.Lstat(p); err == nil && fi.Mode().IsRegular() {
		// A change of the same size within one tick of the clock is not what this is about.
		at := time.Unix(1_700_000_000, rapid.Int64Range(0, 1<<40).Draw(t, "time"))
		must(os.Chtimes(p, at, at))
	}
}

func TestAnyTreeOverAnyOtherBecomesTheSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		base := t.TempDir()
		src, dst := filepath.Join(base, "src"), filepath.Join(base, "dst")
		for _, d := range []string{src, dst} {
			if err := os.Mkdir(d, 0o755); err != nil {
				rt.Fatal(err)
			}
			for range rapid.IntRange(0, 12).Draw(rt, "changes") {
				grow(rt, d)
			}
		}
		for round := range 2 {
			var rep filesync.Report
			if round == 0 {
				rep = mustPush(t, dst, filesync.PushConfig{From: src + "/", Delete: true, Checksum: true, Workers: rapid.IntRange(1, 4).Draw(rt, "workers")})
			} else {
				rep = mustPull(t, src, filesync.PullConfig{From: ".", To: dst, Delete: true})
			}
			want, got := read(t, src), read(t, dst)
			if fmt.Sprint(want) != fmt.Sprint(got) {
				rt.Fatalf("round %d: want %d entries and have %d: %+v\n%v\n%v", round, len(want), len(got), rep, names(want), names(got))
			}
			for range rapid.IntRange(0, 4).Draw(rt, "edits") {
				grow(rt, src)
			}
		}
	})
}
