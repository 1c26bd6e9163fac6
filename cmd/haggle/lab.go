package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/internal/lab"
)

// labRequest says which lab to start.
type labRequest struct {
	Home   string // "" for the usual place
	Rigs   int
	Engine string // containerd where ""
}

// labStatus is a lab at a glance.
type labStatus struct {
	Home    string   `json:"home"`
	Network string   `json:"network"`
	Agent   bool     `json:"agent" doc:"it answers"`
	Rigs    []labRig `json:"rigs"`
}

// labRig is one rig of a lab.
type labRig struct {
	Name    string `json:"name"`
	Home    string `json:"home"`
	PID     int    `json:"pid,omitempty"`
	Running bool   `json:"running"`
}

func (p *program) labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "lab",
		Short:   "start, stop or show a whole market on this machine",
		Long:    "A lab is a whole market on this machine, on loopback only, with simulated cards, which are marked " + cli.Badge + " wherever they are named.",
		Example: "  haggle lab up\n  haggle lab down",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usage("lab has no "+args[0], "it has up, down, status and image")
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.labUpCommand(), p.labDownCommand(), p.labStatusCommand(), p.labImageCommand())
	return c
}

func (p *program) labUpCommand() *cobra.Command {
	var r labRequest
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:     "up",
		Short:   "start a lab",
		Long:    "Start a lab and print the line that points haggle to it. Without that line haggle never talks to a lab.",
		Example: "  haggle lab up\n  haggle lab up --rigs 5\n  haggle lab up --engine process   # no root, no containers, NO ISOLATION\n  eval \"$(haggle lab up)\"",
	}, func(ctx context.Context, _ []string) error {
		switch {
		case r.Rigs < 1:
			return cli.Usage("--rigs must be at least 1", "leave it out for 3")
		case r.Engine != "" && r.Engine != string(lab.Containers) && r.Engine != string(lab.Processes):
			return cli.Usage("--engine knows no "+r.Engine, "it knows containerd, and process where there is no root")
		}
		r.Home = p.labHome()
		s, err := p.labUp(ctx, r, p.Err)
		switch {
		case err != nil:
			return err
		case asJSON:
			return p.JSON(s)
		}
		p.Show("export HAGGLE_HOME=%s", quoteShell(s.Home))
		return nil
	})
	c.Flags().IntVar(&r.Rigs, "rigs", 3, "number of rigs")
	c.Flags().StringVar(&r.Engine, "engine", "", "what runs the jobs: containerd (the default), or process where there is no root")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON in place of the line")
	return c
}

func (p *program) labDownCommand() *cobra.Command {
	return p.action(&cobra.Command{
		Use:     "down",
		Short:   "stop a lab and all that it started",
		Example: "  haggle lab down",
	}, func(ctx context.Context, _ []string) error {
		return p.labDown(ctx, p.labHome(), p.Err)
	})
}

func (p *program) labStatusCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:     "status",
		Short:   "show a lab",
		Example: "  haggle lab status --json",
	}, func(ctx context.Context, _ []string) error {
		s, err := p.labLook(ctx, p.labHome())
		switch {
		case err != nil:
			return err
		case asJSON:
			return p.JSON(s)
		}
		if err := p.Facts("lab", s.Home, "network", s.Network, "agent", running(s.Agent)); err != nil {
			return err
		}
		p.Show("")
		var rows [][]string
		for _, r := range s.Rigs {
			pid := ""
			if r.PID != 0 {
				pid = strconv.Itoa(r.PID)
			}
			rows = append(rows, []string{r.Name, running(r.Running), pid, r.Home})
		}
		return p.Table("RIG STATE PROCESS HOME", rows)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *program) labImageCommand() *cobra.Command {
	var out string
	c := p.action(&cobra.Command{
		Use:     "image",
		Short:   "write the lab's job image to a file, for a rig of your own",
		Long:    "Write the image of the lab's jobs, a small training run, as an OCI archive. Name it in `images` of a rig's configuration to try the rig out.",
		Example: "  haggle lab image -o lab.tar",
	}, func(context.Context, []string) error {
		if out == "" {
			return cli.Usage("lab image needs a file to write", "say -o FILE")
		}
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		if err := lab.WriteImage(out, self); err != nil {
			return err
		}
		p.Say(`in the rig's configuration: images = [{name = "%s", archive = "%s"}]`, lab.ImageName, out)
		return nil
	})
	c.Flags().StringVarP(&out, "output", "o", "", "the file")
	return c
}

func running(yes bool) string {
	if yes {
		return "running"
	}
	return "down"
}
