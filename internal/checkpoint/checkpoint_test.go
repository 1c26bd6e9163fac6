package checkpoint_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"haggle/internal/checkpoint"
)

func key(t testing.TB) *age.X25519Identity {
	t.Helper()
	k, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// seal packs a tar as a checkpoint.
func seal(t testing.TB, k *age.X25519Identity, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := age.Encrypt(&out, k.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(w, zstd.WithWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	_, err = z.Write(plain)
	if err = errors.Join(err, z.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type item struct {
	kind    byte
	name    string
	content string // or the target of a link
	size    int64  // where it is not that of content
}

func archive(t testing.TB, items ...item) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, i := range items {
		h := &tar.Header{Typeflag: i.kind, Name: i.name, Mode: 0o6777, ModTime: time.Unix(1, 0)}
		switch i.kind {
		case tar.TypeReg:
			h.Size = int64(len(i.content))
		case tar.TypeSymlink, tar.TypeLink:
			h.Linkname = i.content
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if i.kind == tar.TypeReg {
			_, _ = io.WriteString(w, i.content)
		}
	}
	_ = w.Close()
	return out.Bytes()
}

// listing is all that is under a folder.
func listing(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		fi, err := d.Info()
		if err != nil {
			return err
		}
		text := fi.Mode().String()
		switch fi.Mode().Type() {
		case 0:
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + strconv.FormatInt(fi.ModTime().UnixNano(), 10) + " " + string(b)
		case fs.ModeSymlink:
			to, _ := os.Readlink(path)
			text += " " + to
		}
		found[filepath.ToSlash(rel)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAFolderComesBackAsItWas(t *testing.T) {
	k := key(t)
	rapid.Check(t, func(rt *rapid.T) {
		from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]{1,2}(/[d-f]{1,2}){0,2}`), 0, 12, rapid.ID).Draw(rt, "names")
		for i, name := range names {
			path := filepath.Join(from, filepath.FromSlash(name))
			if os.MkdirAll(filepath.Dir(path), 0o755) != nil {
				continue // a file is in the way
			}
			if i%4 == 3 {
				_ = os.Symlink(strings.Repeat("../", strings.Count(name, "/"))+"a", path+"L")
				continue
			}
			_ = os.WriteFile(path, rapid.SliceOfN(rapid.Byte(), 0, 300_000).Draw(rt, "content"), 0o640)
		}
		s, err := checkpoint.Survey(t.Context(), from)
		if err != nil {
			rt.Fatal(err)
		}
		var stream bytes.Buffer
		if err := checkpoint.Write(t.Context(), &stream, from, s, []age.Recipient{k.Recipient()}); err != nil {
			rt.Fatal(err)
		}
		got, err := checkpoint.Restore(t.Context(), &stream, k, to, checkpoint.Limits{})
		if err != nil {
			rt.Fatal(err)
		}
		want, have := listing(t, from), listing(t, to)
		delete(want, ".")
		delete(have, ".")
		if d := cmp.Diff(want, have); d != "" || got.Files != s.Files || got.Bytes != s.Bytes {
			rt.Fatalf("%+v of %+v: %s", got, s.Header, d)
		}
		again, err := checkpoint.Survey(t.Context(), to)
		if err != nil || again.Bytes != s.Bytes {
			rt.Fatalf("%v, %+v", err, again)
		}
	})
}

func TestAHostileStreamWritesNothingOutside(t *testing.T) {
	k := key(t)
	for _, c := range []struct {
		name  string
		items []item
		want  error // nil: it is taken, without what leads out
	}{
		{"absolute", []item{{tar.TypeReg, "/etc/x", "x", 0}}, checkpoint.ErrBad},
		{"up", []item{{tar.TypeReg, "../x", "x", 0}}, checkpoint.ErrBad},
		{"up in the middle", []item{{tar.TypeReg, "a/../../x", "x", 0}}, checkpoint.ErrBad},
		{"the folder itself", []item{{tar.TypeReg, ".", "x", 0}}, checkpoint.ErrBad},
		{"back slash", []item{{tar.TypeReg, `a\..\..\x`, "x", 0}}, checkpoint.ErrBad},
		{"deep", []item{{tar.TypeReg, strings.Repeat("a/", 100) + "x", "x", 0}}, checkpoint.ErrBad},
		{"hard link", []item{{tar.TypeLink, "l", "/etc/passwd", 0}}, checkpoint.ErrBad},
		{"device", []item{{tar.TypeChar, "d", "", 0}}, checkpoint.ErrBad},
		{"fifo", []item{{tar.TypeFifo, "d", "", 0}}, checkpoint.ErrBad},
		{"link out", []item{{tar.TypeSymlink, "l", "../outside", 0}}, checkpoint.ErrBad},
		{"absolute link", []item{{tar.TypeSymlink, "l", "/etc", 0}}, checkpoint.ErrBad},
		{"a file through a link", []item{{tar.TypeSymlink, "l", "d", 0}, {tar.TypeReg, "l/x", "x", 0}}, fs.ErrExist},
		{"links that lead out together", []item{
			{tar.TypeDir, "d/e/", "", 0}, {tar.TypeSymlink, "d/e/up", "../..", 0}, {tar.TypeSymlink, "out", "d/e/up/..", 0},
		}, nil},
		{"a link to itself", []item{{tar.TypeSymlink, "l", "l", 0}}, nil},
		{"setuid", []item{{tar.TypeReg, "s", "x", 0}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			outer := t.TempDir()
			dir := filepath.Join(outer, "in")
			_, err := checkpoint.Restore(t.Context(), bytes.NewReader(seal(t, k, archive(t, c.items...))), k, dir, checkpoint.Limits{})
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			left, _ := os.ReadDir(outer)
			if len(left) != 1 {
				t.Errorf("outside: %v", left)
			}
			for name, text := range listing(t, dir) {
				if strings.HasPrefix(text, "L") {
					if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
						at, _ := filepath.EvalSymlinks(filepath.Join(dir, name))
						if !strings.HasPrefix(at, dir) {
							t.Errorf("%s leads to %s", name, at)
						}
					} else if !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("%s: %v", name, err)
					}
				}
				if strings.HasPrefix(text, "u") || strings.HasPrefix(text, "g") {
					t.Errorf("%s is %s", name, text)
				}
			}
		})
	}
}

func TestRestoreKeepsItsLimits(t *testing.T) {
	k := key(t)
	bomb := archive(t, item{tar.TypeReg, "big", strings.Repeat("0", 1<<20), 0})
	_, err := checkpoint.Restore(t.Context(), bytes.NewReader(seal(t, k, bomb)), k, t.TempDir(), checkpoint.Limits{Bytes: 1000})
	if !errors.Is(err, checkpoint.ErrTooLarge) {
		t.Errorf("bytes: %v", err)
	}
	var many []item
	for i := range 20 {
		many = append(many, item{tar.TypeReg, strconv.Itoa(i), "", 0})
	}
	_, err = checkpoint.Restore(t.Context(), bytes.NewReader(seal(t, k, archive(t, many...))), k, t.TempDir(), checkpoint.Limits{Entries: 10})
	if !errors.Is(err, checkpoint.ErrTooMany) {
		t.Errorf("entries: %v", err)
	}
	// Headers only, without end: the reader's own bound counts.
	_, err = checkpoint.Restore(t.Context(), bytes.NewReader(seal(t, k, bytes.Repeat([]byte{0}, 64<<20))), k, t.TempDir(), checkpoint.Limits{Bytes: 1, Entries: 1})
	if err == nil {
		t.Log("zeros are an empty archive; what follows its end was dropped")
	}
}

func TestACutOrAlteredStreamIsAnError(t *testing.T) {
	k := key(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), bytes.Repeat([]byte("abc"), 100_000), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := checkpoint.Survey(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var stream bytes.Buffer
	if err := checkpoint.Write(t.Context(), &stream, dir, s, []age.Recipient{k.Recipient()}); err != nil {
		t.Fatal(err)
	}
	whole := stream.Bytes()
	restore := func(b []byte, k age.Identity) error {
		_, err := checkpoint.Restore(t.Context(), bytes.NewReader(b), k, t.TempDir(), checkpoint.Limits{})
		return err
	}
	if err := restore(whole, k); err != nil {
		t.Fatal(err)
	}
	if restore(whole, key(t)) == nil {
		t.Error("another key opened it")
	}
	property := func(at uint32, cut bool) bool {
		i := int(at) % len(whole)
		if cut {
			return restore(whole[:i], k) != nil
		}
		b := bytes.Clone(whole)
		b[i] ^= 1
		return restore(b, k) != nil
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

// busy is a place for a stream that writes to a file whenever some of the stream arrives.
type busy struct {
	path string
	do   func(path string)
}

func (b busy) Write(p []byte) (int, error) {
	b.do(b.path)
	return len(p), nil
}

func TestAFileThatIsWrittenToMeanwhile(t *testing.T) {
	random := make([]byte, 4<<20)
	for i, x := 0, uint32(1); i < len(random); i++ {
		x = x*1664525 + 1013904223
		random[i] = byte(x >> 24)
	}
	for _, c := range []struct {
		name string
		do   func(path string)
		want error
	}{
		{"grows: what was there counts", func(path string) {
			if f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err == nil {
				_, _ = f.WriteString("more")
				_ = f.Close()
			}
		}, nil},
		{"is cut: it is no checkpoint", func(path string) { _ = os.Truncate(path, 100); _ = os.WriteFile(path, random[:2<<20], 0o600) }, checkpoint.ErrChanging},
		{"is replaced: the old one counts", func(path string) {
			_ = os.WriteFile(path+".tmp", []byte("new"), 0o600)
			_ = os.Rename(path+".tmp", path)
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if err := os.WriteFile(path, random, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := checkpoint.Survey(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			err = checkpoint.Write(t.Context(), busy{path, c.do}, dir, s, []age.Recipient{key(t).Recipient()})
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, item{tar.TypeReg, "a/b", "x", 0}, item{tar.TypeSymlink, "l", "a", 0}, item{tar.TypeDir, "d/", "", 0}))
	f.Add(archive(f, item{tar.TypeReg, "../x", "x", 0}))
	f.Fuzz(func(t *testing.T, plain []byte) {
		outer := t.TempDir()
		root, err := os.OpenRoot(outer)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		if err := root.Mkdir("in", 0o700); err != nil {
			t.Fatal(err)
		}
		in, err := root.OpenRoot("in")
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		_, _ = checkpoint.Unpack(t.Context(), bytes.NewReader(plain), in, checkpoint.Limits{Bytes: 1 << 20, Entries: 100})
		if left, _ := os.ReadDir(outer); len(left) > 1 {
			t.Errorf("outside: %v", left)
		}
	})
}
