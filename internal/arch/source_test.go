package arch_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

const (
	maxFile     = 400 // lines
	maxFunction = 60  // lines; tests are free to hold long tables
)

// text returns a sentence for each place where a package's source breaks the rules of style.
func text(p pkg, longFiles, longFunctions map[string]string) []string {
	faults := slices.Concat(documented(p), variables(p))
	for _, s := range p.files {
		if ast.IsGenerated(s.tree) {
			continue
		}
		faults = append(faults, bounds(s, longFiles, longFunctions)...)
		if s.test {
			faults = append(faults, sleepless(s)...)
		} else {
			faults = append(faults, exported(s)...)
		}
		if p.path == "market" && !s.test {
			faults = append(faults, pure(s)...)
		}
	}
	return faults
}

// documented wants a package comment, in a file that is not a test where there is one.
func documented(p pkg) []string {
	onlyTests := !slices.ContainsFunc(p.files, func(s source) bool { return !s.test })
	for _, s := range p.files {
		if s.tree.Doc.Text() != "" && (onlyTests || !s.test) {
			return nil
		}
	}
	return []string{fmt.Sprintf("package %q has no package comment: say in doc.go what it knows and who may call it", p.path)}
}

// exported wants a comment on every name that other packages see.
func exported(s source) []string {
	var faults []string
	want := func(n ast.Node, name string, comments ...*ast.CommentGroup) {
		if !ast.IsExported(name) || slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c.Text() != "" }) {
			return
		}
		faults = append(faults, fmt.Sprintf("%s: %s has no comment: promise what it does, in which units, with which errors", s.at(n), name))
	}
	for _, decl := range s.tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil || ast.IsExported(receiver(d)) && !selfExplaining(d.Name.Name) {
				want(d, d.Name.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					want(spec, spec.Name.Name, d.Doc, spec.Doc, spec.Comment)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						want(spec, name.Name, d.Doc, spec.Doc, spec.Comment)
					}
				}
			}
		}
	}
	return faults
}

// selfExplaining names the methods whose promise is that of a standard interface.
func selfExplaining(method string) bool {
	return slices.Contains([]string{
		"Error", "Unwrap", "Is", "As", "String", "LogValue", "Len", "Less", "Swap",
		"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalCBOR", "UnmarshalCBOR",
	}, method)
}

// receiver returns the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	expr := d.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// bounds wants short files and functions, and no code that runs before main.
func bounds(s source, longFiles, longFunctions map[string]string) []string {
	var faults []string
	if s.lines > maxFile && longFiles[s.name] == "" {
		faults = append(faults, fmt.Sprintf("%s has %d lines, the bound is %d: split it, a noun a file", s.name, s.lines, maxFile))
	}
	if s.test {
		return faults
	}
	for _, decl := range s.tree.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if d.Recv == nil && d.Name.Name == "init" {
			faults = append(faults, s.at(d)+": no init functions: let the caller ask for what it needs")
		}
		lines := s.fset.Position(d.End()).Line - s.fset.Position(d.Pos()).Line + 1
		if lines > maxFunction && longFunctions[s.name+" "+d.Name.Name] == "" {
			faults = append(faults, fmt.Sprintf("%s: %s has %d lines, the bound is %d: name its parts", s.at(d), d.Name.Name, lines, maxFunction))
		}
	}
	return faults
}

// sleepless refuses tests that wait for wall time. In a synctest bubble sleeping takes none.
func sleepless(s source) []string {
	if _, bubble := importName(s, "testing/synctest"); bubble {
		return nil
	}
	var faults []string
	for _, n := range calls(s, "time", "Sleep") {
		faults = append(faults, s.at(n)+": no time.Sleep in tests: wait for the event, or use testing/synctest")
	}
	return faults
}

// pure refuses whatever would make the market's rules depend on more than their arguments.
func pure(s source) []string {
	var faults []string
	for _, path := range []string{
		"math/rand", "math/rand/v2", "crypto/rand", "os", "os/exec", "os/signal", "io/fs", "io/ioutil", "net", "net/http", "syscall",
		"log", "log/slog", "database/sql", "context", "sync", "sync/atomic", "unsafe",
	} {
		if _, ok := importName(s, path); ok {
			faults = append(faults, fmt.Sprintf("%s: market may not import %s: no I/O, no clock, no chance, no goroutine", s.name, path))
		}
	}
	for _, n := range calls(s, "time", "Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick") {
		faults = append(faults, s.at(n)+": market has no clock: take the time as an argument")
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			faults = append(faults, s.at(n)+": market starts no goroutine")
		}
		return true
	})
	return faults
}

// importName returns the name by which a file knows a package.
func importName(s source, path string) (string, bool) {
	for _, spec := range s.tree.Imports {
		if got, err := strconv.Unquote(spec.Path.Value); err != nil || got != path {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name, true
		}
		return path[strings.LastIndex(path, "/")+1:], true
	}
	return "", false
}

// calls returns the places where a file uses one of a package's functions, called or not.
func calls(s source, path string, functions ...string) []ast.Node {
	name, ok := importName(s, path)
	if !ok {
		return nil
	}
	var found []ast.Node
	ast.Inspect(s.tree, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(functions, sel.Sel.Name) {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == name {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

// isVar tells whether a declaration declares variables.
func isVar(decl ast.Decl) (*ast.GenDecl, bool) {
	d, ok := decl.(*ast.GenDecl)
	return d, ok && d.Tok == token.VAR
}
