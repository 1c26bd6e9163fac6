package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pkg is one of our packages as its files say it, whatever system a file is for.
type pkg struct {
	path        string   // below the module's, "" for the root
	imports     []string // by its own code
	testImports []string // by its tests
	deps        []string // all that it links on this system
	files       []source
}

// source is one parsed file.
type source struct {
	name  string // below the repository's root
	test  bool
	here  bool // compiled on this system, in the package itself
	lines int
	tree  *ast.File
	fset  *token.FileSet
}

// listed is what go list prints of a package.
type listed struct {
	ImportPath, Dir           string
	Deps                      []string
	GoFiles, CgoFiles         []string
	TestGoFiles, XTestGoFiles []string
	IgnoredGoFiles            []string
	Standard                  bool
	Error                     *struct{ Err string }
}

const root = "../.." // of the repository, from here

// load reads every package of this repository.
func load(t *testing.T) []pkg {
	t.Helper()
	var pkgs []pkg
	fset := token.NewFileSet()
	for _, l := range list(t, "-e", "./...") {
		if l.Error != nil {
			t.Fatalf("go list %s: %s", l.ImportPath, l.Error.Err)
		}
		p := pkg{path: strings.TrimPrefix(strings.TrimPrefix(l.ImportPath, strings.TrimSuffix(module, "/")), "/"), deps: l.Deps}
		here := slices.Concat(l.GoFiles, l.CgoFiles)
		for _, name := range slices.Concat(here, l.TestGoFiles, l.XTestGoFiles, l.IgnoredGoFiles) {
			s, err := parse(fset, filepath.Join(p.path, name), filepath.Join(l.Dir, name), nil)
			if err != nil {
				t.Fatal(err)
			}
			s.here = slices.Contains(here, name)
			p.add(s)
		}
		pkgs = append(pkgs, p)
	}
	return pkgs
}

// list runs go list at the repository's root.
func list(t *testing.T, args ...string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{
		"list",
		"-json=ImportPath,Dir,Deps,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,IgnoredGoFiles,Standard,Error",
	}, args...)...)
	cmd.Dir = root
	var talk bytes.Buffer
	cmd.Stderr = &talk
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, talk.String())
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		switch err := dec.Decode(&l); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%v: %v", cmd.Args, err)
		}
		all = append(all, l)
	}
}

// parse reads one file, from text where that is not nil. All files of one package share fset.
func parse(fset *token.FileSet, name, path string, text any) (source, error) {
	tree, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, fmt.Errorf("read source: %w", err)
	}
	return source{
		name: name, test: strings.HasSuffix(name, "_test.go"), here: true,
		lines: fset.File(tree.FileStart).LineCount(), tree: tree, fset: fset,
	}, nil
}

// add takes a file and its imports into the package.
func (p *pkg) add(s source) {
	p.files = append(p.files, s)
	for _, spec := range s.tree.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser would have refused it
		}
		if s.test {
			p.testImports = append(p.testImports, path)
		} else {
			p.imports = append(p.imports, path)
		}
	}
}

// at says where a node is, as an editor understands it.
func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.name, s.fset.Position(n.Pos()).Line)
}
