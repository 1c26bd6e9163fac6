package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"haggle/runtime"
	"haggle/runtime/archive"
)

const (
	maxUnpacked  = 64 << 30 // bytes in the files of one image
	importPrefix = ".import-"
)

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

// image returns an image whose files are there, named or not.
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

// startable returns what a job can be made of: an image that has a name, or that of the job whose disk it takes over. The lock of
// changes is held.
func (e *Engine) startable(spec runtime.Spec) (image, error) {
	img, err := e.image(spec.Image)
	if err != nil {
		return image{}, err
	}
	names, err := e.names()
	if err != nil {
		return image{}, err
	}
	named := slices.Contains(slices.Collect(maps.Values(names)), spec.Image)
	if !named && (spec.From == "" || !e.runs(spec.From, spec.Image)) {
		return image{}, fmt.Errorf("%w: %s", runtime.ErrImageNotFound, spec.Image)
	}
	return img, nil
}

// runs reports whether a job is of an image: the path of its program says so. One that cannot be read may be of any.
func (e *Engine) runs(id, digest string) bool {
	r, err := folder(e.jobDir(id)).glance()
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	return strings.HasPrefix(r.job.Program, e.imageDir(digest)+string(filepath.Separator))
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
		if errors.Is(err, runtime.ErrImageNotFound) {
			continue // removed just now
		}
		if err != nil {
			return nil, fmt.Errorf("list images: %w", err)
		}
		all = append(all, runtime.Image{Name: name, Digest: img.Digest, Size: img.Size})
	}
	slices.SortFunc(all, func(a, b runtime.Image) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// Import implements runtime.Runtime. An image whose entrypoint is no program of its own is ErrUnsupported.
func (e *Engine) Import(ctx context.Context, name string, archive io.Reader) (runtime.Image, error) {
	img, err := e.importImage(ctx, name, archive)
	if err != nil {
		return runtime.Image{}, fmt.Errorf("import image %s: %w", name, err)
	}
	return runtime.Image{Name: name, Digest: img.Digest, Size: img.Size}, nil
}

func (e *Engine) importImage(ctx context.Context, name string, from io.Reader) (_ image, err error) {
	e.importing.Lock()
	defer e.importing.Unlock()
	dir, err := os.MkdirTemp(e.imageDir(""), importPrefix)
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
	if img, err := e.name(name, info.Digest, ""); !errors.Is(err, runtime.ErrImageNotFound) {
		return img, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return image{}, err
	}
	made := filepath.Join(dir, "made")
	if err := unpack(f, made); err != nil {
		return image{}, err
	}
	return e.name(name, info.Digest, made)
}

// unpack makes what will be an image's folder.
func unpack(from io.ReadSeeker, made string) error {
	files := filepath.Join(made, "root")
	if err := os.MkdirAll(files, 0o700); err != nil {
		return err
	}
	info, err := archive.Extract(from, files, maxUnpacked)
	if err != nil {
		return bad(err)
	}
	img := image{Digest: info.Digest, Size: info.Size, Entrypoint: info.Config.Entrypoint, Cmd: info.Config.Cmd, Env: info.Config.Env}
	if img.Program, err = program(files, img.Entrypoint); err != nil {
		return err
	}
	return writeFile(filepath.Join(made, "image.json"), img)
}

// name gives an image its name: one that is there, or the one of a folder that was made.
func (e *Engine) name(name, digest, made string) (image, error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	img, err := e.image(digest)
	if errors.Is(err, runtime.ErrImageNotFound) && made != "" {
		if err := os.Rename(made, e.imageDir(digest)); err != nil {
			return image{}, err
		}
		img, err = e.image(digest)
	}
	if err != nil {
		return image{}, err
	}
	names, err := e.names()
	if err != nil {
		return image{}, err
	}
	names[name] = digest
	return img, errors.Join(writeFile(e.namesFile(), names), e.collect())
}

// RemoveImage implements runtime.Runtime.
func (e *Engine) RemoveImage(ctx context.Context, digest string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.changing.Lock()
	defer e.changing.Unlock()
	names, err := e.names()
	if err == nil && slices.Contains(slices.Collect(maps.Values(names)), digest) {
		maps.DeleteFunc(names, func(_, d string) bool { return d == digest })
		err = writeFile(e.namesFile(), names)
	}
	if err := errors.Join(err, e.collect()); err != nil {
		return fmt.Errorf("remove image %s: %w", digest, err)
	}
	return nil
}

// collect removes the images that have no name and no job. The lock of changes is held.
func (e *Engine) collect() error {
	dirs, err := os.ReadDir(e.imageDir(""))
	if err != nil {
		return err
	}
	names, err := e.names()
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, digest := range names {
		named[filepath.Base(e.imageDir(digest))] = true
	}
	var errs []error
	for _, dir := range dirs {
		if named[dir.Name()] || strings.HasPrefix(dir.Name(), importPrefix) {
			continue
		}
		if slices.ContainsFunc(e.ids(), func(id string) bool { return e.runs(id, dir.Name()) }) {
			continue
		}
		gone := e.imageDir(importPrefix + "gone-" + dir.Name()) // so that nobody takes half an image for one
		err := os.Rename(e.imageDir(dir.Name()), gone)
		errs = append(errs, errors.Join(err, removeAll(gone)))
	}
	return errors.Join(errs...)
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
	left, err := filepath.Glob(filepath.Join(e.imageDir(""), importPrefix+"*"))
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
