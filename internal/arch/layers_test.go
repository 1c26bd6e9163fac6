package arch_test

import (
	"fmt"
	"slices"
	"strings"
)

// rules are the tables of rules_test.go, or smaller ones for testing the judges.
type rules struct {
	may      map[string][]string
	testsMay map[string][]string
	doubles  []string
	owners   []owner
	never    map[string][]string
}

// layers returns a sentence for each package that is unlisted and each import that the rules do not allow.
func (r rules) layers(pkgs []pkg) []string {
	var faults []string
	for _, p := range pkgs {
		if _, listed := r.may[p.path]; !listed {
			faults = append(faults, fmt.Sprintf("package %q is not in the tables: move its code into a package that is, or add "+
				"it to mayImport in internal/arch/rules_test.go, with the packages it may import, and to the picture in "+
				"docs/architecture.md, in the same commit", p.path))
			continue
		}
		for _, imported := range p.imports {
			faults = append(faults, r.arrow(p.path, imported, false)...)
		}
		for _, imported := range p.testImports {
			faults = append(faults, r.arrow(p.path, imported, true)...)
		}
		faults = append(faults, r.reach(p)...)
	}
	return faults
}

// arrow judges one import.
func (r rules) arrow(from, imported string, test bool) []string {
	who := from
	if test {
		who = "a test of " + from
	}
	if ours, ok := strings.CutPrefix(imported, module); ok {
		allowed := slices.Contains(r.may[from], ours)
		if test {
			allowed = allowed || ours == from || slices.Contains(r.doubles, ours) || slices.Contains(r.testsMay[from], ours)
		}
		if !allowed {
			return []string{fmt.Sprintf("%s may not import %s: declare a small interface where it is used and let "+
				"internal/assemble plug the parts together, or change the arrow in internal/arch/rules_test.go", who, ours)}
		}
		return nil
	}
	if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
		return nil // the standard library
	}
	o, ok := r.owner(imported)
	switch {
	case !ok:
		return []string{fmt.Sprintf("%s imports %s, which no package owns: say who may use it in owners in "+
			"internal/arch/rules_test.go", who, imported)}
	case !r.owns(o, from, test):
		return []string{fmt.Sprintf("%s may not import %s: that is for %s alone", who, imported, strings.Join(o.by, ", "))}
	}
	return nil
}

// owner finds the longest path that covers a foreign package.
func (r rules) owner(imported string) (owner, bool) {
	var best owner
	for _, o := range r.owners {
		if below(imported, o.path) && len(o.path) > len(best.path) {
			best = o
		}
	}
	return best, best.path != ""
}

func (r rules) owns(o owner, from string, test bool) bool {
	switch {
	case slices.Contains(o.by, "tests"):
		return test || slices.Contains(r.doubles, from) || slices.Contains(o.by, from)
	case slices.Contains(o.by, "*"):
		return from != "market"
	default:
		return slices.Contains(o.by, from)
	}
}

// reach judges everything that a package links.
func (r rules) reach(p pkg) []string {
	var faults []string
	for _, forbidden := range r.never[p.path] {
		for _, dep := range p.deps {
			if below(dep, forbidden) {
				faults = append(faults, fmt.Sprintf("%s must never link %s, but one of its imports brings in %s (find it with "+
					"go list -deps)", p.path, forbidden, dep))
				break
			}
		}
	}
	return faults
}

// below tells whether a package is the one at path or below it.
func below(imported, path string) bool {
	return imported == path || strings.HasPrefix(imported, path+"/")
}
