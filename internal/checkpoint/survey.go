package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Bounds of a checkpoint, for who writes it and for who reads it.
const (
	MaxEntries = 100_000
	maxDepth   = 64
	maxName    = 4096
)

// ErrTooMany is more entries than a checkpoint has, or a deeper folder.
var ErrTooMany = errors.New("the folder has too many files for a checkpoint")

// Header is what is said before a stream: the first line, as JSON.
type Header struct {
	// Digest stands for the state: names, modes, sizes and times of change. The same digest means that nothing was written since.
	Digest string `json:"digest"`
	// Files and Bytes are what the stream holds before it is packed.
	Files int64 `json:"files"`
	Bytes int64 `json:"bytes"`
	// Follows says whether the stream follows. It does not where the asker has this state, or there is none.
	Follows bool `json:"follows"`
}

// State is what a folder held when it was looked at.
type State struct {
	Header
	entries []entry
}

type entry struct {
	name string // slash-separated, below the folder
	info fs.FileInfo
	link string
}

// Survey looks through dir. A folder that is not there is an empty state. Files whose names end in .tmp, .part or .partial are
// not finished and are left out, as is everything but files, folders and symbolic links that stay inside.
func Survey(ctx context.Context, dir string) (*State, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return &State{Header: Header{Digest: hex.EncodeToString(sha256.New().Sum(nil))}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the checkpoint folder: %w", err)
	}
	defer root.Close()
	s := &State{}
	sum := sha256.New()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, fs.ErrNotExist) || name == "." && err == nil {
			return nil // a file may go while we look
		}
		if err != nil {
			return err
		}
		return s.add(root, sum, name, d)
	})
	if err != nil {
		return nil, fmt.Errorf("look through the checkpoint folder: %w", err)
	}
	s.Digest = hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

func (s *State) add(root *os.Root, sum hash.Hash, name string, d fs.DirEntry) error {
	if unfinished(name) {
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if len(s.entries) >= MaxEntries || strings.Count(name, "/") >= maxDepth || len(name) > maxName {
		return ErrTooMany
	}
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	e := entry{name: name, info: info}
	size := int64(0)
	switch info.Mode().Type() {
	case 0:
		size = info.Size()
		s.Files++
		s.Bytes += size
	case fs.ModeDir:
	case fs.ModeSymlink:
		e.link, err = root.Readlink(name)
		if err != nil || !inside(name, e.link) {
			return nil
		}
	default:
		return nil
	}
	changed := info.ModTime().UnixNano()
	if info.IsDir() {
		changed = 0 // what changes a folder's time shows in the names of its files, or is an unfinished one
	}
	fmt.Fprintf(sum, "%q %o %d %d %q\n", name, info.Mode(), size, changed, e.link)
	s.entries = append(s.entries, e)
	return nil
}

// unfinished says whether a name is that of a file which will be renamed when it is whole.
func unfinished(name string) bool {
	switch path.Ext(name) {
	case ".tmp", ".part", ".partial":
		return true
	}
	return false
}

// inside says whether a symbolic link's words lead no further up than to the folder of the checkpoint.
func inside(name, target string) bool {
	if target == "" || len(target) > maxName || path.IsAbs(target) || strings.ContainsAny(target, "\\:\x00") {
		return false
	}
	whole := path.Join(path.Dir(name), target)
	return whole != ".." && !strings.HasPrefix(whole, "../")
}
