package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
)

// finding is one thing that the doctor looked at.
type finding struct {
	Name  string `json:"name"`
	Level string `json:"level"` // ok, note or bad
	Found string `json:"found"`
	Fix   string `json:"fix,omitempty"`
}

func (p *program) doctorCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use: "doctor", Short: "check what an agent needs to reach rigs, and say how to get what is missing",
		Example: "  haggle doctor\n  haggle doctor --json",
	}, func(ctx context.Context, _ []string) error {
		s, err := ask(ctx, p, func(c *api.AgentClient) (view.AgentStatus, error) { return c.Status(ctx) })
		if err != nil {
			return err
		}
		return p.printFindings(examine(s), asJSON)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// examine judges an agent by what it says of itself.
func examine(s view.AgentStatus) []finding {
	network := finding{"network", "ok", s.Network.Name + ": " + strconv.Itoa(s.Network.Peers) + " peers connected, " + strconv.Itoa(s.Network.Table) + " in the routing table", ""}
	if !s.Network.Ready {
		network.Level, network.Found = "bad", s.Network.Name+": nobody to ask"
		network.Fix = "name a member's address in `bootstrap`; `haggle status` on its machine shows it"
		if s.Network.Reason != "" {
			network.Found += ", " + s.Network.Reason
		}
	}
	all := []finding{{"agent", "ok", "haggle " + s.Version + " runs", ""}, network}
	if r := s.Network.Reach; r != nil {
		f := finding{"reach", "ok", r.Found, r.Fix}
		if r.Fix != "" {
			f.Level = "note"
		}
		all = append(all, f)
		if r.Punched+r.Failed > 0 {
			all = append(all, finding{"holes", "ok", strconv.Itoa(r.Punched) + " punched, " + strconv.Itoa(r.Failed) + " not", ""})
		}
	}
	for _, w := range s.Warnings {
		all = append(all, finding{"warning", "note", w, ""})
	}
	return all
}

// printFindings fails if a finding is bad.
func (p *program) printFindings(all []finding, asJSON bool) error {
	bad := false
	rows := make([][]string, 0, len(all))
	for _, f := range all {
		bad = bad || f.Level == "bad"
		rows = append(rows, []string{f.Level, f.Name, f.Found, f.Fix})
	}
	var err error
	if asJSON {
		err = p.JSON(all)
	} else {
		err = p.Table("STATE WHAT FOUND FIX", rows)
	}
	if err == nil && bad {
		err = cli.Exit(1)
	}
	return err
}
