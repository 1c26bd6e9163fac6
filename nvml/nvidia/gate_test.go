//go:build linux && cgo

package nvidia_test

import (
	"debug/elf"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	nv "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/google/go-cmp/cmp"

	"haggle/nvml"
	"haggle/nvml/nvidia"
)

func TestALibraryWithoutFunctionsEndsNoChild(t *testing.T) {
	d := newRig(t, "thin", "A100 RTX4090").open(nvidia.Config{})
	none := nvml.NoSymbol
	cards := cardsOf(t, d)
	want := nvml.Card{
		UUID: uuid(0), Vendor: "NVIDIA", Model: "UNKNOWN", RawName: "UNKNOWN", PCIBusID: "unknown", MemoryBytes: 81920 << 20,
		MemoryUsableBytes: nvml.None[int64](none), ComputeCapability: nvml.None[int](none), MaxClockMHz: nvml.None[int](none),
		PowerLimitMilliWatt: nvml.None[int64](none), PCIeGen: nvml.None[int](none), PCIeGenMax: nvml.None[int](none),
		PCIeWidth: nvml.None[int](none), PCIeWidthMax: nvml.None[int](none), ECC: nvml.None[bool](none),
		MIG: nvml.None[bool](none), DisplayAttached: nvml.None[bool](none),
	}
	if len(cards) != 2 {
		t.Fatalf("cards %+v", cards)
	}
	if diff := cmp.Diff(want, cards[0]); diff != "" {
		t.Errorf("card (-want +got):\n%s", diff)
	}
	s := sampleOf(t, d, uuid(1))
	if diff := cmp.Diff(nvml.Sample{
		UUID: uuid(1), At: s.At, UtilPermille: nvml.None[int](none), MemUsedBytes: nvml.Some[int64](512 << 20),
		PowerMilliWatt: nvml.None[int64](none), EnergyMilliJoule: nvml.None[int64](none), TemperatureC: nvml.None[int](none),
		ClockMHz: nvml.None[int](none), ThrottleReasons: nvml.None[nvml.Throttle](none),
		ECCUncorrected: nvml.None[int64](none), ECCCorrected: nvml.None[int64](none),
	}, s); diff != "" {
		t.Errorf("sample (-want +got):\n%s", diff)
	}
	info, err := d.Info(t.Context())
	if err != nil || info.Version != "unknown" || info.CUDA.State != none {
		t.Errorf("info %+v, %v", info, err)
	}
	eventsOf(t, d)
	if n := d.Starts(); n != 1 {
		t.Errorf("%d children were needed; a call was made that the library lacks", n)
	}
}

func TestAnOldLibraryGivesWhatItHas(t *testing.T) {
	d := newRig(t, "old", "A100").open(nvidia.Config{})
	c, s := cardsOf(t, d)[0], sampleOf(t, d, uuid(0))
	for name, x := range map[string]struct{ got, want nvml.State }{
		"usable memory": {c.MemoryUsableBytes.State, nvml.NoSymbol},
		"power limit":   {c.PowerLimitMilliWatt.State, nvml.NoSymbol},
		"MIG":           {c.MIG.State, nvml.NoSymbol},
		"energy":        {s.EnergyMilliJoule.State, nvml.NoSymbol},
		"ECC":           {c.ECC.State, nvml.OK},
		"temperature":   {s.TemperatureC.State, nvml.OK},
		// by their older name
		"reasons": {s.ThrottleReasons.State, nvml.OK},
	} {
		if x.got != x.want {
			t.Errorf("%s is %s, want %s", name, x.got, x.want)
		}
	}
	if c.PCIBusID != "0000:01:00.0" {
		t.Errorf("place on the bus %s", c.PCIBusID)
	}
	if d.Starts() != 1 {
		t.Errorf("%d children were needed", d.Starts())
	}
}

// TestEveryCallIsGated reads this package's source: a method of go-nvml may only be named inside a call of ask that names the
// same method, and only when the table has it.
func TestEveryCallIsGated(t *testing.T) {
	table := nvidia.Symbols()
	free := map[string]bool{"Init": true, "Extensions": true, "LookupSymbol": true} // Init is looked for by hand
	methods := nvmlMethods()
	used := make(map[string]bool)
	for name, file := range parse(t, ".") {
		if !loads(name, file) {
			continue
		}
		var path []ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if n == nil {
				path = path[:len(path)-1]
				return true
			}
			path = append(path, n)
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !methods[sel.Sel.Name] || free[sel.Sel.Name] {
				return true
			}
			used[sel.Sel.Name] = true
			if asked := gate(path); asked != sel.Sel.Name {
				t.Errorf("%s calls %s in a gate for %q", name, sel.Sel.Name, asked)
			}
			return true
		})
	}
	for method := range used {
		if table[method] == nil {
			t.Errorf("%s is called and not in the table", method)
		}
	}
	for method := range table {
		if !used[method] && method != "Init" {
			t.Errorf("%s is in the table and not called", method)
		}
	}
	if len(used) < 20 {
		t.Errorf("only %d calls were found; the test no longer understands the source", len(used))
	}
}

// gate returns the method that the innermost call of ask around a node names.
func gate(path []ast.Node) string {
	for _, n := range slices.Backward(path) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			continue
		}
		if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "ask" && len(call.Args) == 3 {
			if lit, ok := call.Args[1].(*ast.BasicLit); ok {
				name, _ := strconv.Unquote(lit.Value)
				return name
			}
		}
	}
	return ""
}

// nvmlMethods is the names of all methods that end in the driver's library, and of the package's functions.
func nvmlMethods() map[string]bool {
	names := make(map[string]bool)
	for _, of := range []reflect.Type{
		reflect.TypeFor[nv.Interface](), reflect.TypeFor[nv.Device](), reflect.TypeFor[nv.EventSet](),
		reflect.TypeFor[nv.GpuInstance](), reflect.TypeFor[nv.Unit](),
	} {
		for i := range of.NumMethod() {
			names[of.Method(i).Name] = true
		}
	}
	// What a return code says about itself, it asks the library for.
	names["Error"], names["String"] = false, false
	return names
}

// TestReturnCodesAreNotPutIntoWords keeps fmt away from them: their words come from nvmlErrorString, ungated.
func TestReturnCodesAreNotPutIntoWords(t *testing.T) {
	for name, file := range parse(t, ".") {
		if !loads(name, file) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok {
				for _, arg := range append(slices.Clone(call.Args), f.X) {
					if id, ok := arg.(*ast.Ident); ok && id.Name == "ret" {
						t.Errorf("%s hands a return code to %s", name, f.Sel.Name)
					}
				}
			}
			return true
		})
	}
}

// TestTheTableIsWhatGoNVMLCalls reads go-nvml's source: each method must call the functions of the table and no other.
func TestTheTableIsWhatGoNVMLCalls(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		t.Fatal(err)
	}
	bodies := make(map[string][]string)   // by method
	versions := make(map[string][]string) // by variable: what may be put into it
	for _, file := range parse(t, filepath.Join(strings.TrimSpace(string(dir)), "pkg/nvml")) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil && n.Body != nil {
					bodies[receiver(n)+n.Name.Name] = cCalls(n.Body)
				}
			case *ast.AssignStmt: // nvmlInit = nvmlInit_v2
				if to, from := ident(n.Lhs[0]), ident(n.Rhs[0]); to != "" && strings.HasPrefix(from, to+"_v") {
					versions[to] = append(versions[to], from)
				}
			}
			return true
		})
	}
	for method, want := range nvidia.Symbols() {
		got := bodies["nvmlDevice."+method]
		if got == nil {
			got = bodies["library."+method]
		}
		if method == "Wait" {
			got = bodies["nvmlEventSet."+method]
		}
		for _, name := range slices.Clone(got) {
			got = append(got, versions[name]...)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-table +go-nvml):\n%s", method, diff)
		}
	}
}

// cCalls is the functions of the driver's library that a body names.
func cCalls(body *ast.BlockStmt) []string {
	calls := []string{}
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if name := ident(call.Fun); strings.HasPrefix(name, "nvml") {
				calls = append(calls, name)
			}
		}
		return true
	})
	return calls
}

func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	return ident(of) + "."
}

func ident(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// loads reports whether a file belongs to the half that has the library loaded.
func loads(name string, file *ast.File) bool {
	return !strings.HasSuffix(name, "_test.go") && slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool {
		return c.List[0].Text == "//go:build linux && cgo"
	})
}

// parse reads the Go files of a folder.
func parse(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no source in %s: %v", dir, err)
	}
	files := make(map[string]*ast.File)
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = file
	}
	return files
}

// TestProgramBindsLate fails when the linker is told to look for every function at the start.
func TestProgramBindsLate(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for tag, bad := range map[elf.DynTag]uint64{elf.DT_FLAGS: uint64(elf.DF_BIND_NOW), elf.DT_FLAGS_1: uint64(elf.DF_1_NOW)} {
		values, err := f.DynValue(tag)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if v&bad != 0 {
				t.Errorf("%s has %#x: a library without one function would end the program before main", tag, v)
			}
		}
	}
}
