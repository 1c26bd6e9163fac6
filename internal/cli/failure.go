package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"haggle/market"
)

// Exit codes beside those of market.Class.
const (
	ExitOwn         = 125 // of commands that return somebody else's code: they failed themselves
	ExitInterrupted = 130
)

// OwnFailure is the annotation of commands all of whose own failures have one code, written as a decimal.
const OwnFailure = "own-failure"

// failure is an error with an exit code. Without an error inside it is only a code, and nothing is printed.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string {
	if f.err == nil {
		return "exit code " + strconv.Itoa(f.code)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// Fail gives an error an exit code, unless it has one or the code is 0.
func Fail(code int, err error) error {
	var has *failure
	if code == 0 || errors.As(err, &has) {
		return err
	}
	return &failure{code, err}
}

// Exit ends the program with a code and without a line.
func Exit(code int) error {
	if code == 0 {
		return nil
	}
	return &failure{code: code}
}

// OwnCode returns the code that a command's own failures have, or 0.
func OwnCode(c *cobra.Command) int {
	code, err := strconv.Atoi(c.Annotations[OwnFailure])
	if err != nil {
		return 0
	}
	return code
}

// Hinted is a failure of a program's own with what to do about it.
type Hinted struct {
	Class         market.Class
	Message, Hint string
}

// Error returns the message.
func (h *Hinted) Error() string { return h.Message }

// Usage is an error of the command line.
func Usage(message, hint string) error { return &Hinted{market.ClassUsage, message, hint} }

// Report prints an error in one line and returns the exit code. explain puts errors of other packages into words; where it
// returns false, market errors and those of this package are known, and anything else is printed as it is.
func (t Terminal) Report(ctx context.Context, err error, explain func(error) (market.Explanation, bool)) int {
	if err == nil {
		return 0
	}
	var f *failure
	if errors.As(err, &f) && f.err == nil {
		return f.code
	}
	interrupted := ctx.Err() != nil && errors.Is(err, context.Canceled)
	words := words(err, explain)
	code := int(words.Class)
	if f != nil {
		code = f.code
	} else if interrupted {
		code = ExitInterrupted
	}
	switch {
	case interrupted:
	case words.Hint == "":
		t.Say("%s", oneLine(words.Message))
	default:
		t.Say("%s (hint: %s)", oneLine(words.Message), oneLine(words.Hint))
	}
	return code
}

// oneLine makes a text fit for a line of a terminal: errors that were joined stand on lines of their own.
func oneLine(text string) string { return market.Printable(strings.ReplaceAll(text, "\n", "; ")) }

func words(err error, explain func(error) (market.Explanation, bool)) market.Explanation {
	var ours *Hinted
	if errors.As(err, &ours) {
		return market.Explanation{Message: ours.Message, Hint: ours.Hint, Class: ours.Class}
	}
	var theirs *market.Error
	if errors.As(err, &theirs) {
		return market.Explain(err)
	}
	if e, ok := explain(err); ok {
		return e
	}
	return market.Explanation{Message: err.Error(), Class: market.ClassFailed}
}
