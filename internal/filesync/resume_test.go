package filesync_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"haggle/internal/filesync"
)

// errKilled is what a stream says after its program is gone.
var errKilled = errors.New("killed")

// cutConn passes so many bytes of what is written, and then is dead both ways.
type cutConn struct {
	net.Conn
	left int64
}

func (c *cutConn) Write(b []byte) (int, error) {
	n := min(int64(len(b)), c.left)
	c.left -= n
	if n > 0 {
		if m, err := c.Conn.Write(b[:n]); err != nil {
			return m, err
		}
	}
	if n < int64(len(b)) {
		c.Conn.Close()
		return int(n), errKilled
	}
	return int(n), nil
}

// session runs one copy over a stream that is cut after limit bytes from the sender, and returns what crossed.
func session(t *testing.T, pulls bool, src, dst string, limit int64) (crossed int64, rep filesync.Report, err error) {
	t.Helper()
	near, far := net.Pipe()
	cut := &cutConn{left: limit}
	cfg := filesync.ServeConfig{Base: dst}
	var c, s io.ReadWriter
	if pulls {
		cut.Conn, cfg.Base = far, src
		c, s = near, cut
	} else {
		cut.Conn = near
		c, s = cut, far
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		//nolint:errcheck // the near side's error is looked at
		filesync.Serve(context.WithoutCancel(t.Context()), s, cfg)
		far.Close()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if pulls {
		rep, err = filesync.Pull(ctx, c, filesync.PullConfig{From: ".", To: dst})
	} else {
		rep, err = filesync.Push(ctx, c, filesync.PushConfig{From: src + "/"})
	}
	near.Close()
	<-ended
	return limit - cut.left, rep, err
}

// noHalfFiles checks that whatever has a name of the source has its contents.
func noHalfFiles(t *testing.T, src, dst tree) {
	t.Helper()
	for p, n := range dst {
		if strings.Contains(p, ".haggle-part") || n.Mode.IsDir() {
			continue
		}
		if src[p] != n {
			t.Fatalf("%s is there and is not what it should be", p)
		}
	}
}

func TestAfterACutAtMostOneChunkIsSentAgain(t *testing.T) {
	const chunk = 1 << 20
	files := map[string]string{"big": noise(1, 5*chunk+99), "second": noise(2, 2*chunk), "z/middle": noise(3, 300_000)}
	for i := range 60 {
		files["small/"+string(rune('a'+i%26))+strings.Repeat("x", i/26)] = noise(uint64(i+10), 1+i*700)
	}
	for _, pulls := range []bool{false, true} {
		name := "push"
		if pulls {
			name = "pull"
		}
		t.Run(name, func(t *testing.T) {
			src := t.TempDir()
			write(t, src, files)
			want := read(t, src)
			whole, rep, err := session(t, pulls, src, t.TempDir(), 1<<40)
			if err != nil {
				t.Fatal(err)
			}
			overhead := whole - rep.Bytes
			r := rand.New(rand.NewPCG(1, 2))
			for range 12 {
				dst := t.TempDir()
				at := r.Int64N(whole)
				crossed, _, err := session(t, pulls, src, dst, at)
				if err == nil {
					t.Fatalf("nothing noticed the cut after %d bytes", at)
				}
				noHalfFiles(t, want, read(t, dst))
				_, rep2, err := session(t, pulls, src, dst, 1<<40)
				if err != nil {
					t.Fatal(err)
				}
				same(t, want, read(t, dst))
				if again := crossed - overhead + rep2.Sent - rep.Bytes; again > chunk {
					t.Errorf("after a cut at %d of %d bytes, %d bytes were sent again", at, whole, again)
				}
			}
		})
	}
}

func TestTheEndOfTheContextEndsBothSides(t *testing.T) {
	src := t.TempDir()
	write(t, src, map[string]string{"big": noise(1, 4<<20)})
	near, far := net.Pipe()
	defer far.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := filesync.Push(ctx, near, filesync.PushConfig{From: src})
		done <- err
	}()
	if _, err := io.ReadFull(far, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// growing appends to a file whenever it is read from the stream, so that it is never the same before and after.
type growing struct {
	net.Conn
	f     *os.File
	times int
}

func (g *growing) Read(b []byte) (int, error) {
	if g.times != 0 {
		g.times--
		_, _ = g.f.WriteString("more")
	}
	return g.Conn.Read(b)
}

func TestAFileThatChangesIsReadAgainOnceAndThenNamed(t *testing.T) {
	for name, c := range map[string]struct {
		times int
		code  filesync.Code
	}{"once": {0, ""}, "for ever": {-1, filesync.CodeChanged}} {
		t.Run(name, func(t *testing.T) {
			src, dst := t.TempDir(), t.TempDir()
			write(t, src, map[string]string{"log": noise(1, 6<<20), "other": "x"})
			f, err := os.OpenFile(filepath.Join(src, "log"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			near, far := net.Pipe()
			ended := make(chan error, 1)
			go func() {
				ended <- filesync.Serve(t.Context(), &growing{far, f, c.times}, filesync.ServeConfig{Base: dst})
			}()
			if c.times == 0 {
				_, _ = f.WriteString("once")
			}
			// With one worker the end of the file cannot be read before its beginning has arrived.
			rep, err := filesync.Push(t.Context(), near, filesync.PushConfig{From: src + "/", Workers: 1})
			near.Close()
			if err := <-ended; err != nil {
				t.Errorf("the far side says %v", err)
			}
			got := read(t, dst)
			if got["other"].Text != "x" {
				t.Error("the other file did not come")
			}
			e, _ := errors.AsType[*filesync.Error](err)
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				same(t, read(t, src), got)
				return
			}
			if e == nil || e.Code != c.code || e.Path != "log" || rep.Failed != 1 || rep.Digest != "" {
				t.Errorf("%v, %+v", err, rep)
			}
			if _, ok := got["log"]; ok {
				t.Error("half a file has its name")
			}
		})
	}
}

func TestProgressOnlyGrowsAndEndsWithEverything(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, src, sampleTree())
	var all []filesync.Progress
	rep := mustPush(t, dst, filesync.PushConfig{From: src + "/", Progress: func(p filesync.Progress) { all = append(all, p) }})
	last := filesync.Progress{}
	for _, p := range all {
		if p.Files < last.Files || p.FilesDone < last.FilesDone || p.Bytes < last.Bytes || p.BytesDone < last.BytesDone || p.Sent < last.Sent {
			t.Errorf("%+v after %+v", p, last)
		}
		last = p
	}
	if last.Scanning || last.Files != rep.Files || last.FilesDone != rep.Files || last.BytesDone != rep.Bytes || last.Sent != rep.Sent {
		t.Errorf("at last %+v for %+v", last, rep)
	}
}
