//go:build linux && cgo

package nvidia

// Symbols is the table of what may be called.
func Symbols() map[string][]string { return symbols() }
