package filesync

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"lukechampine.com/blake3"
)

const partSuffix = ".haggle-part"

// partName is the name under which a file is written before it gets its own.
func partName(name string) string {
	if len(name)+len(partSuffix)+1 <= MaxName {
		return "." + name + partSuffix
	}
	sum := blake3.Sum256([]byte(name))
	return "." + hex.EncodeToString(sum[:16]) + partSuffix
}

// isPart says whether name is one that partName makes. Such files are no part of a tree.
func isPart(name string) bool {
	return len(name) > len(partSuffix)+1 && name[0] == '.' && strings.HasSuffix(name, partSuffix)
}

// checkPath says whether p is a relative path of plain names, within the bounds.
func checkPath(p string, maxPath int) error {
	bad := func(why string) error { return &Error{Code: CodeBadPath, Path: bounded(p), Message: why} }
	if p == "" || len(p) > maxPath {
		return bad("the path is empty or too long")
	}
	if strings.Count(p, "/") >= MaxDepth {
		return bad("the path has too many levels")
	}
	for rest, more := p, true; more; {
		var name string
		name, rest, more = strings.Cut(rest, "/")
		switch {
		case name == "" || name == "." || name == "..":
			return bad("the path leads out of its folder")
		case len(name) > MaxName:
			return bad("a name in the path is too long")
		case strings.IndexByte(name, 0) >= 0:
			return bad("a name in the path has a zero byte")
		case isPart(name):
			return bad("a name in the path is one of unfinished files")
		}
	}
	return nil
}

func bounded(s string) string {
	if len(s) > 256 {
		return s[:256] + "…"
	}
	return s
}

// comparePaths orders paths name by name: a folder stands before what is in it, and that before the folder's next sibling.
func comparePaths(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x == '/' {
			x = 0
		}
		if y == '/' {
			y = 0
		}
		return int(x) - int(y)
	}
	return len(a) - len(b)
}

// staysInside says whether the symlink at path with this target can only lead to a place in the tree. A ".." after a name
// is refused, since that name may itself be a symlink.
func staysInside(path, target string) bool {
	if target == "" || len(target) > MaxPath || target[0] == '/' || strings.IndexByte(target, 0) >= 0 {
		return false
	}
	ups, named := 0, false
	for name := range strings.SplitSeq(target, "/") {
		switch name {
		case "", ".":
		case "..":
			if named {
				return false
			}
			ups++
		default:
			named = true
		}
	}
	return ups <= strings.Count(path, "/")
}

// localNames says what names a receiving system can have.
type localNames struct {
	windows bool // no reserved names or characters
	folds   bool // "A" and "a" are one name
	plain   bool // nothing that does harm on a terminal
}

// allows says whether the last name of path can be made here.
func (l localNames) allows(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if l.plain && !isPlain(name) {
		return false
	}
	return !l.windows || isWindowsName(name)
}

// allowsTarget says the same of a symlink's target.
func (l localNames) allowsTarget(target string) bool {
	if l.plain && !isPlain(target) {
		return false
	}
	return !l.windows || !strings.ContainsAny(target, `\:`)
}

func isPlain(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return false
		}
	}
	return true
}

func isWindowsName(name string) bool {
	if strings.ContainsAny(name, `<>:"\|?*`) || strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ") || !isPlain(name) {
		return false
	}
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return false
	}
	for _, dev := range []string{"COM", "LPT"} {
		if digit, ok := strings.CutPrefix(stem, dev); ok {
			if len(digit) == 1 && digit[0] >= '0' && digit[0] <= '9' || digit == "¹" || digit == "²" || digit == "³" {
				return false
			}
		}
	}
	return true
}
