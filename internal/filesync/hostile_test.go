package filesync_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"haggle/internal/filesync"
)

// frames builds what a hostile sender writes.
type frames []byte

func (f frames) add(kind byte, payload ...any) frames {
	var b []byte
	for _, p := range payload {
		switch p := p.(type) {
		case byte:
			b = append(b, p)
		case int:
			b = binary.AppendUvarint(b, uint64(p))
		case uint16:
			b = binary.BigEndian.AppendUint16(b, p)
		case int64:
			b = binary.AppendVarint(b, p)
		case string:
			b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
		case []byte:
			b = append(b, p...)
		}
	}
	return append(binary.BigEndian.AppendUint32(append(f, kind), uint32(len(b))), b...)
}

func file(path string, size int) []byte {
	return frames{}.add(0, byte(2), uint16(0o644), int64(1), size, path)[5:]
}

func folder(path string) []byte {
	return frames{}.add(0, byte(1), uint16(0o755), int64(1), 0, path)[5:]
}

func symlink(path, target string) []byte {
	return frames{}.add(0, byte(3), uint16(0o777), int64(1), 0, path, target)[5:]
}

func welcome() frames { return frames{}.add(0x02, byte(2)) }

func list(entries ...[]byte) frames {
	f := welcome()
	for _, e := range entries {
		f = f.add(0x10, e)
	}
	return f
}

// attack has a hostile far side send bytes to a pull into an empty folder beside which lies another one.
func attack(t *testing.T, cfg filesync.PullConfig, bytes []byte, forever bool) error {
	t.Helper()
	base := t.TempDir()
	write(t, base, map[string]string{"beside/precious": "p"})
	cfg.From, cfg.To = "/work/.", filepath.Join(base, "target")
	near, far := net.Pipe()
	go untilError(far)
	go func() {
		for {
			if _, err := far.Write(bytes); err != nil || !forever {
				return
			}
			if len(bytes) > len(welcome()) {
				bytes = bytes[len(welcome()):]
			}
		}
	}()
	_, err := filesync.Pull(t.Context(), near, cfg)
	near.Close()
	for p, n := range read(t, base) {
		if p != "beside/" && p != "target/" && !strings.HasPrefix(p, "target/") && n.Text != "p" {
			t.Errorf("%s was made outside", p)
		}
		if p == "target/f" && err != nil {
			t.Errorf("half a file has its name")
		}
	}
	return err
}

// untilError reads frames, and closes the stream when it is told of an error.
func untilError(c net.Conn) {
	defer c.Close()
	for head := make([]byte, 5); head[0] != 0x7f; {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head[1:]))); err != nil {
			return
		}
	}
}

func TestRefusesWhatAHostileFarSideSends(t *testing.T) {
	long := strings.Repeat("x", 256)
	deep := strings.Repeat("d/", 64) + "f"
	zero := make([]byte, 32)
	start := func(size int) frames { return list(file("f", size)).add(0x31, 0, uint16(0o644), int64(1), size) }
	for name, c := range map[string]struct {
		bytes   frames
		code    filesync.Code
		forever bool
	}{
		"an absolute path":           {list(file("/etc/x", 1)), filesync.CodeBadPath, false},
		"a path that climbs":         {list(file("../beside/x", 1)), filesync.CodeBadPath, false},
		"a path that climbs inside":  {list(folder("a"), file("a/../../x", 1)), filesync.CodeBadPath, false},
		"an empty name":              {list(folder("a"), file("a//x", 1)), filesync.CodeBadPath, false},
		"a dot":                      {list(file(".", 1)), filesync.CodeBadPath, false},
		"an empty path":              {list(file("", 1)), filesync.CodeBadPath, false},
		"a zero byte":                {list(file("a\x00b", 1)), filesync.CodeBadPath, false},
		"a long name":                {list(file(long, 1)), filesync.CodeBadPath, false},
		"a deep path":                {list(file(deep, 1)), filesync.CodeBadPath, false},
		"an unfinished file's name":  {list(file(".f.haggle-part", 1)), filesync.CodeBadPath, false},
		"a file in no folder":        {list(file("a/x", 1)), filesync.CodeBadPath, false},
		"a file in a symlink":        {list(symlink("a", "b"), file("a/x", 1)), filesync.CodeBadPath, false},
		"one path twice":             {list(file("a", 1), file("a", 1)), filesync.CodeBadPath, false},
		"a list out of order":        {list(file("b", 1), file("a", 1)), filesync.CodeBadPath, false},
		"a symlink out":              {list(symlink("a", "../beside")), filesync.CodeBadPath, false},
		"an absolute symlink":        {list(symlink("a", "/etc")), filesync.CodeBadPath, false},
		"a symlink out by another":   {list(symlink("a", "b/../.."), symlink("b", ".")), filesync.CodeBadPath, false},
		"an unknown kind":            {list(frames{}.add(0, byte(9), uint16(0), int64(0), 0, "dev")[5:]), filesync.CodeFailed, false},
		"too many bytes":             {list(file("f", 1<<30)), filesync.CodeTooLarge, false},
		"bytes beyond counting":      {list(file("f", 1<<62), file("g", 1<<62)), filesync.CodeTooLarge, false},
		"a file that grows":          {list(file("f", 1)).add(0x31, 0, uint16(0), int64(1), 1<<30), filesync.CodeTooLarge, false},
		"too many entries":           {many(2000), filesync.CodeTooLarge, false},
		"an endless list":            {welcome().add(0x10, file("f", 1)), filesync.CodeBadPath, true},
		"a long frame":               {append(welcome(), 0x32, 0xff, 0xff, 0xff, 0xff), filesync.CodeFailed, false},
		"a chunk far away":           {start(1<<20-1).add(0x32, 0, 1<<40, zero, []byte("abc")), filesync.CodeFailed, false},
		"an unknown frame":           {welcome().add(0x55), filesync.CodeFailed, false},
		"a lying hash":               {start(3).add(0x32, 0, 0, zero, []byte("abc")).add(0x34, 0, byte(0)), filesync.CodeFailed, false},
		"a short chunk":              {start(3).add(0x32, 0, 0, zero, []byte("ab")), filesync.CodeFailed, false},
		"a long chunk":               {start(3).add(0x32, 0, 0, zero, []byte("abcd")), filesync.CodeFailed, false},
		"a file that ends early":     {start(3).add(0x34, 0, byte(0)), filesync.CodeFailed, false},
		"a file that begins anew":    {again(start(3)), filesync.CodeFailed, false},
		"two files at a time":        {list(file("f", 1), file("g", 1)).add(0x31, 0, uint16(0), int64(0), 1).add(0x31, 1, uint16(0), int64(0), 1), filesync.CodeFailed, false},
		"a chunk of nothing":         {welcome().add(0x32, 7, 0, zero), filesync.CodeFailed, false},
		"a copy of nothing":          {start(3).add(0x33, 0, 0, byte(1), zero), filesync.CodeFailed, false},
		"an end without the files":   {list(file("f", 1)).add(0x11, byte(0), 1, 1, 1, 0).add(0x36, zero, 0, 0), filesync.CodeFailed, false},
		"a lying end of the list":    {list(file("f", 1)).add(0x11, byte(0), 2, 1, 1, 0), filesync.CodeFailed, false},
		"a lying digest":             {welcome().add(0x11, byte(0), 0, 0, 0, 0).add(0x36, zero, 0, 0), filesync.CodeFailed, false},
		"a small file with a tail":   {list(file("f", 1)).add(0x30, 0, uint16(0), int64(0), 5, zero, []byte("ab")), filesync.CodeFailed, false},
		"a large small file":         {list(file("f", 1)).add(0x30, 0, uint16(0), int64(0), 1<<20, zero), filesync.CodeFailed, false},
		"a device for a source":      {frames{}.add(0x02, byte(7)), filesync.CodeFailed, false},
		"an error with a wrong code": {welcome().add(0x7f, "rm -rf", "p", "m"), filesync.CodeFailed, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := attack(t, filesync.PullConfig{MaxBytes: 1 << 20, MaxEntries: 1000}, c.bytes, c.forever)
			e, ok := errors.AsType[*filesync.Error](err)
			if !ok || e.Code != c.code {
				t.Errorf("%v, and not %s", err, c.code)
			}
		})
	}
}

func many(n int) frames {
	f := welcome()
	for i := range n {
		f = f.add(0x10, file(string(rune('a'+i/676))+string(rune('a'+i/26%26))+string(rune('a'+i%26)), 0))
	}
	return f
}

func again(f frames) frames {
	f = f.add(0x34, 0, byte(1)).add(0x31, 0, uint16(0), int64(1), 3)
	return f.add(0x34, 0, byte(1))
}

func TestRefusesWhatAHostileReceiverSends(t *testing.T) {
	src := t.TempDir()
	write(t, src, map[string]string{"a": "1", "b": noise(1, 100_000), "d/": ""})
	hello := frames{}.add(0x02, byte(3))
	asks := hello.add(0x03, byte(0))
	zero := make([]byte, 32)
	for name, bytes := range map[string]frames{
		"answers for nothing":        asks.add(0x20, 0, 4, []byte{1, 1, 1, 1}),
		"answers out of turn":        asks.add(0x20, 1, 1, []byte{1}),
		"contents of a folder":       asks.add(0x20, 0, 3, []byte{1, 1, 1}),
		"an unknown answer":          asks.add(0x20, 0, 1, []byte{9}),
		"a count without answers":    asks.add(0x20, 0, 1<<40),
		"hashes for nothing":         asks.add(0x21, 1, byte(0), 0, zero),
		"too many hashes":            asks.add(0x20, 0, 2, []byte{1, 2}).add(0x21, 1, byte(0), 0, zero, zero),
		"an end of no hashes":        asks.add(0x22, 1),
		"answers though it is fresh": hello.add(0x03, byte(8)).add(0x20, 0, 1, []byte{1}),
		"a result before the end":    asks.add(0x40, 0, 0, 0),
		"a frame for a receiver":     asks.add(0x10),
		"no ready":                   hello.add(0x03),
	} {
		t.Run(name, func(t *testing.T) {
			near, far := net.Pipe()
			over := make(chan struct{})
			defer close(over)
			go func() {
				// The list is there before the answers are.
				buf := make([]byte, 4096)
				for seen := 0; seen < 2; {
					n, err := far.Read(buf)
					if err != nil {
						return
					}
					seen += strings.Count(string(buf[:n]), "\x11\x00\x00\x00")
					if seen == 0 && strings.Contains(string(buf[:n]), "hgfs") {
						_, _ = far.Write(bytes[:len(hello)+6])
						seen++
					}
				}
				go untilError(far)
				_, _ = far.Write(bytes[min(len(bytes), len(hello)+6):])
				<-over
			}()
			_, err := filesync.Push(t.Context(), near, filesync.PushConfig{From: src + "/"})
			near.Close()
			if _, ok := errors.AsType[*filesync.Error](err); !ok {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestNamesThatHarmATerminalAreSkippedOnTheWayHome(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, src, map[string]string{"good": "g", "bad\x1b[2J": "b", "bad\ndir/in": "b", "bad\ndir/sub/in": "b", "l\x07": "-> good", "latin\xe9": "x"})
	write(t, dst, map[string]string{"z": "not fresh"})
	for _, to := range []string{dst, t.TempDir()} {
		rep := mustPull(t, src, filesync.PullConfig{From: ".", To: to})
		got := read(t, to)
		if delete(got, "z"); len(got) != 1 || got["good"].Text != "g" || rep.Skipped != 7 || rep.Digest != "" {
			t.Errorf("%v %+v", got, rep)
		}
	}
}

func TestLeavesOutWhatIsNoFileAndWhatLeadsOut(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	write(t, src, map[string]string{"f": "x", "abs": "-> /etc/passwd", "up": "-> ..", "d/up": "-> ../f", "through": "-> d/../..", "self": "-> ."})
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(src, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(filepath.Join(src, "f"), 0o755|os.ModeSetuid|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	rep := mustPush(t, dst, filesync.PushConfig{From: src + "/"})
	got := read(t, dst)
	if len(got) != 4 || got["f"].Mode != 0o755 || got["d/up"].Text != "../f" || got["self"].Text != "." || rep.Skipped != 4 {
		t.Errorf("%v %+v", got, rep)
	}
}

func TestASymlinkThatIsSwappedInLeadsNowhere(t *testing.T) {
	src, outside := t.TempDir(), t.TempDir()
	files := map[string]string{"d/big": noise(1, 2<<20)}
	for i := range 40 {
		files["d/sub/"+string(rune('A'+i))] = noise(uint64(i), 3000)
	}
	write(t, src, files)
	write(t, outside, map[string]string{"sub/": "", "big": "precious", "sub/B": "precious"})
	want := read(t, outside)
	stop, stopped := make(chan struct{}), make(chan struct{})
	dst := t.TempDir()
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			for _, p := range []string{"d", "d/sub", "d/big", "d/.big.haggle-part", "d/sub/.B.haggle-part"} {
				p = filepath.Join(dst, p)
				_ = os.Rename(p, filepath.Join(dst, "aside"))
				_ = os.Symlink(filepath.Join(outside, filepath.Base(p)), p)
				_ = os.Symlink(outside, p)
				_ = os.Remove(p)
				_ = os.RemoveAll(filepath.Join(dst, "aside"))
			}
		}
	}()
	deadline := time.Now().Add(2 * time.Second)
	for n := 0; n < 30 && time.Now().Before(deadline); n++ {
		// Whether it comes through is luck; where it writes is not.
		_, _ = push(t, dst, filesync.PushConfig{From: src + "/", Delete: n%2 == 0})
	}
	close(stop)
	<-stopped
	same(t, want, read(t, outside))
}

func TestARootIsNotLeft(t *testing.T) {
	root, src, outside := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, src, map[string]string{"f": "x"})
	write(t, outside, map[string]string{"f": "precious"})
	write(t, root, map[string]string{"work/": "", "out": "-> " + outside, "work/up": "-> ../../../../../../../../tmp"})
	want := read(t, outside)
	run := func(from, to string) error {
		f := serve(t, filesync.ServeConfig{Root: root, Base: "/work"})
		_, err := filesync.Push(t.Context(), f.conn, filesync.PushConfig{From: from, To: to})
		_ = f.end()
		return err
	}
	for to, p := range map[string]string{"": "work/f", "/x/": "x/f", "../../../y/": "y/f", "/../z": "z"} {
		if err := run(src+"/f", to); err != nil || read(t, root)[p].Text != "x" {
			t.Errorf("to %q: %v", to, err)
		}
	}
	for _, to := range []string{"/out/", "/out/f", "up/", "up/x"} {
		if err := run(src+"/f", to); err == nil {
			t.Errorf("to %q: no error", to)
		}
	}
	f := serve(t, filesync.ServeConfig{Root: root, Base: "/work"})
	if _, err := filesync.Pull(t.Context(), f.conn, filesync.PullConfig{From: "/out/f", To: t.TempDir()}); err == nil {
		t.Error("read through a symlink out of the root")
	}
	_ = f.end()
	same(t, want, read(t, outside))
}
