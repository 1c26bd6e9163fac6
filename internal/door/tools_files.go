package door

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

func ls(t *tool) {
	names := t.args
	if len(names) == 0 {
		names = []string{"."}
	}
	for i, name := range names {
		fi, err := os.Lstat(t.path(name))
		if !t.check(err) {
			continue
		}
		if target, err := os.Stat(t.path(name)); err == nil && target.IsDir() && !t.has("d") {
			fi = target
		}
		if !fi.IsDir() || t.has("d") {
			t.list(name, t.path(name), fi)
			continue
		}
		if len(names) > 1 {
			if i > 0 {
				fmt.Fprintln(t.out)
			}
			fmt.Fprintf(t.out, "%s:\n", name)
		}
		entries, err := os.ReadDir(t.path(name))
		t.check(err)
		for _, e := range entries {
			if e.Name()[0] == '.' && !t.has("aA") {
				continue
			}
			if info, err := e.Info(); err == nil {
				t.list(e.Name(), filepath.Join(t.path(name), e.Name()), info)
			}
		}
	}
}

func (t *tool) list(name, path string, fi fs.FileInfo) {
	if !t.has("l") {
		fmt.Fprintln(t.out, name)
		return
	}
	size := strconv.FormatInt(fi.Size(), 10)
	if t.has("h") {
		size = human(fi.Size())
	}
	fmt.Fprintf(t.out, "%s %s %12s %s %s", fi.Mode(), owner(fi), size, fi.ModTime().Format("2006-01-02 15:04"), name)
	if fi.Mode().Type() == fs.ModeSymlink {
		if to, err := os.Readlink(path); err == nil {
			fmt.Fprintf(t.out, " -> %s", to)
		}
	}
	fmt.Fprintln(t.out)
}

func human(n int64) string {
	for _, unit := range []string{"B", "K", "M", "G"} {
		if n < 10_000 {
			return strconv.FormatInt(n, 10) + unit
		}
		n /= 1024
	}
	return strconv.FormatInt(n, 10) + "T"
}

func du(t *tool) {
	names := t.args
	if len(names) == 0 {
		names = []string{"."}
	}
	for _, name := range names {
		var sum int64
		t.check(filepath.WalkDir(t.path(name), func(_ string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if fi, err := e.Info(); err == nil && fi.Mode().IsRegular() {
				sum += fi.Size()
			}
			return t.ctx.Err()
		}))
		text := strconv.FormatInt((sum+1023)/1024, 10)
		if t.has("h") {
			text = human(sum)
		}
		fmt.Fprintf(t.out, "%s\t%s\n", text, name)
	}
}

func mkdir(t *tool) {
	if !t.need(1) {
		return
	}
	for _, name := range t.args {
		if t.has("p") {
			t.check(os.MkdirAll(t.path(name), 0o777))
		} else {
			t.check(os.Mkdir(t.path(name), 0o777))
		}
	}
}

func rm(t *tool) {
	if !t.need(1) {
		return
	}
	for _, name := range t.args {
		path := t.path(name)
		fi, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && t.has("f"):
		case err != nil:
			t.check(err)
		case t.name == "rm" && fi.IsDir() && !t.has("rR"):
			t.check(&os.PathError{Path: name, Err: errors.New("is a folder; use -r")})
		case t.name == "rmdir" && !fi.IsDir():
			t.check(&os.PathError{Path: name, Err: errors.New("is no folder")})
		case t.name == "rm" && t.has("rR"):
			t.check(os.RemoveAll(path))
		default:
			t.check(os.Remove(path))
		}
	}
}

func touch(t *tool) {
	if !t.need(1) {
		return
	}
	now := time.Now()
	for _, name := range t.args {
		f, err := os.OpenFile(t.path(name), os.O_WRONLY|os.O_CREATE, 0o666)
		if err == nil {
			err = errors.Join(f.Close(), os.Chtimes(t.path(name), now, now))
		}
		t.check(err)
	}
}

func chmod(t *tool) {
	if !t.need(2) {
		return
	}
	mode, err := strconv.ParseUint(t.args[0], 8, 12)
	if err != nil {
		t.check(errors.New("the mode must be octal, as 755"))
		return
	}
	for _, name := range t.args[1:] {
		t.check(os.Chmod(t.path(name), fs.FileMode(mode)&0o777))
	}
}

func ln(t *tool) {
	if !t.need(2) {
		return
	}
	if t.has("f") {
		_ = os.Remove(t.path(t.args[1]))
	}
	if t.has("s") {
		t.check(os.Symlink(t.args[0], t.path(t.args[1])))
	} else {
		t.check(os.Link(t.path(t.args[0]), t.path(t.args[1])))
	}
}

// targets pairs each source with where it goes.
func (t *tool) targets(do func(from, to string) error) {
	if !t.need(2) {
		return
	}
	last := t.path(t.args[len(t.args)-1])
	sources := t.args[:len(t.args)-1]
	fi, err := os.Stat(last)
	folder := err == nil && fi.IsDir()
	if len(sources) > 1 && !folder {
		t.check(&os.PathError{Path: last, Err: errors.New("is no folder")})
		return
	}
	for _, s := range sources {
		to := last
		if folder {
			to = filepath.Join(last, filepath.Base(s))
		}
		t.check(do(t.path(s), to))
	}
}

func mv(t *tool) {
	t.targets(func(from, to string) error {
		err := os.Rename(from, to)
		if errors.Is(err, crossDevice()) {
			if err = t.copyTree(from, to); err == nil {
				err = os.RemoveAll(from)
			}
		}
		return err
	})
}

func cp(t *tool) {
	t.targets(func(from, to string) error {
		if fi, err := os.Stat(from); err == nil && fi.IsDir() && !t.has("rRa") {
			return &os.PathError{Path: from, Err: errors.New("is a folder; use -r")}
		}
		return t.copyTree(from, to)
	})
}

// copyTree copies files, folders and links, with their modes.
func (t *tool) copyTree(from, to string) error {
	if rel, err := filepath.Rel(from, to); err == nil && filepath.IsLocal(rel) {
		return &os.PathError{Path: to, Err: errors.New("is in, or is, what is copied")}
	}
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || t.ctx.Err() != nil {
			return errors.Join(err, t.ctx.Err())
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		there := filepath.Join(to, rel)
		fi, err := e.Info()
		if err != nil {
			return err
		}
		switch fi.Mode().Type() {
		case fs.ModeDir:
			return os.MkdirAll(there, fi.Mode().Perm()|0o700)
		case fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, there)
		case 0:
			return copyFile(path, there, fi.Mode().Perm())
		}
		return nil
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
