package config

import (
	"os"
	"slices"
	"strings"
)

// checkEnvironment refuses variables with the program's prefix that no knob has: a mistyped limit must not pass for no
// limit. Variables that rigs give to their jobs may be there, for a job may be one of our programs.
func (l *layers[T]) checkEnvironment() error {
	known := []string{l.prefix + "HOME", l.prefix + "CONFIG"}
	for _, s := range l.table {
		known = append(known, s.Env(l.prefix))
	}
	ofJobs := []string{"HAGGLE_LEASE", "HAGGLE_CARDS"}
	for _, variable := range slices.Sorted(slices.Values(os.Environ())) {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, l.prefix) || slices.Contains(known, name) || slices.Contains(ofJobs, name) {
			continue
		}
		return &Error{
			Source: "the environment", Key: clip(name), Problem: "is not a variable of this program",
			Hint: "did you mean " + nearest(clip(name), known) + "? Variables are named after the configuration's keys",
		}
	}
	return nil
}
