package arch_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestThisRepositoryKeepsItsShape(t *testing.T) {
	pkgs := load(t)
	r := rules{mayImport(), testsMayImport(), doubles(), owners(), neverReach()}
	t.Run("every import follows an arrow", func(t *testing.T) {
		report(t, r.layers(pkgs))
	})
	t.Run("the source keeps the rules of style", func(t *testing.T) {
		for _, p := range pkgs {
			report(t, text(p, longFiles(), longFunctions()))
		}
	})
	t.Run("an exception to the bounds is needed and has a reason", func(t *testing.T) {
		report(t, stale(pkgs, longFiles(), longFunctions()))
	})
	t.Run("the tables name what they mean", func(t *testing.T) {
		report(t, r.broken())
	})
}

func TestHaggleNeedsNoCCompiler(t *testing.T) {
	for _, l := range list(t, "-e", "-deps", "./cmd/haggle") {
		if !l.Standard && len(l.CgoFiles) > 0 {
			t.Errorf("cmd/haggle links %s, which uses cgo (%s): the renter's program is pure Go", l.ImportPath, l.CgoFiles)
		}
	}
}

func report(t *testing.T, faults []string) {
	t.Helper()
	slices.Sort(faults)
	for _, fault := range slices.Compact(faults) {
		t.Error(fault)
	}
}

// stale returns the exceptions that are without a reason or no longer needed.
func stale(pkgs []pkg, longFiles, longFunctions map[string]string) []string {
	var without []string
	for _, p := range pkgs {
		without = append(without, text(p, nil, nil)...)
	}
	all := strings.Join(without, "\n")
	var faults []string
	for name, reason := range longFiles {
		if reason == "" || !strings.Contains(all, name+" has ") {
			faults = append(faults, "longFiles: "+name+" has no reason or is short enough by now")
		}
	}
	for name, reason := range longFunctions {
		_, function, _ := strings.Cut(name, " ")
		if reason == "" || !strings.Contains(all, ": "+function+" has ") {
			faults = append(faults, "longFunctions: "+name+" has no reason or is short enough by now")
		}
	}
	return faults
}

// broken returns the entries of the tables that name a package which no table lists.
func (r rules) broken() []string {
	var faults []string
	check := func(table, name string) {
		if _, ok := r.may[name]; !ok && name != "*" && name != "tests" {
			faults = append(faults, table+" names "+name+", which mayImport does not list")
		}
	}
	for _, table := range []map[string][]string{r.may, r.testsMay} {
		for name, imports := range table {
			check("an arrow", name)
			for _, imported := range imports {
				check("an arrow from "+name, imported)
			}
		}
	}
	for _, o := range r.owners {
		for _, by := range o.by {
			check("owners of "+o.path, by)
		}
	}
	for _, name := range slices.Concat(r.doubles, slices.Collect(maps.Keys(r.never))) {
		check("doubles or neverReach", name)
	}
	return faults
}
