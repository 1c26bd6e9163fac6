package arch_test

import (
	"go/token"
	"strings"
	"testing"
)

// The judges are tested on planted violations: a judge that finds nothing would pass on any repository.

func TestFindsPlantedImports(t *testing.T) {
	r := rules{
		may:      map[string][]string{"market": {}, "p2p": {"market"}, "nvml": {}, "nvml/nvmltest": {"nvml"}, "cmd/haggle": {"p2p"}},
		testsMay: map[string][]string{"cmd/haggle": {"nvml"}},
		doubles:  []string{"nvml/nvmltest"},
		owners: []owner{
			{"github.com/libp2p", []string{"p2p"}},
			{"github.com/libp2p/only-nvml", []string{"nvml"}},
			{"golang.org/x/sync", []string{"*"}},
			{"pgregory.net/rapid", []string{"tests"}},
		},
		never: map[string][]string{"cmd/haggle": {"github.com/containerd"}},
	}
	for name, c := range map[string]struct {
		p    pkg
		want string // a part of the only sentence, "" for none
	}{
		"an allowed arrow":                {pkg{path: "p2p", imports: []string{"haggle/market", "github.com/libp2p/go-libp2p", "net"}}, ""},
		"an arrow the wrong way":          {pkg{path: "market", imports: []string{"haggle/p2p"}}, "market may not import p2p"},
		"an adapter of another":           {pkg{path: "p2p", imports: []string{"haggle/nvml"}}, "p2p may not import nvml"},
		"an unlisted package":             {pkg{path: "util"}, `package "util" is not in the tables`},
		"an import of an unlisted one":    {pkg{path: "p2p", imports: []string{"haggle/util"}}, "p2p may not import util"},
		"another's foreign module":        {pkg{path: "market", imports: []string{"github.com/libp2p/go-libp2p/core"}}, "that is for p2p alone"},
		"a foreign module within another": {pkg{path: "p2p", imports: []string{"github.com/libp2p/only-nvml/x"}}, "that is for nvml alone"},
		"a name that only looks owned":    {pkg{path: "p2p", imports: []string{"github.com/libp2p2/x"}}, "which no package owns"},
		"a foreign module for everyone":   {pkg{path: "p2p", imports: []string{"golang.org/x/sync/errgroup"}}, ""},
		"even so not for market":          {pkg{path: "market", imports: []string{"golang.org/x/sync/errgroup"}}, "market may not import golang.org/x/sync"},
		"a test of a package itself":      {pkg{path: "p2p", testImports: []string{"haggle/p2p", "pgregory.net/rapid"}}, ""},
		"a double in a test":              {pkg{path: "market", testImports: []string{"haggle/nvml/nvmltest"}}, ""},
		"a double in the product":         {pkg{path: "p2p", imports: []string{"haggle/nvml/nvmltest"}}, "p2p may not import nvml/nvmltest"},
		"a test's own arrow":              {pkg{path: "cmd/haggle", testImports: []string{"haggle/nvml"}}, ""},
		"a test's arrow in the product":   {pkg{path: "cmd/haggle", imports: []string{"haggle/nvml"}}, "cmd/haggle may not import nvml"},
		"a test's arrow the wrong way":    {pkg{path: "market", testImports: []string{"haggle/p2p"}}, "a test of market may not import p2p"},
		"a test library in the product":   {pkg{path: "p2p", imports: []string{"pgregory.net/rapid"}}, "that is for tests alone"},
		"a test library in a double":      {pkg{path: "nvml/nvmltest", imports: []string{"pgregory.net/rapid"}}, ""},
		"something far that is forbidden": {pkg{path: "cmd/haggle", deps: []string{"net", "github.com/containerd/ttrpc"}}, "cmd/haggle must never link github.com/containerd"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, r.layers([]pkg{c.p}), c.want) })
	}
}

func TestFindsPlantedText(t *testing.T) {
	const doc = "// Package p is planted.\npackage p\n"
	long := strings.Repeat("\n", maxFunction)
	for name, c := range map[string]struct {
		path, file, text, want string
	}{
		"good":                          {text: doc + "// F does.\nfunc F() {}\n\n// T is.\ntype T int\n\nfunc (T) String() string { return \"\" }\n"},
		"no package comment":            {text: "package p\n", want: "has no package comment"},
		"an undocumented function":      {text: doc + "func F() {}\n", want: "F has no comment"},
		"an undocumented method":        {text: doc + "// T is.\ntype T[V any] int\nfunc (T[V]) M() {}\n", want: "M has no comment"},
		"a private type's method":       {text: doc + "type t int\nfunc (t) M() {}\n"},
		"an undocumented type":          {text: doc + "type T int\n", want: "T has no comment"},
		"an undocumented constant":      {text: doc + "const C = 1\n", want: "C has no comment"},
		"a documented group":            {text: doc + "// Sizes in bytes.\nconst (\n\tA = 1\n\tB = 2\n)\n"},
		"a comment behind":              {text: doc + "const (\n\tA = 1 // is one\n)\n"},
		"an init":                       {text: doc + "func init() {}\n", want: "no init functions"},
		"a long function":               {text: doc + "func f() {" + long + "}\n", want: "f has 61 lines"},
		"a long test function":          {file: "x_test.go", text: doc + "func f() {" + long + "}\n"},
		"a long file":                   {text: doc + strings.Repeat("\n", maxFile), want: "the bound is 400"},
		"a long test file":              {file: "x_test.go", text: doc + strings.Repeat("\n", maxFile), want: "the bound is 400"},
		"a long generated file":         {text: "// Code generated by x. DO NOT EDIT.\n\n" + doc + strings.Repeat("\n", maxFile)},
		"a sleeping test":               {file: "x_test.go", text: doc + "import \"time\"\n\nfunc f() { time.Sleep(1) }\n", want: "no time.Sleep in tests"},
		"a test asleep in a bubble":     {file: "x_test.go", text: doc + "import (\n\t\"testing/synctest\"\n\t\"time\"\n)\n\nfunc f() { time.Sleep(1); synctest.Wait() }\n"},
		"a clock in market":             {path: "market", text: doc + "import c \"time\"\n\nfunc f() any { return c.Now() }\n", want: "market has no clock"},
		"a duration in market":          {path: "market", text: doc + "import \"time\"\n\nfunc f() any { return time.Second }\n"},
		"a clock elsewhere":             {text: doc + "import \"time\"\n\nfunc f() any { return time.Now() }\n"},
		"chance in market":              {path: "market", text: doc + "import _ \"math/rand/v2\"\n", want: "may not import math/rand/v2"},
		"a goroutine in market":         {path: "market", text: doc + "func f() { go f() }\n", want: "starts no goroutine"},
		"a test of market with a clock": {path: "market", file: "x_test.go", text: doc + "import \"time\"\n\nfunc f() any { return time.Now() }\n"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, text(planted(t, c.path, c.file, c.text), nil, nil), c.want) })
	}
}

func TestFindsPlantedVariables(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
	}{
		"an error":              {"import \"errors\"\n\n// ErrX is.\nvar ErrX = errors.New(\"x\")\n", ""},
		"an assertion":          {"var _ error = nil\n", ""},
		"a table":               {"var table = map[int]int{1: 2}\n\nfunc f() int { return table[1] }\n", ""},
		"an embedded file":      {"import _ \"embed\"\n\n//go:embed x\nvar x string\n", ""},
		"a name that shadows":   {"var n = 1\n\nfunc f() {\n\tn := 2\n\tn++\n}\n", ""},
		"an unset variable":     {"var n int\n", "has no value"},
		"an exported table":     {"// Table is.\nvar Table = []int{1}\n", "can be written to by every package"},
		"an assignment":         {"var n = 1\n\nfunc f() { n = 2 }\n", "is written to"},
		"an assigned error":     {"// ErrX is.\nvar ErrX = error(nil)\n\nfunc f() { ErrX = nil }\n", "is written to"},
		"an increment":          {"var n = 1\n\nfunc f() { n++ }\n", "is written to"},
		"a written element":     {"var t = map[int][]int{}\n\nfunc f() { t[1][2] = 3 }\n", "is written to"},
		"a written field":       {"var s = struct{ n int }{}\n\nfunc f() { (s).n = 3 }\n", "is written to"},
		"a write through a ptr": {"var p = new(int)\n\nfunc f() { *p = 3 }\n", "is written to"},
		"a taken address":       {"var n = 1\n\nfunc f() *int { return &n }\n", "is written to"},
		"a deletion":            {"var t = map[int]int{}\n\nfunc f() { delete(t, 1) }\n", "is written to"},
		"a loop's variable":     {"var n = 1\n\nfunc f() {\n\tfor n = range 3 {\n\t}\n}\n", "is written to"},
		"a method that writes":  {"import \"sync\"\n\nvar mu = sync.Mutex{}\n\nfunc f() { mu.Lock() }\n", "holds a lock"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, text(planted(t, "", "", "// Package p is planted.\npackage p\n\n"+c.text), nil, nil), c.want)
		})
	}
}

func TestFindsExceptionsThatAreNotNeeded(t *testing.T) {
	p := planted(t, "", "", "// Package p is planted.\npackage p\n\nfunc f() {"+strings.Repeat("\n", maxFunction)+"}\n")
	excepted := map[string]string{"p/x.go f": "planted"}
	expect(t, text(p, nil, excepted), "")
	expect(t, stale([]pkg{p}, nil, excepted), "")
	expect(t, stale([]pkg{p}, nil, map[string]string{"p/x.go g": "planted"}), "short enough by now")
	expect(t, stale([]pkg{p}, map[string]string{"p/x.go": "planted"}, nil), "short enough by now")
	expect(t, stale([]pkg{p}, nil, map[string]string{"p/x.go f": ""}), "has no reason")
}

// planted makes a package of one file, p/x.go where the names are left out. A test file gets a documented file beside it.
func planted(t *testing.T, path, file, text string) pkg {
	t.Helper()
	if path == "" {
		path = "p"
	}
	if file == "" {
		file = "x.go"
	}
	p := pkg{path: path}
	fset := token.NewFileSet()
	s, err := parse(fset, path+"/"+file, file, text)
	if err != nil {
		t.Fatal(err)
	}
	p.add(s)
	if s.test {
		s, err = parse(fset, path+"/doc.go", "doc.go", "// Package p is planted.\npackage p\n")
		if err != nil {
			t.Fatal(err)
		}
		p.add(s)
	}
	return p
}

// expect wants exactly one sentence that contains want, or none where want is empty.
func expect(t *testing.T, got []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("found faults where there are none: %q", got)
	case want != "" && (len(got) != 1 || !strings.Contains(got[0], want)):
		t.Errorf("found %q, want one sentence with %q", got, want)
	}
}
