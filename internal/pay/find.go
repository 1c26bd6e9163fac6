package pay

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
)

const prefix = "haggle-pay-"

// Folders returns the folders that are searched for payment programs: that of the running program, where those that come with it
// lie, and then others.
func Folders(others []string, log *slog.Logger) []string {
	var folders []string
	if own, err := beside(); err != nil {
		log.Warn("payment programs beside this one cannot be found", "err", err)
	} else {
		folders = append(folders, own)
	}
	for _, f := range others {
		folders = append(folders, filepath.Clean(f))
	}
	return folders
}

// beside returns the folder of the running program.
func beside() (string, error) {
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("find the folder of this program: %w", err)
	}
	return filepath.Dir(path), nil
}

func programName(method string) string { return prefix + method }

// extension is what the names of programs end with on this system.
func extension() string {
	if goruntime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// find lists the programs of all folders by name, the first of each name, at most as many as an offer can hold.
func (p *Programs) find() []Found {
	first := map[string]Found{}
	for _, folder := range p.config.Folders {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.config.Log.Warn("folder of payment programs not read", "err", err)
		}
		for _, e := range entries {
			method, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), extension()), prefix)
			if !ok || !name.MatchString(method) || slices.Contains(reserved(), method) || programName(method)+extension() != e.Name() {
				continue
			}
			if _, taken := first[method]; taken {
				continue
			}
			path := filepath.Join(folder, e.Name())
			_, err := usable(path)
			first[method] = Found{Path: path, Method: Method{Name: method}, Err: err}
		}
	}
	var list []Found
	for _, method := range slices.Sorted(maps.Keys(first)) {
		if len(list) < mostPrograms {
			list = append(list, first[method])
		}
	}
	return list
}

// lookup returns the path of a method's program.
func (p *Programs) lookup(method string) (string, error) {
	for _, folder := range p.config.Folders {
		path := filepath.Join(folder, programName(method)+extension())
		_, err := usable(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return path, err
	}
	return "", ErrMissing
}

// usable refuses what we do not run: links, what nobody may execute, and what anybody may have written.
func usable(path string) (fs.FileInfo, error) {
	file, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	bad := func(why string) (fs.FileInfo, error) { return nil, fmt.Errorf("%w: %s", ErrMissing, why) }
	switch {
	case !filepath.IsAbs(path):
		return bad("its folder is not named in full")
	case !file.Mode().IsRegular():
		return bad("it is not a regular file")
	case goruntime.GOOS == "windows":
		return file, nil // has no such bits
	case file.Mode().Perm()&0o111 == 0:
		return bad("it is not executable")
	case file.Mode().Perm()&0o002 != 0 || folder.Mode().Perm()&0o002 != 0:
		return bad("anybody may change it or its folder")
	}
	return file, nil
}
