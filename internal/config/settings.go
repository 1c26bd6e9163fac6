package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Programs holds the settings of programs that are not haggle's own, by program and key. What they mean is the program's affair.
type Programs map[string]map[string]string

// Bounds of such settings.
const (
	maxPrograms = 16
	maxSettings = 32 // of one program
)

// anyProgram ends the name of a knob of KindPrograms: in the file each program's settings are a table of its own, [pay.lab].
const anyProgram = ".NAME"

// The forms of names, compiled once and never written to again.
var (
	programForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
	settingForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)
)

// programs reads settings: one table or several of a file, which are added, or all of them from a text.
func programs(into *Programs, value any) error {
	next := Programs{}
	switch value := value.(type) {
	case map[string]any:
		for name, settings := range *into {
			next[name] = settings
		}
		for _, name := range sorted(value) {
			table, ok := value[name].(map[string]any)
			if !ok {
				return fmt.Errorf("holds %.40q, which is not a table", name)
			}
			next[name] = map[string]string{}
			for _, key := range sorted(table) {
				text, err := setting(table[key])
				if err != nil {
					return fmt.Errorf("holds %.40s.%.40s, which %w", name, key, err)
				}
				next[name][key] = text
			}
		}
	case string:
		for item := range strings.SplitSeq(value, ",") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			name, text, ok := strings.Cut(item, "=")
			program, key, dotted := strings.Cut(name, ".")
			if !ok || !dotted {
				return errors.New("holds an item that is not PROGRAM.KEY=VALUE")
			}
			if next[program] == nil {
				next[program] = map[string]string{}
			}
			next[program][key] = text
		}
	default:
		return errors.New("is not a table")
	}
	if err := checkPrograms(next); err != nil {
		return err
	}
	*into = next
	return nil
}

// setting writes one value of a file as the text that a program is given.
func setting(value any) (string, error) {
	switch value := value.(type) {
	case string:
		return value, nil
	case int64:
		return strconv.FormatInt(value, 10), nil
	case bool:
		return strconv.FormatBool(value), nil
	}
	return "", errors.New("is not a text, a whole number, or true or false")
}

func checkPrograms(all Programs) error {
	if len(all) > maxPrograms {
		return fmt.Errorf("names more than %d programs", maxPrograms)
	}
	for _, name := range sorted(all) {
		if !programForm.MatchString(name) {
			return fmt.Errorf("names a program %.40q, and a name is made of small letters, digits and dashes", name)
		}
		if len(all[name]) > maxSettings {
			return fmt.Errorf("has more than %d settings for %s", maxSettings, name)
		}
		for _, key := range sorted(all[name]) {
			switch {
			case !settingForm.MatchString(key):
				return fmt.Errorf("has a key %.40q for %s, and a key is made of small letters, digits, dashes and underscores", key, name)
			case len(all[name][key]) > maxText:
				return fmt.Errorf("has a value for %s.%s that is longer than %d characters", name, key, maxText)
			}
		}
	}
	return nil
}

// literals writes settings as tables of a file.
func (p Programs) literals(table string) string {
	var b strings.Builder
	for _, name := range sorted(p) {
		fmt.Fprintf(&b, "[%s.%s]\n", table, name)
		for _, key := range sorted(p[name]) {
			fmt.Fprintf(&b, "%s = %s\n", key, quote(p[name][key]))
		}
	}
	return b.String()
}

// plain writes settings as a flag takes them.
func (p Programs) plain() string {
	var items []string
	for _, name := range sorted(p) {
		for _, key := range sorted(p[name]) {
			items = append(items, name+"."+key+"="+p[name][key])
		}
	}
	return strings.Join(items, ",")
}

// free returns the knob that takes any table below a table of the file.
func (l *layers[T]) free(table string) (spec[T], bool) {
	i := slices.IndexFunc(l.table, func(s spec[T]) bool {
		return s.Kind == KindPrograms && strings.TrimSuffix(s.Name, anyProgram)+"." == table
	})
	if i < 0 {
		return spec[T]{}, false
	}
	return l.table[i], true
}
