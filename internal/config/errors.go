package config

import "strings"

// Error is what every function of this package returns where a person can mend what is wrong.
type Error struct {
	Source  string // where the value came from: a file's path, "the environment" or "a flag"
	Key     string // the knob's name as the file spells it; "" where the file itself is at fault
	Problem string // what is wrong, in words that follow the key
	Hint    string // what to do about it; "" where the problem says it
}

// Error returns source, key and problem in one line, without the hint.
func (e *Error) Error() string {
	text := e.Problem
	if e.Key != "" {
		text = e.Key + " " + text
	}
	if e.Source != "" {
		text = e.Source + ": " + text
	}
	return strings.ReplaceAll(text, "\n", " ")
}
