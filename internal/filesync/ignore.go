package filesync

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// maxIgnoreFile is how much of an ignore file is read.
const maxIgnoreFile = 1 << 20

// ignorer knows the patterns of a folder and of those above it, the nearest last. A nil ignorer ignores nothing.
type ignorer struct {
	above    *ignorer
	patterns []pattern
}

// pattern is one line of an ignore file. A line without a "/" in it is about a name in any folder below.
type pattern struct {
	gitignore.Pattern
	domain  []string
	anyName bool
}

func (p *pattern) match(names []string, folder bool) gitignore.MatchResult {
	if p.anyName {
		// Match would also take a folder above for the name, which a negated line is not about.
		names = append(slices.Clone(p.domain), names[len(names)-1])
	}
	return p.Match(names, folder)
}

// ignoreFiles are read in this order; of two that disagree the later one decides.
func ignoreFiles() []string { return []string{".gitignore", ".haggleignore"} }

// enter reads the ignore files of folder dir, which has the given names below the tree's root.
func (g *ignorer) enter(dir *os.Root, path string) *ignorer {
	in := &ignorer{above: g}
	for _, name := range ignoreFiles() {
		text, err := readSome(dir, name)
		if err != nil {
			continue // as git does: a folder without them, or one that cannot be read, has no patterns
		}
		in.patterns = append(in.patterns, parseIgnore(text, split(path))...)
	}
	if len(in.patterns) == 0 && g != nil {
		return g
	}
	return in
}

func readSome(dir *os.Root, name string) ([]byte, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, os.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(f, maxIgnoreFile))
}

func parseIgnore(text []byte, domain []string) []pattern {
	var ps []pattern
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSuffix(strings.TrimPrefix(lines.Text(), "\ufeff"), "\r")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		bare := strings.TrimSuffix(strings.TrimRight(line, " "), "/")
		ps = append(ps, pattern{
			Pattern: gitignore.ParsePattern(line, domain), domain: domain, anyName: !strings.Contains(bare, "/"),
		})
	}
	return ps
}

// ignores says whether the entry at path is left out. What stands in an ignored folder is never asked about.
func (g *ignorer) ignores(path string, folder bool) bool {
	if g == nil {
		return false
	}
	names := split(path)
	if names[len(names)-1] == ".git" {
		return true
	}
	for at := g; at != nil; at = at.above {
		for i := len(at.patterns) - 1; i >= 0; i-- {
			if m := at.patterns[i].match(names, folder); m != gitignore.NoMatch {
				return m == gitignore.Exclude
			}
		}
	}
	return false
}

func split(path string) []string {
	if path == "" || path == "." {
		return nil
	}
	return strings.Split(path, "/")
}
