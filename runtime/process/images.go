package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"haggle/runtime"
	"haggle/runtime/archive"
)

// maxUnpacked bounds the files of one image, in bytes.
const maxUnpacked = 64 << 30

// image is what is kept of an image beside its files.
type image struct {
	Digest     string
	Size       int64
	Entrypoint []string
	Cmd        []string
	Env        []string
	Program    string // below the folder of its files
}

// imageDir returns the folder of an image: its files are in the folder root, what is known of it in image.json.
func (e *Engine) imageDir(digest string) string {
	return filepath.Join(e.cfg.Root, "images", strings.TrimPrefix(digest, "sha256:"))
}

// namesFile holds the digest of each name.
func (e *Engine) namesFile() string { return filepath.Join(e.cfg.Root, "names.json") }

func (e *Engine) names() (map[string]string, error) {
	names, err := optional[map[string]string](e.namesFile())
	if err != nil || names == nil || *names == nil {
		return map[string]string{}, err
	}
	return *names, nil
}

// image returns an image that the engine holds.
func (e *Engine) image(digest string) (image, error) {
	img, err := optional[image](filepath.Join(e.imageDir(digest), "image.json"))
	if err != nil {
		return image{}, err
	}
	if img == nil {
		return image{}, fmt.Errorf("%w: %s", runtime.ErrImageNotFound, digest)
	}
	return *img, nil
}

// Images implements runtime.Runtime.
func (e *Engine) Images(ctx context.Context) ([]runtime.Image, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	names, err := e.names()
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	var all []runtime.Image
	for name, digest := range names {
		img, err := e.image(digest)
		if err != nil {
			return nil, fmt.Errorf("list images: %w", err)
		}
		all = append(all, runtime.Image{Name: name, Digest: img.Digest, Size: img.Size})
	}
	slices.SortFunc(all, func(a, b runtime.Image) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// Import implements runtime.Runtime. An image whose entrypoint is no program of its own is ErrUnsupported. An image that
// lost its name stays until Purge.
func (e *Engine) Import(ctx context.Context, name string, archive io.Reader) (runtime.Image, error) {
	e.importing.Lock()
	defer e.importing.Unlock()
	img, err := e.unpack(ctx, archive)
	if err != nil {
		return runtime.Image{}, fmt.Errorf("import image %s: %w", name, err)
	}
	names, err := e.names()
	if err == nil {
		names[name] = img.Digest
		err = writeFile(e.namesFile(), names)
	}
	if err != nil {
		return runtime.Image{}, fmt.Errorf("import image %s: %w", name, err)
	}
	return runtime.Image{Name: name, Digest: img.Digest, Size: img.Size}, nil
}

// unpack makes an image's folder, unless it is there.
func (e *Engine) unpack(ctx context.Context, from io.Reader) (_ image, err error) {
	dir, err := os.MkdirTemp(e.imageDir(""), ".import-")
	if err != nil {
		return image{}, err
	}
	defer func() { err = errors.Join(err, removeAll(dir)) }()
	// The layers come before or after what describes them: the archive is read more than once.
	f, err := os.Create(filepath.Join(dir, "archive"))
	if err != nil {
		return image{}, err
	}
	defer f.Close()
	if _, err := io.Copy(f, reader{ctx, from}); err != nil {
		return image{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return image{}, err
	}
	info, err := archive.Inspect(f)
	if err != nil {
		return image{}, bad(err)
	}
	if img, err := e.image(info.Digest); err == nil {
		return img, nil
	}
	made := filepath.Join(dir, "made")
	files := filepath.Join(made, "root")
	if err := os.MkdirAll(files, 0o700); err != nil {
		return image{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return image{}, err
	}
	if info, err = archive.Extract(f, files, maxUnpacked); err != nil {
		return image{}, bad(err)
	}
	img := image{Digest: info.Digest, Size: info.Size, Entrypoint: info.Config.Entrypoint, Cmd: info.Config.Cmd, Env: info.Config.Env}
	if img.Program, err = program(files, img.Entrypoint); err != nil {
		return image{}, err
	}
	if err := writeFile(filepath.Join(made, "image.json"), img); err != nil {
		return image{}, err
	}
	return img, os.Rename(made, e.imageDir(img.Digest))
}

// program finds the file that an image runs, and gives it the name that the system wants of a program.
func program(files string, entrypoint []string) (string, error) {
	if len(entrypoint) == 0 {
		return "", fmt.Errorf("an image without an entrypoint: %w", runtime.ErrUnsupported)
	}
	name := filepath.FromSlash(strings.TrimLeft(entrypoint[0], "/"))
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf("entrypoint %.200q: %w", entrypoint[0], runtime.ErrUnsupported)
	}
	info, err := os.Lstat(filepath.Join(files, name))
	if err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("entrypoint %.200q is no file of the image: %w", entrypoint[0], runtime.ErrUnsupported)
	}
	if wanted := executable(name); wanted != name {
		if err := os.Rename(filepath.Join(files, name), filepath.Join(files, wanted)); err != nil {
			return "", err
		}
		name = wanted
	}
	return name, nil
}

// sweepImports removes what an import left that was cut off.
func (e *Engine) sweepImports() error {
	left, err := filepath.Glob(filepath.Join(e.imageDir(""), ".import-*"))
	for _, dir := range left {
		err = errors.Join(err, removeAll(dir))
	}
	return err
}

// bad classes what is wrong with an archive.
func bad(err error) error {
	if errors.Is(err, archive.ErrNotArchive) {
		return fmt.Errorf("%w: %w", runtime.ErrBadArchive, err)
	}
	return err
}

// reader reads until its context ends.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
