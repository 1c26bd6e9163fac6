package market

import (
	"errors"
	"slices"
	"strings"
)

// Code names one kind of refusal or failure. Codes are part of the protocol: they are only ever added.
type Code string

// Class says what a program should do about an error; it decides the exit code of the command line.
type Class uint8

// The classes, in the order of the command line's exit codes.
const (
	ClassFailed      Class = 1 // something broke
	ClassUsage       Class = 2 // the words were wrong
	ClassNotFound    Class = 3 // nothing of that name, or no match
	ClassRefused     Class = 4 // the other side said no
	ClassUnreachable Class = 5 // the other side could not be asked
	ClassBudget      Class = 6 // it would cost more than allowed
)

// Bounds of an error on the wire.
const (
	maxErrorArgs = 8
	maxErrorText = 256
)

// Arg is one fact of an error, named as the catalogue's sentences name it.
type Arg struct {
	Name  string `cbor:"1,keyasint" json:"name"`
	Value string `cbor:"2,keyasint" json:"value"`
}

// Error is the only error that leaves a process: a code and the facts that its sentence needs. Sentences for people are
// made by Catalogue, so that the receiver reads its own language and a hostile peer cannot write into a terminal.
type Error struct {
	Code Code  `cbor:"1,keyasint" json:"code"`
	Args []Arg `cbor:"2,keyasint,omitempty" json:"args,omitempty"`
}

// NewError makes an error from a code and pairs of name and value. It is the only way in which packages make them.
func NewError(code Code, pairs ...string) error {
	e := &Error{Code: code}
	for i := 0; i+1 < len(pairs) && len(e.Args) < maxErrorArgs; i += 2 {
		e.Args = append(e.Args, Arg{Name: pairs[i], Value: clip(pairs[i+1], maxErrorText)})
	}
	return e
}

// Error returns the catalogue's message without its hint.
func (e *Error) Error() string { return Explain(e).Message }

// Is reports whether the target is an error with the same code, so that errors.Is works after a trip over the wire.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Code == e.Code
}

// Arg returns the value of a named fact, or "".
func (e *Error) Arg(name string) string {
	i := slices.IndexFunc(e.Args, func(a Arg) bool { return a.Name == name })
	if i < 0 {
		return ""
	}
	return e.Args[i].Value
}

// Public returns what may leave the process: the market error inside err, or an internal error that tells nothing.
func Public(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: CodeInternal}
}

// CodeOf returns the code of the market error inside err, CodeInternal for any other error and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return Public(err).Code
}

// Explanation is an error in words for people: one sentence, and what to do next.
type Explanation struct {
	Message string
	Hint    string
	Class   Class
}

// Explain looks up the sentences for an error. Foreign values are stripped of control characters. An unknown code, from a
// newer program, is shown as it is.
func Explain(err error) Explanation {
	e := Public(err)
	entry, known := catalogue(e.Code)
	if !known {
		return Explanation{
			Message: "the other side refused with code " + Printable(string(e.Code)),
			Hint:    "a newer haggle may know this code",
			Class:   ClassRefused,
		}
	}
	return Explanation{Message: fill(entry.message, e.Args), Hint: fill(entry.hint, e.Args), Class: entry.class}
}

func fill(template string, args []Arg) string {
	for _, a := range args {
		template = strings.ReplaceAll(template, "{"+a.Name+"}", Printable(a.Value))
	}
	return template
}

// Printable returns a foreign string without control characters and without the invisible characters that reorder text,
// so that it cannot move a cursor, ring a bell or hide what it says. Bytes that are not UTF-8 become U+FFFD.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x20, r >= 0x7f && r < 0xa0, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
