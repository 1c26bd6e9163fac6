package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"haggle/market"
)

// WriteJSON writes a value and an end of line: indented for people who look, or on one line. What could steer a terminal is
// written as an escape, which means the same to a program.
func WriteJSON(w io.Writer, v any, indent bool) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if indent {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	var safe bytes.Buffer
	for _, r := range text.String() { // valid UTF-8, with ASCII's control characters escaped already
		if r != '\n' && market.Printable(string(r)) == "" {
			fmt.Fprintf(&safe, `\u%04x`, r) // none of these is beyond four digits
			continue
		}
		safe.WriteRune(r)
	}
	if _, err := w.Write(safe.Bytes()); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}
