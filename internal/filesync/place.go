package filesync

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// source is where files are read: a folder, or one file in it.
type source struct {
	root   *os.Root
	single string // where in root the only file is; empty for a folder
	kind   byte   // sourceFile, sourceFolder, sourceContents
	base   string // the name that a file or folder has
}

func (s *source) close() { s.root.Close() }

// place finds folders by the paths that people write: those of the system, or those in a root that no path leads out of.
type place struct {
	root *os.Root // nil: the system's own
}

func (p place) stat(name string) (fs.FileInfo, error) {
	if p.root == nil {
		return os.Stat(name)
	}
	return p.root.Stat(name)
}

func (p place) open(name string) (*os.Root, error) {
	if p.root == nil {
		return os.OpenRoot(name)
	}
	return p.root.OpenRoot(name)
}

func (p place) mkdirAll(name string) error {
	if p.root == nil {
		return os.MkdirAll(name, 0o777)
	}
	return p.root.MkdirAll(name, 0o777)
}

func openLocalSource(from string) (*source, error) {
	return place{}.source(filepath.Clean(orDot(from)), slashed(from))
}

// source opens what to read. written is the path as the user wrote it, with "/": its end says whether contents are meant.
func (p place) source(name, written string) (*source, error) {
	fi, err := p.stat(name)
	if err != nil {
		return nil, errorOf(written, err)
	}
	base, contents := lastName(written)
	switch {
	case fi.IsDir():
		root, err := p.open(name)
		if err != nil {
			return nil, errorOf(written, err)
		}
		kind := byte(sourceFolder)
		if contents {
			kind, base = sourceContents, ""
		}
		return &source{root: root, kind: kind, base: base}, nil
	case strings.HasSuffix(written, "/"):
		return nil, &Error{Code: CodeFailed, Path: written, Message: "not a folder"}
	case !fi.Mode().IsRegular():
		return nil, &Error{Code: CodeFailed, Path: written, Message: "neither a file nor a folder"}
	}
	// The file itself may be reached through a symlink; it is read where it is, under the name that was asked for.
	folder, single := ".", name
	if p.root == nil {
		real, err := filepath.EvalSymlinks(name)
		if err != nil {
			return nil, errorOf(written, err)
		}
		folder, single = filepath.Dir(real), filepath.Base(real)
	}
	root, err := p.open(folder)
	if err != nil {
		return nil, errorOf(written, err)
	}
	return &source{root: root, kind: sourceFile, base: base, single: single}, nil
}

// lastName is the last name of a path, and whether the path means the contents of a folder rather than the folder.
func lastName(p string) (name string, contents bool) {
	base := path.Base(path.Clean(orDot(p)))
	last := p[strings.LastIndexByte(p, '/')+1:]
	if last == "" || last == "." || last == ".." || base == "." || base == ".." || base == "/" {
		return base, true
	}
	return base, false
}

func orDot(p string) string {
	if p == "" {
		return "."
	}
	return p
}

// target is where files are written: a folder, or one file in it.
type target struct {
	root   *os.Root
	single string
	// fresh says that nothing is there yet, so that there is nothing to ask.
	fresh bool
}

func (t *target) close() { t.root.Close() }

// target opens, and makes where it is missing, the folder to write to. base is the source's last name.
func (p place) target(name, written string, kind byte, base string) (*target, error) {
	t := &target{}
	fi, err := p.stat(name)
	isDir := err == nil && fi.IsDir()
	dir := name
	switch {
	case kind == sourceContents:
	case kind == sourceFolder:
		dir = filepath.Join(name, filepath.FromSlash(base))
	case isDir || written == "" || strings.HasSuffix(written, "/"):
		t.single = base
	default:
		dir, t.single = filepath.Dir(name), filepath.Base(name)
	}
	if kind != sourceContents {
		last := t.single
		if kind == sourceFolder {
			last = base
		}
		if err := checkPath(last, MaxName); err != nil || strings.ContainsRune(last, os.PathSeparator) {
			return nil, &Error{Code: CodeBadPath, Path: bounded(last), Message: "not a name that a file can have"}
		}
	}
	if err := p.mkdirAll(dir); err != nil {
		return nil, errorOf(written, err)
	}
	if t.root, err = p.open(dir); err != nil {
		return nil, errorOf(written, err)
	}
	t.fresh = t.isFresh()
	return t, nil
}

func (t *target) isFresh() bool {
	if t.single != "" {
		_, err1 := t.root.Lstat(t.single)
		_, err2 := t.root.Lstat(partName(t.single))
		return errors.Is(err1, fs.ErrNotExist) && errors.Is(err2, fs.ErrNotExist)
	}
	f, err := t.root.Open(".")
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// resolve makes a path of the other side's words into one of this place.
func (cfg *ServeConfig) resolve(p string) (place, string, error) {
	if len(p) > MaxPath || strings.IndexByte(p, 0) >= 0 {
		return place{}, "", &Error{Code: CodeBadPath, Path: bounded(p), Message: "the path is too long or has a zero byte"}
	}
	full := path.Clean(p)
	if !path.IsAbs(p) {
		full = path.Join("/", cfg.Base, p)
		if cfg.Root == "" && !path.IsAbs(cfg.Base) {
			full = path.Join(orDot(cfg.Base), p)
		}
	}
	if cfg.Root == "" {
		return place{}, filepath.FromSlash(full), nil
	}
	root, err := os.OpenRoot(cfg.Root)
	if err != nil {
		return place{}, "", errorOf(p, err)
	}
	return place{root: root}, filepath.FromSlash(orDot(strings.TrimPrefix(full, "/"))), nil
}
