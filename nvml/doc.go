// Package nvml describes graphics cards: what they are, how they fare and whether they may be rented out.
//
// The types are neutral to vendors. A [Driver] reads real cards or plays simulated ones (package sim); package
// nvmltest holds the rules that every driver must keep. Everything in this package is plain data and pure functions:
// no I/O, no clock, no goroutine.
//
// One rule holds everywhere: unknown is never zero. What a card may not tell is an [Opt], whose [State] says why a
// value is missing.
package nvml
