// Package config knows the programs' knobs and the places of their files. A knob's value comes from a flag, the
// environment, the file or its default, in this order; every knob is a row of one table, which also writes the file that
// an owner edits. A key that no row has is an error: a mistyped limit must not pass for no limit.
//
// The package checks the form and the bounds of values. What they mean is for those who use them: amounts of money and
// addresses are handed on as text. Nothing here is kept between calls; all functions may be called concurrently.
package config
