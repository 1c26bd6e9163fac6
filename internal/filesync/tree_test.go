package filesync_test

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/filesync"
)

// node is what a test says or sees of one entry of a tree.
type node struct {
	Mode fs.FileMode
	Time int64
	Text string
}

// tree is the entries below a folder by their paths; a folder's path ends in "/".
type tree map[string]node

// read sees everything below root, but neither the times of symlinks nor those of folders.
func read(t *testing.T, root string) tree {
	t.Helper()
	got := tree{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == root {
			return err
		}
		name, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		n := node{Mode: fi.Mode()}
		switch {
		case fi.IsDir():
			name += "/"
		case fi.Mode()&fs.ModeSymlink != 0:
			n.Text, err = os.Readlink(p)
		default:
			n.Time = fi.ModTime().UnixNano()
			var b []byte
			b, err = os.ReadFile(p)
			n.Text = string(b)
		}
		got[filepath.ToSlash(name)] = n
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// write makes files below root. A text that starts with "-> " is a symlink's target, and a path that ends in "/" a folder.
func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for p, text := range files {
		full := filepath.Join(root, p)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(target, full)
		} else if strings.HasSuffix(p, "/") {
			err = os.MkdirAll(full, 0o755)
		} else {
			err = os.WriteFile(full, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func names(tr tree) []string {
	var s []string
	for p := range tr {
		s = append(s, p)
	}
	return s
}

func same(t *testing.T, want, got tree) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("the copy differs (-source +copy):\n%s", d)
	}
}

// far is a far side that is running.
type far struct {
	conn net.Conn
	err  chan error
}

func serve(t testing.TB, cfg filesync.ServeConfig) *far {
	t.Helper()
	near, c := net.Pipe()
	f := &far{conn: near, err: make(chan error, 1)}
	go func() {
		f.err <- filesync.Serve(context.WithoutCancel(t.Context()), c, cfg)
		c.Close()
	}()
	t.Cleanup(func() { near.Close() })
	return f
}

// end closes the stream and returns what the far side says.
func (f *far) end() error {
	f.conn.Close()
	return <-f.err
}

func push(t *testing.T, base string, cfg filesync.PushConfig) (filesync.Report, error) {
	t.Helper()
	f := serve(t, filesync.ServeConfig{Base: base})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rep, err := filesync.Push(ctx, f.conn, cfg)
	far := f.end()
	if err == nil && far != nil {
		t.Fatalf("the push is well and the far side says %v", far)
	}
	return rep, err
}

func mustPush(t *testing.T, base string, cfg filesync.PushConfig) filesync.Report {
	t.Helper()
	rep, err := push(t, base, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func pull(t *testing.T, base string, cfg filesync.PullConfig) (filesync.Report, error) {
	t.Helper()
	f := serve(t, filesync.ServeConfig{Base: base})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rep, err := filesync.Pull(ctx, f.conn, cfg)
	far := f.end()
	if err == nil && far != nil {
		t.Fatalf("the pull is well and the far side says %v", far)
	}
	return rep, err
}

func mustPull(t *testing.T, base string, cfg filesync.PullConfig) filesync.Report {
	t.Helper()
	rep, err := pull(t, base, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// noise is text that no compression or luck makes equal to another.
func noise(seed uint64, n int) string {
	b := make([]byte, n)
	x := seed*2 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x >> 32)
	}
	return string(b)
}
