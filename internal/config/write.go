package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// WriteRig writes a rig's configuration as a file with every knob and what it does; knobs that are at their defaults stand
// there as comments. It replaces a file that is there, in one step; the folder is made if need be.
func WriteRig(path string, r Rig) error { return write(path, render(rigTable(), &r, rigPrefix)) }

// WriteAgent does the same for an agent's configuration.
func WriteAgent(path string, a Agent) error {
	return write(path, render(agentTable(), &a, agentPrefix))
}

func write(path, text string) error {
	if !utf8.ValidString(text) {
		return &Error{Source: path, Problem: "would hold bytes that are not UTF-8, which TOML cannot", Hint: "rename the file that is meant"}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	if err := replace(path, text); err != nil {
		return fmt.Errorf("write configuration %s: %w", path, err)
	}
	return nil
}

// replace writes a file under another name first, so that nobody ever reads half of it.
func replace(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".haggle-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error is the one to tell
	}
	return err
}

func render[T any](table []spec[T], from *T, prefix string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Every line that begins with # is a default or an explanation. A flag wins over the environment, the\n"+
		"# environment over this file. Variables are named after keys: %sNETWORK.\n", prefix)
	in := ""
	for _, s := range table {
		name := s.Name
		if t, key, ok := strings.Cut(s.Name, "."); ok {
			name = key
			if t != in {
				fmt.Fprintf(&b, "\n[%s]\n", t)
				in = t
			}
		}
		fmt.Fprintf(&b, "\n# %s%s\n", s.Doc, s.bounds())
		if p, ok := s.field(from).(*Programs); ok {
			b.WriteString(p.literals(in))
			in = "" // another table has begun
			continue
		}
		comment := ""
		if s.isDefault(from) {
			comment = "# "
		}
		fmt.Fprintf(&b, "%s%s = %s\n", comment, name, literal(s.field(from), s.Kind))
	}
	return b.String()
}

// bounds says a knob's bounds after its explanation.
func (k Knob) bounds() string {
	if k.Min == 0 && k.Max == 0 {
		return ""
	}
	say := func(n int64) string { return strconv.FormatInt(n, 10) }
	switch k.Kind {
	case KindDuration, KindLimit:
		say = func(n int64) string { return FormatDuration(time.Duration(n)) }
	case KindSize:
		say = formatSize
	case KindRate:
		say = formatRate
	}
	return fmt.Sprintf(" From %s to %s.", say(k.Min), say(k.Max))
}

// isDefault reports whether a knob has the value that it would have if nobody set it.
func (s spec[T]) isDefault(from *T) bool {
	var fresh T
	if s.Default != "" {
		if err := s.set(&fresh, s.Default); err != nil {
			return false
		}
	}
	return literal(s.field(from), s.Kind) == literal(s.field(&fresh), s.Kind)
}

// literal writes a value as TOML.
func literal(field any, kind Kind) string {
	switch v := field.(type) {
	case *string:
		return quote(*v)
	case *[]string:
		return list(*v, quote)
	case *time.Duration:
		return quote(formatLimit(*v))
	case *int64:
		switch kind {
		case KindSize:
			return quote(formatSize(*v))
		case KindRate:
			return quote(formatRate(*v))
		default:
		}
		return strconv.FormatInt(*v, 10)
	case *[]Simulated:
		return list(*v, func(s Simulated) string { return fmt.Sprintf("{profile = %s, count = %d}", quote(s.Profile), s.Count) })
	case *Programs:
		return "{" + v.plain() + "}"
	case *[]Image:
		return list(*v, func(i Image) string { return fmt.Sprintf("{name = %s, archive = %s}", quote(i.Name), quote(i.Archive)) })
	}
	return ""
}

// plain writes a value as a flag takes it.
func plain(field any, kind Kind) string {
	switch v := field.(type) {
	case *string:
		return *v
	case *[]string:
		return strings.Join(*v, ",")
	case *time.Duration:
		return formatLimit(*v)
	case *[]Simulated:
		return join(*v, func(s Simulated) string { return s.Profile + "=" + strconv.Itoa(s.Count) })
	case *Programs:
		return v.plain()
	case *[]Image:
		return join(*v, func(i Image) string { return i.Name + "=" + i.Archive })
	}
	return strings.Trim(literal(field, kind), `"`)
}

func formatLimit(d time.Duration) string {
	if d == Unlimited {
		return unlimited
	}
	return FormatDuration(d)
}

func list[E any](items []E, write func(E) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = write(item)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func join[E any](items []E, write func(E) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = write(item)
	}
	return strings.Join(texts, ",")
}

// quote writes a text as TOML's basic string. Bytes that are not UTF-8 stay as they are, for WriteRig to find.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b.Write([]byte{'\\', c})
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func originOf(origins map[string]Origin, name string) Origin {
	if origin, ok := origins[name]; ok {
		return origin
	}
	return FromDefault
}

func values[T any](table []spec[T], from *T, origins map[string]Origin) []Value {
	all := make([]Value, len(table))
	for i, s := range table {
		all[i] = Value{Name: s.Name, Text: plain(s.field(from), s.Kind), Origin: originOf(origins, s.Name)}
	}
	return all
}
