package filesync_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/filesync"
)

func sampleTree() map[string]string {
	return map[string]string{
		"a.txt": "hello", "empty": "", "a-dir/": "", "a/b/c/deep": "deep", "a/b.txt": "b", "a.d/x": "x",
		"big": noise(1, 3<<20+17), "even": noise(2, 2<<20), "middle": noise(3, 200_000), "edge": noise(4, 64<<10), "edge1": noise(5, 64<<10+1),
		"link": "-> a/b.txt", "a/up": "-> ../a.txt", "dangling": "-> nowhere/at all", "name with spaces ü": "x",
	}
}

func TestPushesAWholeTreeAndASecondPushSendsNothing(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, src, sampleTree())
	if err := os.Chmod(filepath.Join(src, "a/b/c"), 0o555); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(src, "big"), 0o751); err != nil {
		t.Fatal(err)
	}
	rep := mustPush(t, dst, filesync.PushConfig{From: src + "/", To: "in/side"})
	same(t, read(t, src), read(t, filepath.Join(dst, "in/side")))
	if rep.Sent != rep.Bytes || rep.Files != 11 || rep.Same != 0 || rep.Skipped != 0 {
		t.Errorf("report %+v", rep)
	}
	for _, root := range []string{src + "/", filepath.Join(dst, "in/side") + "/"} {
		d, err := filesync.Digest(t.Context(), root, false)
		if err != nil || d != rep.Digest || d == "" {
			t.Errorf("digest of %s is %s (%v), and the report's %s", root, d, err, rep.Digest)
		}
	}
	rep = mustPush(t, dst, filesync.PushConfig{From: src + "/", To: "in/side"})
	if rep.Sent != 0 || rep.Same != 11 || rep.Digest != "" {
		t.Errorf("the second report %+v", rep)
	}
	rep = mustPush(t, dst, filesync.PushConfig{From: src + "/", To: "in/side", Checksum: true})
	if rep.Sent != 0 || rep.Same < 10 || rep.Digest == "" {
		t.Errorf("the report with checksum %+v", rep)
	}
	same(t, read(t, src), read(t, filepath.Join(dst, "in/side")))
}

func TestPullsWhatWasPushed(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, src, sampleTree())
	rep := mustPull(t, src, filesync.PullConfig{From: ".", To: dst})
	same(t, read(t, src), read(t, dst))
	if d, err := filesync.Digest(t.Context(), dst+"/", false); err != nil || d != rep.Digest || rep.Sent != rep.Bytes {
		t.Errorf("report %+v, digest %s %v", rep, d, err)
	}
	rep = mustPull(t, src, filesync.PullConfig{From: ".", To: dst})
	if rep.Sent != 0 || rep.Same != rep.Files {
		t.Errorf("the second report %+v", rep)
	}
}

func TestNamesGoWhereRsyncWouldPutThem(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     []string
	}{
		{"dir", "out", []string{"out/", "out/dir/", "out/dir/f"}},
		{"dir/", "out", []string{"out/", "out/f"}},
		{"dir/.", "out", []string{"out/", "out/f"}},
		{"dir", "", []string{"dir/", "dir/f"}},
		{"dir", "there/", []string{"there/", "there/dir/", "there/dir/f"}},
		{"file", "", []string{"file"}},
		{"file", "other", []string{"other"}},
		{"file", "new/", []string{"new/", "new/file"}},
		{"file", "new/name", []string{"new/", "new/name"}},
		{"file", ".", []string{"file"}},
		{"tofile", "", []string{"tofile"}},
		{"todir", "out", []string{"out/", "out/todir/", "out/todir/f"}},
	} {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			src := t.TempDir()
			write(t, src, map[string]string{"dir/f": "in a folder", "file": "alone", "tofile": "-> dir/f", "todir": "-> dir"})
			check := func(root string) {
				got := names(read(t, root))
				slices.Sort(got)
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			}
			up := t.TempDir()
			mustPush(t, up, filesync.PushConfig{From: src + "/" + c.from, To: c.to})
			check(up)
			down := t.TempDir()
			t.Chdir(down)
			mustPull(t, src, filesync.PullConfig{From: c.from, To: c.to})
			check(down)
		})
	}
}

func TestAFileGoesIntoAFolderThatIsThere(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, src, map[string]string{"file": "new"})
	write(t, dst, map[string]string{"d/file": "old and longer", "d/other": "stays"})
	for range 2 {
		mustPush(t, dst, filesync.PushConfig{From: src + "/file", To: "d", Delete: true})
	}
	if got := read(t, dst); got["d/file"].Text != "new" || got["d/other"].Text != "stays" || len(got) != 3 {
		t.Errorf("%v", got)
	}
}

func TestDeleteRemovesWhatIsExtraAndNothingThatIsIgnored(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, src, map[string]string{
		".gitignore": "out/\n*.log\n", "keep/x": "x", "run.log": "mine", "out/mine": "m", ".git/HEAD": "h", "sub/.haggleignore": "data\n!x.log\n",
		"sub/data/1": "1", "sub/x.log": "kept", "file": "was a folder", "folder/in": "was a file",
	})
	write(t, dst, map[string]string{
		"keep/old/gone": "g", "out/theirs": "t", "their.log": "t", "extra": "e", "sub/data/2": "2", "new/deep/their.log": "t", "new/gone": "g",
		"file/x": "x", "folder": "f", "bad": "-> /etc", ".x.haggle-part": "old",
	})
	outside := t.TempDir()
	write(t, outside, map[string]string{"precious": "p"})
	write(t, dst, map[string]string{"way out": "-> " + outside})
	rep := mustPush(t, dst, filesync.PushConfig{From: src + "/", Delete: true, Ignore: true})
	got := names(read(t, dst))
	slices.Sort(got)
	want := []string{
		".gitignore", "file", "folder/", "folder/in", "keep/", "keep/x", "new/", "new/deep/", "new/deep/their.log", "out/", "out/theirs",
		"sub/", "sub/.haggleignore", "sub/data/", "sub/data/2", "sub/x.log", "their.log",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if rep.Deleted != 7 {
		t.Errorf("report %+v", rep)
	}
	if read(t, outside)["precious"].Text != "p" {
		t.Error("something outside is gone")
	}
	mustPush(t, dst, filesync.PushConfig{From: src + "/", Delete: true})
	same(t, read(t, src), read(t, dst))
	if f, b, err := filesync.Size(t.Context(), src+"/", true); err != nil || f != 6 || b != 11+1+12+4+12+10 {
		t.Errorf("size %d %d %v", f, b, err)
	}
}

func TestOnlyTheChunksThatDifferAreSent(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	text := []byte(noise(7, 10<<20))
	write(t, src, map[string]string{"f": string(text)})
	mustPush(t, dst, filesync.PushConfig{From: src + "/"})
	text[5<<20+3]++
	write(t, src, map[string]string{"f": string(text) + "and more"})
	rep := mustPush(t, dst, filesync.PushConfig{From: src + "/"})
	same(t, read(t, src), read(t, dst))
	if rep.Sent != 1<<20+8 {
		t.Errorf("report %+v", rep)
	}
	// Touched, and nothing else: the file that is there stays.
	before, err := os.Stat(dst + "/f")
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(src+"/f", later, later); err != nil {
		t.Fatal(err)
	}
	rep = mustPush(t, dst, filesync.PushConfig{From: src + "/"})
	same(t, read(t, src), read(t, dst))
	after, err := os.Stat(dst + "/f")
	if err != nil || !os.SameFile(before, after) || rep.Sent != 0 || rep.Same != 1 {
		t.Errorf("the file was written again: %+v %v", rep, err)
	}
	// Shorter again.
	if err := os.Truncate(src+"/f", 3<<20+1); err != nil {
		t.Fatal(err)
	}
	rep = mustPush(t, dst, filesync.PushConfig{From: src + "/"})
	same(t, read(t, src), read(t, dst))
	if rep.Sent != 0 || rep.Same != 1 {
		t.Errorf("report %+v", rep)
	}
}

func TestErrorsHaveACodeAndAPath(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, src, map[string]string{"f": "x", "d/f": "x"})
	write(t, dst, map[string]string{"file": "x", "full/x": "x"})
	for name, c := range map[string]struct {
		run  func() error
		code filesync.Code
	}{
		"a missing local file": {func() error { _, err := push(t, dst, filesync.PushConfig{From: src + "/no"}); return err }, filesync.CodeNotFound},
		"a missing far file":   {func() error { _, err := pull(t, dst, filesync.PullConfig{From: "no", To: src}); return err }, filesync.CodeNotFound},
		"a file as a folder":   {func() error { _, err := pull(t, dst, filesync.PullConfig{From: "file/", To: src}); return err }, filesync.CodeFailed},
		"a folder over a file": {func() error { _, err := push(t, dst, filesync.PushConfig{From: src + "/d/", To: "file"}); return err }, filesync.CodeFailed},
		"a zero byte":          {func() error { _, err := pull(t, dst, filesync.PullConfig{From: "a\x00b", To: src}); return err }, filesync.CodeBadPath},
		"a device":             {func() error { _, err := pull(t, dst, filesync.PullConfig{From: "/dev/null", To: src}); return err }, filesync.CodeFailed},
		"too many bytes":       {func() error { _, err := pull(t, dst, filesync.PullConfig{To: t.TempDir(), MaxBytes: 1}); return err }, filesync.CodeTooLarge},
		"too many entries":     {func() error { _, err := pull(t, dst, filesync.PullConfig{To: t.TempDir(), MaxEntries: 2}); return err }, filesync.CodeTooLarge},
		"a full folder for a file": {func() error {
			write(t, src, map[string]string{"e/full": "x"})
			_, err := push(t, dst, filesync.PushConfig{From: src + "/e/"})
			return err
		}, filesync.CodeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.run()
			e, ok := errors.AsType[*filesync.Error](err)
			if !ok || e.Code != c.code {
				t.Errorf("%v, and not %s", err, c.code)
			}
		})
	}
}
