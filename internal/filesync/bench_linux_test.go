package filesync_test

import (
	"archive/tar"
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"haggle/internal/filesync"
)

// wire is a connection through the kernel, as far as a benchmark in one process has one.
func wire(b testing.TB) (near, far net.Conn) {
	b.Helper()
	l, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			close(accepted)
			return
		}
		accepted <- c
	}()
	if near, err = new(net.Dialer).DialContext(b.Context(), "tcp", l.Addr().String()); err != nil {
		b.Fatal(err)
	}
	if far = <-accepted; far == nil {
		b.Fatal("nobody was accepted")
	}
	b.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// tarCopy is what `tar c | nc` and `nc | tar x` do.
func tarCopy(b *testing.B, from, to string) {
	near, far := wire(b)
	done := make(chan error, 1)
	go func() {
		defer far.Close()
		buf := bufio.NewWriterSize(far, 256<<10)
		w := tar.NewWriter(buf)
		err := w.AddFS(os.DirFS(from))
		if err == nil {
			err = w.Close()
		}
		if err == nil {
			err = buf.Flush()
		}
		done <- err
	}()
	buf := make([]byte, 1<<20)
	r := tar.NewReader(bufio.NewReaderSize(near, 256<<10))
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		if err := untar(filepath.Join(to, h.Name), h, r, buf); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

func untar(name string, h *tar.Header, r io.Reader, buf []byte) error {
	if h.Typeflag == tar.TypeDir {
		return os.MkdirAll(name, 0o755)
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, fs.FileMode(h.Mode))
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{r}, buf)
	if err == nil {
		err = f.Chmod(fs.FileMode(h.Mode))
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chtimes(name, h.ModTime, h.ModTime)
	}
	return err
}

// bareCopy sends one file as it is.
func bareCopy(b *testing.B, from, to string) {
	near, far := wire(b)
	done := make(chan error, 1)
	move := func(w io.Writer, r io.Reader) error {
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, 1<<20))
		return err
	}
	go func() {
		defer far.Close()
		f, err := os.Open(filepath.Join(from, "big"))
		if err == nil {
			err = move(far, f)
			f.Close()
		}
		done <- err
	}()
	f, err := os.Create(filepath.Join(to, "big"))
	if err == nil {
		err = move(f, near)
		f.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

func syncCopy(b *testing.B, from, to string) {
	near, far := wire(b)
	done := make(chan error, 1)
	go func() { done <- filesync.Serve(b.Context(), far, filesync.ServeConfig{Base: to}) }()
	if _, err := filesync.Push(b.Context(), near, filesync.PushConfig{From: from + "/"}); err != nil {
		b.Fatal(err)
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// beside runs the copy and its floor in turns and reports how they compare. Neither counts the time to bring it to the disk.
func beside(b *testing.B, src string, floor func(*testing.B, string, string)) {
	var ours, theirs, ourCPU, theirCPU time.Duration
	run := func(f func(*testing.B, string, string)) (wall, cpu time.Duration) {
		//nolint:usetesting // one for each copy, so that the disk does not fill
		dst, err := os.MkdirTemp(benchDir(b), "dst")
		if err != nil {
			b.Fatal(err)
		}
		defer os.RemoveAll(dst)
		start, used := time.Now(), cpuTime(b)
		f(b, src, dst)
		return time.Since(start), cpuTime(b) - used
	}
	for b.Loop() {
		wall, cpu := run(floor)
		theirs, theirCPU = theirs+wall, theirCPU+cpu
		wall, cpu = run(syncCopy)
		ours, ourCPU = ours+wall, ourCPU+cpu
	}
	b.ReportMetric(float64(ourCPU)/float64(b.N)/1e6, "cpu-ms/copy")
	b.ReportMetric(float64(theirCPU)/float64(b.N)/1e6, "cpu-ms/floor")
	b.ReportMetric(float64(ours)/float64(b.N)/1e6, "ms/copy")
	b.ReportMetric(float64(theirs)/float64(b.N)/1e6, "ms/floor")
	b.ReportMetric(float64(theirs)/float64(ours), "of-floor")
}

// cpuTime is what this process has used of the processors, which says more than the clock where others use them, too.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchDir is where a benchmark writes: HAGGLE_BENCH_DIR, or the tests' own folder.
func benchDir(b *testing.B) string {
	if d := os.Getenv("HAGGLE_BENCH_DIR"); d != "" {
		return d
	}
	return b.TempDir()
}

func BenchmarkOneFileOf256MiBBesideABareStream(b *testing.B) {
	src := b.TempDir()
	if err := os.WriteFile(filepath.Join(src, "big"), []byte(noise(1, 256<<20)), 0o644); err != nil {
		b.Fatal(err)
	}
	beside(b, src, bareCopy)
}

func BenchmarkTenThousandFilesOf4KiBBesideTar(b *testing.B) {
	src := b.TempDir()
	text := []byte(noise(1, 4096))
	for i := range 10_000 {
		dir := filepath.Join(src, fmt.Sprintf("d%02d", i%20))
		if i < 20 {
			if err := os.Mkdir(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		text[0], text[1] = byte(i), byte(i>>8)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%05d", i)), text, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	beside(b, src, tarCopy)
}
