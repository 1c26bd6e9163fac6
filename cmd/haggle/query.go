package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

func (p *program) queryCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "query",
		Short: "save queries, and use them as @NAME",
		Long: "Save queries under names of yours. @NAME stands for the saved query wherever a query is taken, alone or beside other clauses: its\n" +
			"clauses are put into parentheses. A saved query names no other. The agent keeps 64 of them; nobody else sees them.",
		Example: "  haggle query save cheap 'gpu_ram>=24 dph<0.40'\n  haggle offers @cheap 'geolocation=DE'\n  haggle query list\n  haggle query remove cheap",
		Args:    cli.Words(0, 0, ""),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.querySaveCommand(), p.queryListCommand(), p.queryShowCommand(), p.queryRemoveCommand())
	return c
}

func (p *program) querySaveCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:     "save NAME QUERY…",
		Short:   "keep a query under a name, in place of the one that has it",
		Example: "  haggle query save cheap 'gpu_ram>=24 dph<0.40'",
		Args:    cli.Words(2, 1024, "NAME and QUERY"),
	}, func(ctx context.Context, args []string) error {
		name, query := strings.TrimPrefix(args[0], "@"), strings.Join(args[1:], " ")
		if err := market.CheckSavedName(name); err != nil {
			return err // said at once, with no agent
		}
		if _, err := market.ParseQuery(query); err != nil {
			return err
		}
		q, err := ask(ctx, p, func(c *api.AgentClient) (view.SavedQuery, error) { return c.SaveQuery(ctx, name, query) })
		switch {
		case err != nil:
			return err
		case asJSON:
			return p.JSON(q)
		}
		p.Say("@%s is %s", clean(q.Name), clean(q.Query))
		return nil
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *program) queryListCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:     "list",
		Short:   "list the saved queries",
		Example: "  haggle query list\n  haggle query list --json",
	}, func(ctx context.Context, _ []string) error {
		list, err := p.savedQueries(ctx)
		switch {
		case err != nil:
			return err
		case asJSON:
			return p.JSON(list)
		case len(list) == 0:
			p.Say("no query is saved (hint: `haggle query save NAME QUERY`)")
			return nil
		}
		rows := make([][]string, 0, len(list))
		for _, q := range list {
			rows = append(rows, []string{"@" + q.Name, q.Query})
		}
		return p.Table("NAME QUERY", rows)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *program) queryShowCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:     "show NAME",
		Short:   "print one saved query",
		Example: "  haggle query show cheap",
		Args:    cli.Words(1, 1, "NAME"),
	}, func(ctx context.Context, args []string) error {
		name := strings.TrimPrefix(args[0], "@")
		list, err := p.savedQueries(ctx)
		if err != nil {
			return err
		}
		texts := map[string]string{}
		for _, q := range list {
			if texts[q.Name] = q.Query; q.Name != name {
				continue
			}
			if asJSON {
				return p.JSON(q)
			}
			p.Show("%s", clean(q.Query))
			return nil
		}
		_, err = market.ExpandQuery("@"+name, texts)
		return err
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.ValidArgsFunction = p.queryWords
	return c
}

func (p *program) queryRemoveCommand() *cobra.Command {
	c := p.action(&cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "forget a saved query",
		Example: "  haggle query remove cheap",
		Args:    cli.Words(1, 1, "NAME"),
	}, func(ctx context.Context, args []string) error {
		name := strings.TrimPrefix(args[0], "@")
		_, err := ask(ctx, p, func(c *api.AgentClient) (struct{}, error) { return struct{}{}, c.RemoveQuery(ctx, name) })
		if err == nil {
			p.Say("@%s is forgotten", clean(name))
		}
		return err
	})
	c.ValidArgsFunction = p.queryWords
	return c
}

func (p *program) savedQueries(ctx context.Context) ([]view.SavedQuery, error) {
	return ask(ctx, p, func(c *api.AgentClient) ([]view.SavedQuery, error) { return c.SavedQueries(ctx) })
}

// queryWords completes the names of saved queries. No agent is started for it.
func (p *program) queryWords(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.queryNames(c.Context(), ""), cobra.ShellCompDirectiveNoFileComp
}

// queryNames lists the saved queries for a shell.
func (p *program) queryNames(ctx context.Context, prefix string) []string {
	client, err := p.dial()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	list, err := client.SavedQueries(ctx)
	if err != nil {
		return nil
	}
	var words []string
	for _, q := range list {
		words = append(words, prefix+q.Name+"\t"+clean(q.Query))
	}
	return words
}

// completeQuery makes a shell complete a query: the names of fields, and of saved queries behind an @.
func (p *program) completeQuery(c *cobra.Command) {
	c.ValidArgsFunction = func(c *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		if strings.HasPrefix(typed, "@") {
			return p.queryNames(c.Context(), "@"), cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for _, f := range market.Fields() {
			words = append(words, f.Name+"\t"+f.Help)
		}
		return words, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
}
