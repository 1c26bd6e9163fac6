//go:build !linux

package inside

import "io"

func check(_ checkOptions, out io.Writer) int { return onlyLinux(out) }

func attack(_ []string, out io.Writer) int { return onlyLinux(out) }

func wait(string) int { return onlyLinux(io.Discard) }

func onlyLinux(out io.Writer) int {
	tell(out, Result{Name: "system", Found: "jobs run on Linux only, and so does what is tried from inside them"})
	return 1
}
