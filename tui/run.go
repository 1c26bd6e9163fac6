package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Run shows the screens on a terminal until the user leaves, which is no error, or ctx ends, which is its cause. A panic
// leaves the terminal usable and returns a *PanicError, which names the file of its report.
func Run(ctx context.Context, c Config, in io.Reader, out io.Writer) error {
	within, stop := context.WithCancel(ctx)
	defer stop()
	m := newModel(within, stop, c)
	_, err := tea.NewProgram(m, tea.WithContext(within), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler()).Run()
	switch {
	case m.crash != nil:
		return m.crash.report(m)
	case errors.Is(err, tea.ErrProgramPanic):
		return (&crash{value: err, where: "Bubble Tea", stack: debug.Stack()}).report(m)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("show the screens: %w", err)
	}
	return nil
}

// PanicError is the end of the screens by a fault of theirs.
type PanicError struct {
	Report string // path of the report; empty where it could not be written
	Value  any    // of the panic
	Err    error  // why there is no report
}

func (e *PanicError) Error() string {
	what := strings.SplitN(fmt.Sprint(e.Value), "\n", 2)[0]
	if e.Report == "" {
		return fmt.Sprintf("the screens broke down: %s; no report could be written: %v", what, e.Err)
	}
	return fmt.Sprintf("the screens broke down: %s; the report is %s", what, e.Report)
}

func (e *PanicError) Unwrap() error { return e.Err }

// crash is a panic that was caught.
type crash struct {
	value any
	where string
	stack []byte
}

// rescue is deferred by Update: a panic ends the program in order.
func (m *Model) rescue(cmd *tea.Cmd) {
	if r := recover(); r != nil {
		m.crashed(r, "an update")
		*cmd = tea.Quit
	}
}

// crashed remembers the first panic and ends the program.
func (m *Model) crashed(value any, where string) {
	if m.crash == nil {
		m.crash = &crash{value, where, debug.Stack()}
		m.kit.stop()
	}
}

// report writes down what is known. It holds no key and no environment: the user shall be able to send it to a stranger.
func (c *crash) report(m *Model) error {
	fail := &PanicError{Value: c.value}
	f, err := os.CreateTemp(m.Reports, "haggle-report-*.txt")
	if err != nil {
		fail.Err = fmt.Errorf("write the report: %w", err)
		return fail
	}
	_, err = fmt.Fprintf(f, "haggle %s, %s/%s, %s\n%s\nin %s: %v\nterminal %dx%d, page %d, %d offers, %d leases\n\n%s",
		m.Version, goruntime.GOOS, goruntime.GOARCH, goruntime.Version(), m.Clock().UTC().Format("2006-01-02T15:04:05Z"),
		c.where, c.value, m.width, m.height, m.scope(), len(m.offers.shelf.Offers), len(m.leases.list), c.stack)
	if err = errors.Join(err, f.Close()); err != nil {
		fail.Err = fmt.Errorf("write the report: %w", err)
		return fail
	}
	fail.Report = f.Name()
	return fail
}
