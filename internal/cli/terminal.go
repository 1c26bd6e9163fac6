package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"haggle/market"
)

// Terminal is where a program writes: results for pipes and people, talk for people only.
type Terminal struct {
	Program  string // its name, before every line of talk
	Out, Err io.Writer
}

// Say writes a line of talk.
func (t Terminal) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(t.Err, t.Program+": "+format+"\n", args...) // where stderr is closed nobody listens
}

// Show writes a line of results. A failed write to a closed pipe ends the program by its signal.
func (t Terminal) Show(format string, args ...any) { _, _ = fmt.Fprintf(t.Out, format+"\n", args...) }

// JSON writes a value for programs.
func (t Terminal) JSON(v any) error { return WriteJSON(t.Out, v, true) }

// Table writes rows under a header, in columns. Every cell is made fit for a terminal; an empty one becomes a dash.
func (t Terminal) Table(header string, rows [][]string) error {
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{strings.Fields(header)}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			if cells[i] = market.Printable(cell); cells[i] == "" {
				cells[i] = "-"
			}
		}
		if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// Facts writes names and values, one a line. Facts without a value are left out.
func (t Terminal) Facts(pairs ...string) error {
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\n", pairs[i], market.Printable(pairs[i+1])); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
