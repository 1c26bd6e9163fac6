package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"
)

// NewWithin makes a program whose commands end with ctx.
func NewWithin(ctx context.Context, c Config) *Model { return newModel(ctx, func() {}, c) }

// Lines returns the frame with its styles.
func (m *Model) Lines() []string { return m.lines() }

// Named is a key that the footer or the help of a scope names.
type Named struct{ Key, Verb string }

// NamedKeys returns every key of where the user is.
func (m *Model) NamedKeys() []Named {
	var out []Named
	for _, b := range bindings(m.scope()) {
		for _, k := range b.keys {
			out = append(out, Named{k, b.verb})
		}
	}
	return out
}

// Try carries out a key and reports whether it is handled.
func (m *Model) Try(key string) (cmd tea.Cmd, handled bool) {
	s := m.scope()
	a := meaning(s, key)
	if a == actNone {
		return nil, false
	}
	return m.do(s, a)
}

// Footer returns the last line without styles.
func (m *Model) Footer() string { return stripped(m.foot(m.height >= roomy)) }

// Chosen returns the rig of the chosen offer.
func (m *Model) Chosen() string { return m.offers.chosen.Rig }

// Fit, Line, ParseSpan, ParseDisk, SplitWords, Lasting, Thousands and Endings are helpers.
var (
	Fit        = fit
	Line       = line
	ParseSpan  = parseSpan
	ParseDisk  = parseDisk
	SplitWords = splitWords
	Lasting    = lasting
	Thousands  = thousands
	Endings    = endings
)

// Toggle puts a clause of one value into a query, or takes it out.
func Toggle(query, clause string) string { return splitQuery(query).toggle(clause).String() }

// Code draws a QR code without colours.
func Code(text string) []string { return qrCode(text, newTheme(true, false)) }

// Crashed returns the panic that ended the program, or nil.
func (m *Model) Crashed() any {
	if m.crash == nil {
		return nil
	}
	return m.crash.value
}

// Reload makes the command that asks for offers.
func (m *Model) Reload() tea.Cmd {
	m.offers.asking = false
	return m.offers.load(m.link.epoch)
}

// Books makes the command that asks for the accounts.
func (m *Model) Books() tea.Cmd {
	m.ledger.asking = false
	return m.ledger.load()
}

// Trap opens a dialog whose y panics in Update.
func (m *Model) Trap() {
	m.dialog = &dialog{title: "trap", yes: "panic", armed: true, do: func() tea.Cmd { panic("trapped") }}
}
