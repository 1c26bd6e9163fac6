package checkpoint

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// What a stream can be refused for.
var (
	// ErrBad is a stream that no honest door writes: a name that leads out, a kind of file that does not belong.
	ErrBad = errors.New("not a checkpoint")
	// ErrTooLarge is a stream with more bytes than the limit.
	ErrTooLarge = errors.New("the checkpoint is larger than the limit")
)

// Limits bound what Restore writes.
type Limits struct {
	Bytes   int64 // of all files; 0: 1 TB
	Entries int64 // 0: twice MaxEntries, for a file may come twice
}

// Restored is what a stream held.
type Restored struct{ Files, Bytes int64 }

// Restore decrypts a stream and writes its files into dir, which it makes. Nothing is written outside dir, whatever the stream
// says, and whatever links are in dir. A stream that is cut, altered or for another key is an error, and what was written
// before it was found out stays: restore into a fresh folder.
func Restore(ctx context.Context, r io.Reader, key age.Identity, dir string, limits Limits) (Restored, error) {
	if limits.Bytes <= 0 {
		limits.Bytes = 1_000_000_000_000
	}
	if limits.Entries <= 0 {
		limits.Entries = 2 * MaxEntries
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Restored{}, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Restored{}, err
	}
	defer root.Close()
	open, err := age.Decrypt(r, key)
	if err != nil {
		return Restored{}, fmt.Errorf("decrypt the checkpoint: %w", err)
	}
	unpacked, err := zstd.NewReader(open,
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return Restored{}, err
	}
	defer unpacked.Close()
	found, err := unpack(ctx, unpacked, root, limits)
	if err != nil {
		return found, err
	}
	// Only the last block proves that the stream is whole.
	if _, err := io.Copy(io.Discard, io.LimitReader(unpacked, 1<<20)); err != nil {
		return found, fmt.Errorf("read the checkpoint: %w", err)
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(open, 1<<20)); err != nil || n > 0 {
		return found, errors.Join(fmt.Errorf("%w: it does not end where it should", ErrBad), err)
	}
	return found, nil
}

// unpack writes the files of an archive.
func unpack(ctx context.Context, r io.Reader, root *os.Root, limits Limits) (Restored, error) {
	rs := restorer{
		ctx: ctx, root: root, limits: limits,
		stamps: map[string]time.Time{}, modes: map[string]fs.FileMode{}, links: map[string]string{},
	}
	err := rs.all(&endless{r: r, left: limits.Bytes + limits.Entries*8192 + 1<<20})
	return rs.found, err
}

type restorer struct {
	ctx    context.Context
	root   *os.Root
	limits Limits
	found  Restored
	stamps map[string]time.Time   // of folders, set at the end
	modes  map[string]fs.FileMode // of folders
	links  map[string]string      // made at the end, so that nothing is written through one
}

func (rs *restorer) all(r io.Reader) error {
	t := tar.NewReader(r)
	for n := int64(0); ; n++ {
		if rs.ctx.Err() != nil {
			return rs.ctx.Err()
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return rs.settle()
		}
		if err != nil {
			return fmt.Errorf("read the checkpoint: %w", err)
		}
		if n >= rs.limits.Entries {
			return ErrTooMany
		}
		if err := rs.entry(h, t); err != nil {
			return err
		}
	}
}

func (rs *restorer) entry(h *tar.Header, content io.Reader) error {
	name := strings.TrimSuffix(h.Name, "/")
	if !local(name) {
		return fmt.Errorf("%w: name %.200q", ErrBad, h.Name)
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return rs.file(name, h, content)
	case tar.TypeDir:
		if err := rs.root.MkdirAll(name, 0o700); err != nil {
			return fmt.Errorf("restore %q: %w", name, err)
		}
		rs.stamps[name], rs.modes[name] = h.ModTime, fs.FileMode(h.Mode)&0o777|0o700
		return nil
	case tar.TypeSymlink:
		if !inside(name, h.Linkname) {
			return fmt.Errorf("%w: link %.200q leads out", ErrBad, h.Name)
		}
		rs.links[name] = h.Linkname
		return nil
	}
	return fmt.Errorf("%w: %.200q is of a kind that does not belong", ErrBad, h.Name)
}

func (rs *restorer) file(name string, h *tar.Header, content io.Reader) error {
	if h.Size > rs.limits.Bytes-rs.found.Bytes {
		return ErrTooLarge
	}
	if parent := path.Dir(name); parent != "." {
		if err := rs.root.MkdirAll(parent, 0o700); err != nil {
			return fmt.Errorf("restore %q: %w", name, err)
		}
	}
	if err := rs.root.Remove(name); err == nil {
		rs.found.Files--
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("restore %q: %w", name, err)
	}
	f, err := rs.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("restore %q: %w", name, err)
	}
	n, err := io.Copy(f, content)
	rs.found.Files++
	rs.found.Bytes += n
	err = errors.Join(err, f.Close())
	if err == nil {
		err = rs.root.Chmod(name, fs.FileMode(h.Mode)&0o777|0o400)
	}
	if err == nil {
		err = rs.root.Chtimes(name, h.ModTime, h.ModTime)
	}
	if err != nil {
		return fmt.Errorf("restore %q: %w", name, err)
	}
	return nil
}

// settle makes the links, drops those that lead out by way of one another, and gives folders their modes and times.
func (rs *restorer) settle() error {
	for name, target := range rs.links {
		if parent := path.Dir(name); parent != "." {
			if err := rs.root.MkdirAll(parent, 0o700); err != nil {
				return fmt.Errorf("restore %q: %w", name, err)
			}
		}
		if err := rs.root.Symlink(filepath.FromSlash(target), name); err != nil {
			return fmt.Errorf("restore %q: %w", name, err)
		}
	}
	var out []string
	for name := range rs.links {
		if _, err := rs.root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			out = append(out, name)
		}
	}
	for _, name := range out {
		if err := rs.root.Remove(name); err != nil {
			return fmt.Errorf("drop link %q: %w", name, err)
		}
	}
	for name, mode := range rs.modes {
		if fi, err := rs.root.Lstat(name); err != nil || !fi.IsDir() {
			continue
		}
		err := errors.Join(rs.root.Chmod(name, mode), rs.root.Chtimes(name, rs.stamps[name], rs.stamps[name]))
		if err != nil {
			return fmt.Errorf("restore %q: %w", name, err)
		}
	}
	return nil
}

// local says whether a name stays below the folder, on this system.
func local(name string) bool {
	return name != "." && len(name) <= maxName && strings.Count(name, "/") < maxDepth &&
		name == path.Clean(name) && !strings.ContainsAny(name, "\\\x00") && filepath.IsLocal(filepath.FromSlash(name))
}

// endless ends a stream that holds more than it may.
type endless struct {
	r    io.Reader
	left int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, ErrTooLarge
	}
	n, err := e.r.Read(p[:min(int64(len(p)), e.left)])
	e.left -= int64(n)
	return n, err
}
