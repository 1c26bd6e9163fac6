package main

import (
	"io"
	"strconv"
	"strings"
	"time"

	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

// printLine writes a value as one line of JSON, for programs that read along.
func printLine(w io.Writer, v any) error { return cli.WriteJSON(w, v, false) }

// card names a model, with the cli.Badge if it is simulated, and with cli.NoIsolation where its rig keeps jobs apart by none.
func card(model string, simulated bool, isolation string) string {
	if model == "" {
		return ""
	}
	if simulated {
		model += " " + cli.Badge
	}
	if isolation == "none" {
		model += " " + cli.NoIsolation
	}
	return model
}

// offered names an offer's model with all that must be known of it at first sight.
func offered(o view.Offer) string {
	name := card(o.Model, o.Simulated, o.Isolation)
	if len(o.Also) > 0 {
		name += " + " + strings.Join(o.Also, " + ")
	}
	if o.Bidders == market.BiddersTrusted {
		name += " " + cli.TrustedOnly
	}
	if !o.Rentable {
		name += " " + cli.NotRentable
	}
	return name
}

// cards names a number of cards.
func cards(n int, model string, simulated bool, isolation string) string {
	return strconv.Itoa(n) + " × " + card(model, simulated, isolation)
}

func money(m view.Money) string {
	if m.Currency == "" {
		return m.Text
	}
	return m.Text + " " + m.Currency
}

// lasting writes a time of milliseconds.
func lasting(ms int64) string {
	if ms < 0 {
		return "unlimited"
	}
	return config.FormatDuration(time.Duration(ms) * time.Millisecond)
}

// short is how people name a lease.
func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}
