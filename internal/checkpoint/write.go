package checkpoint

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// ErrChanging is a file that was written to each time it was read. A job that renames finished files into place has none.
var ErrChanging = errors.New("the file keeps changing")

// zstdWindow bounds the memory of both halves.
const zstdWindow = 1 << 20

// Recipients reads age X25519 recipients. At least one and at most 16.
func Recipients(keys []string) ([]age.Recipient, error) {
	if len(keys) == 0 || len(keys) > 16 {
		return nil, fmt.Errorf("%d recipients; from 1 to 16 are possible", len(keys))
	}
	var all []age.Recipient
	for _, k := range keys {
		r, err := age.ParseX25519Recipient(k)
		if err != nil {
			return nil, fmt.Errorf("read a recipient: %w", err)
		}
		all = append(all, r)
	}
	return all, nil
}

// Write writes the stream of a state that Survey found in dir. A file that is written to while it is read is read once more;
// if it then has changed in another way than by growing, the stream is abandoned with ErrChanging. A stream that was not
// finished cannot be restored.
func Write(ctx context.Context, w io.Writer, dir string, s *State, to []age.Recipient) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the checkpoint folder: %w", err)
	}
	defer root.Close()
	sealed, err := age.Encrypt(w, to...)
	if err != nil {
		return fmt.Errorf("encrypt the checkpoint: %w", err)
	}
	packed, err := zstd.NewWriter(sealed,
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow))
	if err != nil {
		return err
	}
	defer packed.Close()
	t := tar.NewWriter(packed)
	buf := make([]byte, 128<<10)
	for _, e := range s.entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := e.write(t, root, buf); err != nil {
			return fmt.Errorf("checkpoint %q: %w", e.name, err)
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return sealed.Close()
}

func (e entry) write(t *tar.Writer, root *os.Root, buf []byte) error {
	if !e.info.Mode().IsRegular() {
		h, err := tar.FileInfoHeader(e.info, e.link)
		if err != nil {
			return err
		}
		return t.WriteHeader(plain(h, e.name))
	}
	for try := 0; ; try++ {
		same, grew, err := e.writeFile(t, root, buf)
		if errors.Is(err, fs.ErrNotExist) && try == 0 {
			return nil // removed since, as old checkpoints are
		}
		if err != nil {
			return err
		}
		if same || try > 0 && grew {
			return nil
		}
		if try > 0 {
			return ErrChanging
		}
	}
}

// writeFile writes a file as it is now. A later entry of a name counts, so that a second try is a second entry.
func (e entry) writeFile(t *tar.Writer, root *os.Root, buf []byte) (same, grew bool, err error) {
	f, err := openRegular(root, e.name)
	if err != nil {
		return false, false, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return false, false, err
	}
	if !before.Mode().IsRegular() {
		return true, false, nil // became something else
	}
	h, err := tar.FileInfoHeader(before, "")
	if err != nil {
		return false, false, err
	}
	if err := t.WriteHeader(plain(h, e.name)); err != nil {
		return false, false, err
	}
	n, err := io.CopyBuffer(struct{ io.Writer }{t}, struct{ io.Reader }{io.LimitReader(f, h.Size)}, buf)
	if err != nil {
		return false, false, err
	}
	short := n < h.Size
	clear(buf)
	for n < h.Size { // it shrank; the entry needs its length all the same
		m, err := t.Write(buf[:min(int64(len(buf)), h.Size-n)])
		if n += int64(m); err != nil {
			return false, false, err
		}
	}
	after, err := f.Stat()
	if err != nil {
		return false, false, err
	}
	same = !short && after.Size() == before.Size() && after.ModTime().Equal(before.ModTime())
	return same, !short && after.Size() > before.Size(), nil
}

// plain leaves in a header what a checkpoint keeps: the name, the kind, the mode, the size and the time.
func plain(h *tar.Header, name string) *tar.Header {
	if h.Typeflag == tar.TypeDir {
		name += "/"
	}
	return &tar.Header{
		Typeflag: h.Typeflag, Name: name, Linkname: h.Linkname, Size: h.Size, Mode: h.Mode & 0o777, ModTime: h.ModTime,
		Format: tar.FormatPAX,
	}
}
