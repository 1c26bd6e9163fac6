package config

import (
	"strings"
	"time"
)

// Kind says what a knob's value is and how it is written.
type Kind string

// Kinds of values, each with its form in the file. In a flag and in the environment a value is written without quotes, and
// the items of a list are parted by commas.
const (
	KindText      Kind = "text"
	KindList      Kind = "list"      // ["a", "b"]
	KindNumber    Kind = "number"    // a whole number
	KindDuration  Kind = "time"      // "90s", "2h", "7d"
	KindLimit     Kind = "limit"     // a time, or "unlimited"
	KindSize      Kind = "size"      // "16GiB"
	KindRate      Kind = "rate"      // "40Mbit": bits a second
	KindPrice     Kind = "price"     // "0.40": a decimal with at most six digits after the point
	KindSimulated Kind = "simulated" // [{profile = "RTX_4090", count = 2}]; elsewhere RTX_4090=2,H100=1
	KindImages    Kind = "images"    // [{name = "lab", archive = "lab.tar"}]; elsewhere lab=lab.tar,other=other.tar
	KindPrograms  Kind = "programs"  // a table for each program, [pay.lab]; elsewhere lab.bank=/srv/bank,lab.cap=5
)

// Unlimited is the value of a limit that is none.
const Unlimited = time.Duration(-1)

// unlimited is how Unlimited is written.
const unlimited = "unlimited"

// Knob describes one knob to people: in the file that `haggled init` writes, and in the documents.
type Knob struct {
	Name    string // as in the file: "prices.slot" is slot in the table prices
	Kind    Kind
	Default string // as a flag would give it
	Doc     string // one or two sentences
	Min     int64  // for numbers; times in nanoseconds, sizes in bytes, rates in bits a second
	Max     int64  // as Min; both zero where there are no bounds
}

// Env returns the variable that sets the knob for a program whose variables begin with prefix: HAGGLED_PRICES_SLOT.
func (k Knob) Env(prefix string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
}

// spec is a knob of a configuration of type T: where its value is kept, and which texts it takes.
type spec[T any] struct {
	Knob
	field func(*T) any       // a pointer to the value, of the type that goes with the kind
	check func(string) error // of a text, or of each item of a list; nil: anything
}

// knobs returns the public part of a table.
func knobs[T any](table []spec[T]) []Knob {
	list := make([]Knob, len(table))
	for i, s := range table {
		list[i] = s.Knob
	}
	return list
}

// names returns the names of a table's knobs, and those of the tables that they are in.
func names[T any](table []spec[T]) []string {
	var list []string
	for _, s := range table {
		list = append(list, s.Name)
		if t, _, ok := strings.Cut(s.Name, "."); ok {
			list = append(list, t)
		}
	}
	return list
}

// nearest returns the known name that takes the fewest changes to get to from a name. The right word in the wrong table
// is nearer than letters can tell.
func nearest(name string, known []string) string {
	best, least := "", -1
	for _, k := range known {
		d := distance(name, k)
		if last(k) == last(name) {
			d = min(d, 1)
		}
		if least < 0 || d < least {
			best, least = k, d
		}
	}
	return best
}

// last returns the last part of a dotted name.
func last(name string) string { return name[strings.LastIndex(name, ".")+1:] }

// distance counts the letters that must be put in, taken out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
