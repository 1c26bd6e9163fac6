package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// maxFile bounds a configuration file. Bytes.
const maxFile = 1 << 20

// Origin says where a value came from.
type Origin string

// Origins, from the weakest to the strongest.
const (
	FromDefault     Origin = "default"
	FromFile        Origin = "file"
	FromEnvironment Origin = "environment"
	FromFlag        Origin = "flag"
)

// Flags is what a command line says about the configuration. The zero Flags asks for the system's own places.
type Flags struct {
	Home   string            // one folder for all files of the program; "" asks the environment (HAGGLE_HOME, HAGGLED_HOME)
	File   string            // the file, which must exist; "" asks the environment (HAGGLE_CONFIG, HAGGLED_CONFIG)
	Values map[string]string // by the knob's name, as Knob.Kind says they are written in flags
	// Env is the environment; nil: the process's own, in which variables that look like ours and are not are an error. An
	// empty variable counts as not set.
	Env func(string) (string, bool)
}

// Value is a knob's value and its origin, for people.
type Value struct {
	Name   string
	Text   string // as in a flag
	Origin Origin
}

func (f Flags) env(name string) string {
	look := f.Env
	if look == nil {
		look = os.LookupEnv
	}
	value, _ := look(name)
	return value
}

// home returns the folder that was asked for, or "".
func (f Flags) home(prefix string) string {
	if f.Home != "" {
		return f.Home
	}
	return f.env(prefix + "HOME")
}

// layers reads a configuration from its four sources.
type layers[T any] struct {
	table   []spec[T]
	prefix  string
	into    *T
	origins map[string]Origin
}

func (l *layers[T]) load(f Flags, path string) error {
	if err := checkHome(f.home(l.prefix)); err != nil {
		return err
	}
	l.origins = make(map[string]Origin, len(l.table))
	for _, s := range l.table {
		l.origins[s.Name] = FromDefault
		if s.Default == "" {
			continue
		}
		if err := s.set(l.into, s.Default); err != nil {
			return fmt.Errorf("default of %s: %w", s.Name, err) // a mistake in the table, which a test looks for
		}
	}
	named := f.File
	if named == "" {
		named = f.env(l.prefix + "CONFIG")
	}
	if err := l.file(path, named); err != nil {
		return err
	}
	if f.Env == nil {
		if err := l.checkEnvironment(); err != nil {
			return err
		}
	}
	for _, s := range l.table {
		if value := f.env(s.Env(l.prefix)); value != "" {
			if err := l.set(s, value, FromEnvironment, "the environment ("+s.Env(l.prefix)+")", "."); err != nil {
				return err
			}
		}
	}
	return l.flags(f)
}

func (l *layers[T]) flags(f Flags) error {
	for _, name := range sorted(f.Values) {
		s, err := l.find(name, "a flag")
		if err != nil {
			return err
		}
		if err := l.set(s, f.Values[name], FromFlag, "a flag", "."); err != nil {
			return err
		}
	}
	return nil
}

// file reads the file that was named, or else the one at path, if there is one.
func (l *layers[T]) file(path, named string) error {
	if named != "" {
		path = named
	}
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) && named == "" {
		return nil
	}
	if err != nil {
		return &Error{Source: path, Problem: "cannot be read: " + bare(err), Hint: "check that the file is there and yours to read"}
	}
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		return syntax(path, err)
	}
	return l.tree(tree, "", path)
}

// bare returns an error's words without the path, which is told before them.
func bare(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return data, err
}

func syntax(path string, err error) error {
	e := &Error{Source: path, Problem: "is not TOML: " + err.Error(), Hint: "texts and times need quotes, as in network = \"main\""}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, column := at.Position()
		e.Problem = fmt.Sprintf("is not TOML: line %d, column %d: %s", line, column, strings.TrimPrefix(at.Error(), "toml: "))
	}
	return e
}

// tree walks the file's tables down to the knobs.
func (l *layers[T]) tree(tree map[string]any, table, path string) error {
	for _, name := range sorted(tree) {
		value, full := tree[name], table+name
		below, isTable := value.(map[string]any)
		if isTable && l.isTable(full) {
			if err := l.tree(below, full+".", path); err != nil {
				return err
			}
			continue
		}
		if s, free := l.free(table); free && isTable {
			if err := l.set(s, map[string]any{name: below}, FromFile, path, filepath.Dir(path)); err != nil {
				return err
			}
			continue
		}
		if l.isTable(full) {
			return &Error{Source: path, Key: full, Problem: "is a table", Hint: "write [" + full + "] on a line of its own, and its keys below"}
		}
		s, err := l.find(full, path)
		if err != nil {
			return err
		}
		if err := l.set(s, value, FromFile, path, filepath.Dir(path)); err != nil {
			return err
		}
	}
	return nil
}

func (l *layers[T]) isTable(name string) bool {
	return slices.ContainsFunc(l.table, func(s spec[T]) bool { return strings.HasPrefix(s.Name, name+".") })
}

func (l *layers[T]) find(name, source string) (spec[T], error) {
	i := slices.IndexFunc(l.table, func(s spec[T]) bool { return s.Name == name })
	if i >= 0 {
		return l.table[i], nil
	}
	return spec[T]{}, &Error{
		Source: source, Key: clip(name), Problem: "is not a key",
		Hint: "did you mean " + nearest(clip(name), names(l.table)) + "?",
	}
}

// set gives a knob its value. Paths in the value start in a folder.
func (l *layers[T]) set(s spec[T], value any, origin Origin, source, folder string) error {
	if err := s.set(l.into, value); err != nil {
		hint := s.Doc
		var wrong *notAWord
		if errors.As(err, &wrong) && wrong.near() != "" {
			hint = "did you mean " + wrong.near() + "?"
		}
		return &Error{Source: source, Key: s.Name, Problem: err.Error(), Hint: hint}
	}
	if list, ok := s.field(l.into).(*[]Image); ok {
		for i, image := range *list {
			if filepath.IsAbs(image.Archive) {
				continue
			}
			path, err := filepath.Abs(filepath.Join(folder, image.Archive))
			if err != nil {
				return err
			}
			(*list)[i].Archive = path
		}
	}
	l.origins[s.Name] = origin
	return nil
}

// sorted returns a map's keys in order, so that of two mistakes always the same one is told.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// clip bounds a name before it is compared and shown.
func clip(s string) string { return s[:min(len(s), 80)] }
