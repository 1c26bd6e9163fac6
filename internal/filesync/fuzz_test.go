package filesync_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"haggle/internal/filesync"
)

// told is a far side that says what it says, whatever it is told.
type told struct {
	io.Reader
	io.Writer
}

func hears(b []byte) io.ReadWriter { return told{bytes.NewReader(b), io.Discard} }

func FuzzWhateverArrivesStaysInItsFolder(f *testing.F) {
	zero := make([]byte, 32)
	whole := list(folder("d"), file("d/f", 3), symlink("l", "d/f")).add(0x11, byte(0), 3, 1, 3, 0)
	f.Add([]byte(whole.add(0x30, 1, uint16(0o644), int64(1), 3, zero, []byte("abc")).add(0x36, zero, 0, 0)))
	f.Add([]byte(whole.add(0x31, 1, uint16(0o644), int64(1), 3).add(0x32, 1, 0, zero, []byte("abc")).add(0x34, 1, byte(0))))
	f.Add([]byte(again(list(file("f", 3)).add(0x31, 0, uint16(0), int64(1), 3))))
	f.Add([]byte(frames{}.add(0x02, byte(3)).add(0x03, byte(0)).add(0x20, 0, 2, []byte{1, 2}).add(0x21, 1, byte(0), 0, zero).add(0x22, 1)))
	f.Add([]byte(frames{}.add(0x01, []byte("hgfs\x01\x01\x00\x07\x02"), "base", "../to").add(0x10, file("x", 1))))
	f.Add([]byte(frames{}.add(0x01, []byte("hgfs\x01\x02\x00\x00\x00"), "", "/..").add(0x03, byte(8)).add(0x40, 0, 0, 0)))
	f.Fuzz(func(t *testing.T, b []byte) {
		base := t.TempDir()
		write(t, base, map[string]string{"beside/precious": "p", "src/a": "1", "src/b": noise(1, 70_000)})
		//nolint:errcheck // what it says is not looked at, only what it does
		filesync.Pull(t.Context(), hears(b), filesync.PullConfig{From: "x/.", To: filepath.Join(base, "target"), MaxBytes: 1 << 20, MaxEntries: 100, Delete: true, Workers: 1})
		//nolint:errcheck // as above
		filesync.Push(t.Context(), hears(b), filesync.PushConfig{From: filepath.Join(base, "src") + "/", Workers: 1})
		root := filepath.Join(base, "root")
		if err := os.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
		//nolint:errcheck // as above
		filesync.Serve(t.Context(), hears(b), filesync.ServeConfig{Root: root, Base: "/work", MaxBytes: 1 << 20, MaxEntries: 100, Workers: 1})
		left, err := os.ReadDir(base)
		if err != nil || len(left) > 4 || read(t, filepath.Join(base, "beside"))["precious"].Text != "p" {
			t.Fatalf("something outside changed: %v %v", left, err)
		}
	})
}
