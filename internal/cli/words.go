package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Badge marks a simulated card wherever one is named.
const Badge = "SIM"

// NoIsolation marks a rig whose jobs are plain processes wherever its cards are named.
const NoIsolation = "NO ISOLATION"

// NotRentable marks cards that are shown and not rented yet.
const NotRentable = "NOT RENTABLE"

// TrustedOnly marks offers that take bids of owners alone whom the rig's owner trusts. It is short, for a list has 80 columns.
const TrustedOnly = "TRUST"

// Words bounds the number of a command's arguments and names what is missing or too much.
func Words(least, most int, name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		hint := "see `" + c.CommandPath() + " --help`"
		switch {
		case len(args) < least:
			return Usage(c.Name()+" needs "+name, hint)
		case len(args) > most:
			return Usage(fmt.Sprintf("%s does not know what to do with %q", c.Name(), args[most]), hint)
		}
		for _, a := range args {
			if a == "" {
				return Usage(name+" is empty", hint)
			}
		}
		return nil
	}
}

// Bytes writes a number of bytes in the largest unit of thousands that it fills, with at most one digit behind the point: 1.2 GB.
func Bytes(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, at := float64(n)/1000, 0
	for value >= 999.95 && at < len(units)-1 { // what would be written as 1000.0
		value, at = value/1000, at+1
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0") + " " + units[at:at+1] + "B"
}
