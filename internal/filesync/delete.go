package filesync

import "os"

// deleteExtras removes what is not in the list.
func (r *receiver) deleteExtras() error {
	x := extras{list: make(map[string]byte, len(r.list))}
	for _, e := range r.list {
		if !e.skip {
			x.list[e.path] = e.kind
		}
	}
	var ign *ignorer
	if r.ignore {
		ign = ign.enter(r.t.root, "")
	}
	err := x.folder(r.t.root, "", ign)
	r.rep.Deleted = x.deleted
	return err
}

// extras finds what is in a tree and not in a list.
type extras struct {
	list    map[string]byte
	deleted int64
}

func (x *extras) folder(dir *os.Root, path string, ign *ignorer) error {
	names, err := allNames(dir)
	if err != nil {
		return errorOf(path, err)
	}
	for _, name := range names {
		p := join(path, name)
		if kind, ok := x.list[p]; ok {
			if kind == kindFolder {
				if err := x.enter(dir, name, p, ign); err != nil {
					return err
				}
			}
			continue
		}
		if err := x.remove(dir, name, p, ign); err != nil {
			return errorOf(p, err)
		}
	}
	return nil
}

func (x *extras) enter(dir *os.Root, name, p string, ign *ignorer) error {
	sub, err := openFolder(dir, name)
	if err != nil {
		return errorOf(p, err)
	}
	defer sub.Close()
	if ign != nil {
		ign = ign.enter(sub, p)
	}
	return x.folder(sub, p, ign)
}

// remove removes one extra entry, but nothing that is ignored.
func (x *extras) remove(dir *os.Root, name, p string, ign *ignorer) error {
	if ign == nil || isPart(name) {
		x.deleted++
		return dir.RemoveAll(name)
	}
	fi, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if ign.ignores(p, fi.IsDir()) {
		return nil
	}
	if !fi.IsDir() {
		x.deleted++
		return dir.Remove(name)
	}
	if err := x.enter(dir, name, p, ign); err != nil {
		return err
	}
	if dir.Remove(name) == nil {
		x.deleted++ // otherwise something ignored is in it
	}
	return nil
}

// allNames returns the names in dir, unfinished files included.
func allNames(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
