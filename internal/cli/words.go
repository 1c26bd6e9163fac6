package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Badge marks a simulated card wherever one is named.
const Badge = "SIM"

// NoIsolation marks a rig whose jobs are plain processes wherever its cards are named.
const NoIsolation = "NO ISOLATION"

// NotRentable marks cards that are shown and not rented yet.
const NotRentable = "NOT RENTABLE"

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
