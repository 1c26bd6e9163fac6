package arch_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// variables allows two kinds of package variables: errors to compare with, and private tables that have their value where they
// are declared and that no code of the package writes to. Everything else is state that two callers would share unasked.
func variables(p pkg) []string {
	var trees []*ast.File
	var files []source
	for _, s := range p.files {
		if s.here && !s.test {
			trees, files = append(trees, s.tree), append(files, s)
		}
	}
	if len(files) == 0 {
		return nil
	}
	info := resolve(files)
	written := map[types.Object]bool{}
	for _, tree := range trees {
		ast.Inspect(tree, func(n ast.Node) bool {
			for _, target := range targets(n) {
				if id := base(target); id != nil && info.Uses[id] != nil {
					written[info.Uses[id]] = true
				}
			}
			return true
		})
	}
	var faults []string
	for _, s := range files {
		for _, decl := range s.tree.Decls {
			d, ok := isVar(decl)
			if !ok {
				continue
			}
			for _, spec := range d.Specs {
				spec, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				for _, id := range spec.Names {
					if why := variable(id.Name, d, spec, written[info.Defs[id]]); why != "" {
						faults = append(faults, fmt.Sprintf("%s: variable %s %s", s.at(id), id.Name, why))
					}
				}
			}
		}
	}
	return faults
}

// variable says what is wrong with a package variable, or nothing.
func variable(name string, d *ast.GenDecl, spec *ast.ValueSpec, written bool) string {
	isError := strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err")
	switch {
	case name == "_":
		return ""
	case written:
		return "is written to, or its address is taken: keep state in a value that the caller makes"
	case ast.IsExported(name) && !isError:
		return "can be written to by every package: export a function instead"
	case locks(spec):
		return "holds a lock or a pool: keep state in a value that the caller makes"
	case len(spec.Values) == 0 && !embedded(d, spec):
		return "has no value where it is declared: keep state in a value that the caller makes"
	}
	return ""
}

func embedded(d *ast.GenDecl, spec *ast.ValueSpec) bool {
	for _, group := range []*ast.CommentGroup{d.Doc, spec.Doc} {
		if group == nil {
			continue
		}
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:embed ") {
				return true
			}
		}
	}
	return false
}

// locks tells whether a variable is made of package sync, whose types are there to be changed.
func locks(spec *ast.ValueSpec) bool {
	found := false
	for _, n := range append([]ast.Expr{spec.Type}, spec.Values...) {
		if n == nil {
			continue
		}
		ast.Inspect(n, func(n ast.Node) bool {
			if _, body := n.(*ast.FuncLit); body {
				return false
			}
			if sel, ok := n.(*ast.SelectorExpr); ok {
				id, ok := sel.X.(*ast.Ident)
				typ := []string{"Mutex", "RWMutex", "Once", "Map", "Pool", "WaitGroup", "Cond"}
				found = found || ok && id.Name == "sync" && slices.Contains(typ, sel.Sel.Name) || ok && id.Name == "atomic"
			}
			return true
		})
	}
	return found
}

// resolve finds out which name means what. Imports stay unresolved, which costs types but no names of this package.
func resolve(files []source) *types.Info {
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: noImports{}, Error: func(error) {}, FakeImportC: true}
	trees := make([]*ast.File, len(files))
	for i, s := range files {
		trees[i] = s.tree
	}
	_, _ = config.Check("p", files[0].fset, trees, info) // it always fails, on the first import
	return info
}

type noImports struct{}

func (noImports) Import(string) (*types.Package, error) {
	return nil, errors.New("imports are not followed")
}

// targets returns what a piece of code writes to.
func targets(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.CallExpr:
		if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (id.Name == "delete" || id.Name == "clear" || id.Name == "copy") {
			return n.Args[:1]
		}
	}
	return nil
}

// base returns the variable that an expression is a part of.
func base(expr ast.Expr) *ast.Ident {
	for {
		switch e := expr.(type) {
		case *ast.Ident:
			return e
		case *ast.IndexExpr:
			expr = e.X
		case *ast.SelectorExpr:
			expr = e.X
		case *ast.SliceExpr:
			expr = e.X
		case *ast.StarExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		default:
			return nil
		}
	}
}
