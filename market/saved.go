package market

import (
	"regexp"
	"slices"
	"strings"
)

// maxSavedUsed bounds the saved queries that one query names.
const maxSavedUsed = 8

// savedName is compiled once and never written to again.
var savedName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// CheckSavedName reports whether a name is one for a saved query. The error has code CodeBadSaved.
func CheckSavedName(name string) error {
	if !savedName.MatchString(name) {
		return NewError(CodeBadSaved, "name", clip(name, 40))
	}
	return nil
}

// ExpandQuery puts saved queries in the place of their names: @name, where a clause could stand. Each is put into parentheses, so that an OR
// in it stays in it. A saved query names no other: there is no recursion, and at most 8 are named. The
// error has code CodeSavedUnknown, CodeBadSaved or CodeBadQuery.
func ExpandQuery(text string, saved map[string]string) (string, error) {
	var b strings.Builder
	used := 0
	quote := byte(0)
	for at := 0; at < len(text); at++ {
		c := text[at]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '@' && (at == 0 || strings.IndexByte(" \t\n\r(|", text[at-1]) >= 0):
			end := at + 1
			for end < len(text) && !endsWord(rune(text[end])) {
				end++
			}
			if used++; used > maxSavedUsed {
				return "", NewError(CodeBadQuery, "at", "its saved queries", "why", "there are more than 8 of them")
			}
			inner, err := savedText(text[at+1:end], saved)
			if err != nil {
				return "", err
			}
			b.WriteString(inner)
			at = end - 1
			continue
		}
		b.WriteByte(c)
	}
	if b.Len() > maxQueryText {
		return "", tooLongQuery()
	}
	return b.String(), nil
}

// savedText returns a saved query for a place inside another; "" for one that asks nothing.
func savedText(name string, saved map[string]string) (string, error) {
	if err := CheckSavedName(name); err != nil {
		return "", err
	}
	inner, found := saved[name]
	if !found {
		var known []string
		for n := range saved {
			known = append(known, n)
		}
		slices.Sort(known)
		list := clip(strings.Join(known, ", "), maxErrorText)
		if list == "" {
			list = "none"
		}
		return "", NewError(CodeSavedUnknown, "name", name, "known", list)
	}
	if strings.TrimSpace(inner) == "" {
		return "", nil
	}
	q, err := ParseQuery(inner) // one that names another is refused here: no field begins with @
	if err != nil {
		return "", err
	}
	return "(" + q.String() + ")", nil
}
