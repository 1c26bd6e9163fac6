package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/view"
)

// givenHelp says what it means to name others.
const givenHelp = "Or call a rig or an owner by a name of yours. It is shown before the name that the rig gave itself, which anybody can give any\n" +
	"rig, and may be typed wherever the rig or the owner is meant. Nobody else sees it. RIG is what a rig calls itself, or its key;\n" +
	"OWNER is a key. `haggle names` lists them."

// giveName names a rig or an owner, or takes the name back where there is none among the arguments.
func (p *program) giveName(ctx context.Context, args []string, asJSON bool) error {
	name := strings.Join(args[1:], "")
	n, err := ask(ctx, p, func(c *api.AgentClient) (view.GivenName, error) { return c.GiveName(ctx, args[0], name) })
	switch {
	case err != nil:
		return err
	case asJSON:
		return p.JSON(n)
	case name == "":
		p.Say("%s has no name of yours any more", clean(n.Key))
	default:
		p.Say("%s is %s", clean(n.Key), clean(view.Named(n.Name, n.Calls)))
	}
	return nil
}

func (p *program) namesCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:     "names",
		Short:   "list the names that you gave to rigs and owners",
		Example: "  haggle names\n  haggle names --json",
	}, func(ctx context.Context, _ []string) error {
		list, err := ask(ctx, p, func(c *api.AgentClient) ([]view.GivenName, error) { return c.GivenNames(ctx) })
		switch {
		case err != nil:
			return err
		case asJSON:
			return p.JSON(list)
		case len(list) == 0:
			p.Say("you gave no names (hint: `haggle name RIG NAME`)")
			return nil
		}
		rows := make([][]string, 0, len(list))
		for _, n := range list {
			what := "rig"
			if n.Owner {
				what = "owner"
			}
			if !n.Owner && n.Calls == "" {
				what = ""
			}
			rows = append(rows, []string{n.Name, what, n.Calls, n.Key})
		}
		return p.Table("NAME IS CALLS-ITSELF KEY", rows)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
