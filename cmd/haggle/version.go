package main

import (
	"context"
	goruntime "runtime"

	"github.com/spf13/cobra"
)

func (p *program) versionCommand() *cobra.Command {
	var asJSON bool
	c := p.action(&cobra.Command{
		Use:     "version",
		Short:   "print the version",
		Example: "  haggle version\n  haggle version --json",
	}, func(context.Context, []string) error {
		if !asJSON {
			p.Show("haggle %s %s %s/%s", p.version, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
			return nil
		}
		return p.JSON(struct {
			Version  string `json:"version"`
			Go       string `json:"go"`
			Platform string `json:"platform"`
		}{p.version, goruntime.Version(), goruntime.GOOS + "/" + goruntime.GOARCH})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
