package tui

import (
	"slices"
	"strings"

	"haggle/market"
)

// clauses are the parts of a query that all must hold, each in canonical form.
type clauses []string

// splitQuery takes a query apart. What cannot be taken apart, such as a choice of whole clauses, stays one part.
func splitQuery(text string) clauses {
	q, err := market.ParseQuery(text)
	if err != nil || q.String() == "" {
		return nil
	}
	text = q.String()
	words := strings.Split(text, " ")
	var parts clauses
	for from := 0; from < len(words); {
		to := from + 1
		for to <= len(words) {
			if _, err := market.ParseQuery(strings.Join(words[from:to], " ")); err == nil {
				break
			}
			to++
		}
		if to > len(words) {
			return clauses{"(" + text + ")"}
		}
		parts = append(parts, strings.Join(words[from:to], " "))
		from = to
	}
	return parts
}

// String puts the parts together again, in canonical form.
func (c clauses) String() string {
	q, err := market.ParseQuery(strings.Join(c, " "))
	if err != nil {
		return ""
	}
	return q.String()
}

// named takes a part apart that asks for one value of a field, or for one of several.
func named(part string) (field string, values []string) {
	if field, value, ok := strings.Cut(part, "="); ok && isName(field) && !strings.ContainsAny(value[:min(1, len(value))], "=~") {
		return field, []string{value}
	}
	field, list, ok := strings.Cut(part, " in [")
	list, closed := strings.CutSuffix(list, "]")
	if !ok || !closed || !isName(field) || strings.ContainsAny(list, `"'`) {
		return "", nil
	}
	for _, v := range strings.Split(list, ",") {
		values = append(values, strings.TrimSpace(v))
	}
	return field, values
}

func isName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_.") == ""
}

// has reports whether a clause of one value is among those that are asked for.
func (c clauses) has(clause string) bool {
	field, values := named(clause)
	for _, part := range c {
		f, all := named(part)
		if part == clause || field != "" && f == field && len(values) == 1 && slices.Contains(all, values[0]) {
			return true
		}
	}
	return false
}

// toggle adds a clause of one value, beside other values of its field, or takes it out again. Where a field cannot be asked for several
// values, such as for two bands of prices, the new one stands in place of the old one.
func (c clauses) toggle(clause string) clauses {
	field, values := named(clause)
	at := slices.IndexFunc(c, func(part string) bool {
		f, _ := named(part)
		return part == clause || field != "" && f == field
	})
	if at < 0 {
		return append(slices.Clone(c), clause)
	}
	_, all := named(c[at])
	if c[at] == clause || len(values) != 1 {
		return slices.Delete(slices.Clone(c), at, at+1)
	}
	if i := slices.Index(all, values[0]); i >= 0 {
		all = slices.Delete(all, i, i+1)
	} else {
		all = append(all, values[0])
	}
	next := slices.Clone(c)
	next[at] = clause
	if len(all) == 1 {
		next[at] = field + "=" + all[0]
	} else if several := field + " in [" + strings.Join(all, ",") + "]"; len(all) > 1 && parses(several) {
		next[at] = several
	}
	return next
}

func parses(text string) bool {
	_, err := market.ParseQuery(text)
	return err == nil
}
