package filesync

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
)

// parallelStat is from how many names in a folder on they are looked at in parallel.
const parallelStat = 256

// scanner walks a tree in the order of comparePaths. It never follows a symlink, and it goes on after a fault, which it keeps.
type scanner struct {
	root    *os.Root
	ignore  bool
	workers int
	emit    func(*entry) error

	count    int64
	skipped  int64
	firstErr error // of what could not be read
}

// run walks the whole source, or its only file. It returns emit's error and ctx's.
func (s *scanner) run(ctx context.Context, src *source) error {
	s.root = src.root
	if src.single != "" {
		fi, err := s.root.Stat(src.single)
		if err != nil {
			return errorOf(src.base, err)
		}
		if !fi.Mode().IsRegular() {
			return &Error{Code: CodeFailed, Path: src.base, Message: "neither a file nor a folder"}
		}
		s.count++
		return s.emit(&entry{path: src.base, kind: kindFile, attrs: attrsOf(fi)})
	}
	var ign *ignorer
	if s.ignore {
		ign = ign.enter(s.root, "")
	}
	return s.folder(ctx, s.root, "", 0, ign)
}

func (s *scanner) fault(path string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		s.skipped++ // gone since its folder was read
		return
	}
	if s.firstErr == nil {
		s.firstErr = errorOf(path, err)
	}
}

func (s *scanner) folder(ctx context.Context, dir *os.Root, path string, depth int, ign *ignorer) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	names, err := readNames(dir)
	if err != nil {
		s.fault(path, err)
		return nil
	}
	infos := s.stat(dir, names)
	for i, name := range names {
		p := join(path, name)
		if infos[i] == nil {
			s.skipped++ // gone, or not to be looked at, which opening it would tell again
			continue
		}
		if err := s.one(ctx, dir, name, p, depth, infos[i], ign); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) one(ctx context.Context, dir *os.Root, name, p string, depth int, fi fs.FileInfo, ign *ignorer) error {
	if s.ignore && ign.ignores(p, fi.IsDir()) {
		return nil
	}
	e := &entry{path: p, attrs: attrsOf(fi)}
	switch {
	case fi.Mode().IsRegular():
		e.kind = kindFile
	case fi.IsDir():
		e.kind, e.size = kindFolder, 0
	case fi.Mode()&fs.ModeSymlink != 0:
		e.kind, e.size, e.mode = kindLink, 0, 0o777
		target, err := dir.Readlink(name)
		if err != nil {
			s.fault(p, err)
			return nil
		}
		e.target = slashed(target)
		if !staysInside(p, e.target) {
			s.skipped++
			return nil
		}
	default:
		s.skipped++
		return nil
	}
	if err := checkPath(p, MaxPath); err != nil {
		s.fault(p, err)
		return nil
	}
	s.count++
	if err := s.emit(e); err != nil || e.kind != kindFolder {
		return err
	}
	return s.enter(ctx, dir, name, p, depth, ign)
}

func (s *scanner) enter(ctx context.Context, dir *os.Root, name, p string, depth int, ign *ignorer) error {
	sub, err := openFolder(dir, name)
	if err != nil {
		s.fault(p, err)
		return nil
	}
	defer sub.Close()
	if s.ignore {
		ign = ign.enter(sub, p)
	}
	return s.folder(ctx, sub, p, depth+1, ign)
}

// openFolder opens the folder name of dir, and not one that a symlink put in its place since leads to.
func openFolder(dir *os.Root, name string) (*os.Root, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	sub, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	after, err := sub.Stat(".")
	if err != nil || !os.SameFile(before, after) {
		sub.Close()
		return nil, &Error{Code: CodeChanged, Path: name, Message: "the folder changed while it was opened"}
	}
	return sub, nil
}

// readNames returns the names in dir, sorted. Unfinished files are left out.
func readNames(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, isPart)
	slices.Sort(names)
	return names, nil
}

// stat looks at names without following symlinks. What cannot be looked at is nil.
func (s *scanner) stat(dir *os.Root, names []string) []fs.FileInfo {
	infos := make([]fs.FileInfo, len(names))
	look := func(from, to int) {
		for i := from; i < to; i++ {
			if fi, err := dir.Lstat(names[i]); err == nil {
				infos[i] = fi
			}
		}
	}
	if len(names) < parallelStat || s.workers < 2 {
		look(0, len(names))
		return infos
	}
	var wg sync.WaitGroup
	step := (len(names) + s.workers - 1) / s.workers
	for from := 0; from < len(names); from += step {
		wg.Go(func() { look(from, min(from+step, len(names))) })
	}
	wg.Wait()
	return infos
}

func attrsOf(fi fs.FileInfo) attrs {
	return attrs{mode: uint16(fi.Mode() & fileModeMask), mtime: fi.ModTime().UnixNano(), size: fi.Size()}
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func slashed(p string) string {
	if os.PathSeparator == '/' {
		return p
	}
	return strings.ReplaceAll(p, string(os.PathSeparator), "/")
}

// cut is the folder of path, and its last name.
func cut(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// hands opens folders below a root and keeps the last one open, since what is next is mostly in the same. It belongs to one
// goroutine.
type hands struct {
	root *os.Root
	path string
	dir  *os.Root
}

// in returns the folder at path, open until the next call.
func (h *hands) in(path string) (*os.Root, error) {
	if path == "" {
		return h.root, nil
	}
	if h.dir != nil && h.path == path {
		return h.dir, nil
	}
	h.close()
	dir, err := h.root.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	h.dir, h.path = dir, path
	return dir, nil
}

func (h *hands) close() {
	if h.dir != nil {
		h.dir.Close()
		h.dir = nil
	}
}

func fromSlashed(p string) string {
	return strings.ReplaceAll(p, "/", string(os.PathSeparator))
}
