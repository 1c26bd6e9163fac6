//go:build !linux

package door

import "os"

// setModes leaves a terminal as the system made it.
func setModes(*os.File, string) {}

// isTerminal says whether a file looks like one.
func isTerminal(f *os.File) bool {
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0
}
