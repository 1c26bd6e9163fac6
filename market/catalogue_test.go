package market_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"haggle/market"
)

// codesIn returns the codes that a file of this package declares.
func codesIn(t *testing.T, file string) []market.Code {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []market.Code
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && len(spec.Values) == 1 && strings.HasPrefix(spec.Names[0].Name, "Code") {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
				code, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				codes = append(codes, market.Code(code))
			}
		}
		return true
	})
	return codes
}

func TestEveryCodeHasItsSentence(t *testing.T) {
	files, err := filepath.Glob("catalogue*.go")
	if err != nil {
		t.Fatal(err)
	}
	var codes []market.Code
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			codes = append(codes, codesIn(t, file)...)
		}
	}
	if len(codes) < 80 {
		t.Fatalf("%d codes were found", len(codes))
	}
	seen := map[market.Code]bool{}
	for _, code := range codes {
		e := market.Explain(market.NewError(code))
		if strings.Contains(e.Message, "refused with code") || e.Message == "" || e.Hint == "" || e.Class == 0 || seen[code] {
			t.Errorf("%s: %+v", code, e)
		}
		seen[code] = true
	}
}
