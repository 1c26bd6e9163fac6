package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/api"
	"haggle/internal/cli"
	"haggle/internal/view"
	"haggle/market"
)

func (p *program) statusCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:     "status",
		Short:   "show the agent and where it stands in the network",
		Example: "  haggle status\n  haggle status --json",
	}, func(ctx context.Context, _ []string) error {
		s, err := ask(ctx, p, func(c *api.AgentClient) (view.AgentStatus, error) { return c.Status(ctx) })
		if err != nil {
			return err
		}
		return p.printStatus(s, asJSON)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *program) printStatus(s view.AgentStatus, asJSON bool) error {
	if asJSON {
		return p.JSON(s)
	}
	ready := "ready"
	if !s.Network.Ready {
		ready = "not ready"
		if s.Network.Reason != "" {
			ready += ": " + s.Network.Reason
		}
	}
	key := s.Network.Key
	if key != "" && s.Network.Name != "" && !market.IsLab(s.Network.Name) { // in a lab everybody may rent
		key += "  (send it to a rig's owner to be trusted)"
	}
	facts := []string{
		"agent", "haggle " + s.Version + ", process " + strconv.Itoa(s.PID) + ", up " + lasting(s.Uptime*1000),
		"home", s.Home,
		"network", s.Network.Name + ", " + ready,
		"key", key,
	}
	name := "addresses"
	for _, address := range s.Network.Addrs {
		facts = append(facts, name, address)
		name = ""
	}
	if !market.IsLab(s.Network.Name) {
		facts = append(facts, cli.Sources(s.Network.Sources)...)
	}
	if r := s.Network.Reach; r != nil && r.Kind != "loopback" {
		facts = append(facts, "reach", r.Found)
	}
	facts = append(facts,
		"peers", strconv.Itoa(s.Network.Peers)+" connected, "+strconv.Itoa(s.Network.Table)+" in the routing table",
		"offers", strconv.Itoa(s.Offers)+" known",
		"leases", strconv.Itoa(s.Leases)+" open",
	)
	if methods := strings.Join(s.Methods, ", "); methods != "" {
		facts = append(facts, "pays by", methods)
	} else {
		facts = append(facts, "pays by", "no method: leases on credit alone")
	}
	for _, a := range s.Alerts {
		facts = append(facts, "alert", a.Text)
	}
	for _, w := range s.Warnings {
		facts = append(facts, "warning", w)
	}
	return p.Facts(facts...)
}
