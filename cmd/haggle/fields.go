package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/market"
)

func (p *program) fieldsCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:   "fields [WORD]",
		Short: "list what a query can ask for",
		Long: "List what a query can ask for: each field with what a value looks like, the unit of a number without one, whose word it is, and\n" +
			"an example. WORD leaves those in whose name, other spellings or description it stands.\n\n" +
			"Whose word: slot and offer are the rig's claim; standing is what this machine saw or measured itself; job is computed for your\n" +
			"job; claim is what only the owner or a maker can state.",
		Example: "  haggle fields\n  haggle fields gpu\n  haggle fields --json",
		Args:    cli.Words(0, 1, "WORD"),
	}, func(_ context.Context, args []string) error {
		return p.fields(strings.ToLower(strings.Join(args, "")), asJSON)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// fields lists the fields in which a word stands.
func (p *program) fields(word string, asJSON bool) error {
	list := []market.Field{}
	for _, f := range market.Fields() {
		if strings.Contains(strings.ToLower(f.Name+" "+strings.Join(f.Aliases, " ")+" "+f.Help), word) {
			list = append(list, f)
		}
	}
	switch {
	case asJSON:
		return p.JSON(list)
	case len(list) == 0:
		return &cli.Hinted{Class: market.ClassNotFound, Message: "no field has to do with " + word, Hint: "`haggle fields` lists them all"}
	}
	rows := make([][]string, 0, len(list))
	for _, f := range list {
		rows = append(rows, []string{f.Name, f.Type, cmp.Or(f.Unit, " "), f.About, f.Example, f.Help})
	}
	return p.Table("FIELD VALUE UNIT WHOSE EXAMPLE ABOUT", rows)
}

// completeFields makes a shell complete the names of fields in flags that list them.
func completeFields(c *cobra.Command, flags ...string) {
	words := func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		var list []string
		for _, f := range market.Fields() {
			list = append(list, before+f.Name+"\t"+f.Help)
		}
		return list, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	for _, name := range flags {
		_ = c.RegisterFlagCompletionFunc(name, words) // it fails only for a flag that is not there
	}
}
