//go:build linux

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"haggle/internal/assemble/rig"
	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/market"
)

func (p *program) initCommand() *cobra.Command {
	var values map[string]string
	var force, asJSON bool
	c := p.action(&cobra.Command{
		Use:   "init",
		Short: "Write a configuration file to edit, and make the rig's key",
		Example: "  haggled init\n" +
			"  haggled init --home /srv/rig-2 --set name=attic --set prices.slot=0.25",
	}, func(context.Context, []string) error { return p.init(values, force, asJSON) })
	c.Flags().StringToStringVar(&values, "set", nil, "a key of the configuration: --set KEY=VALUE")
	c.Flags().BoolVar(&force, "force", false, "replace a configuration file that is there")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result for programs")
	return c
}

func (p *program) init(values map[string]string, force, asJSON bool) error {
	paths, err := p.paths()
	if err != nil {
		return err
	}
	file := paths.Config
	if p.file != "" {
		file = p.file
	}
	if _, err := os.Stat(file); err == nil && !force {
		return &cli.Hinted{Class: market.ClassFailed, Message: file + " is there already", Hint: "edit it, or replace it with --force"}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	cfg, err := config.LoadRig(config.Flags{Home: p.home, File: os.DevNull, Values: values})
	if err != nil {
		return err
	}
	if err := config.WriteRig(file, cfg); err != nil {
		return err
	}
	key, err := rig.MakeKey(cfg)
	if err != nil {
		return err
	}
	if asJSON {
		return p.JSON(map[string]string{"config": file, "key": key.String()})
	}
	p.Show("%s", file)
	p.Say("this rig is %s; its key stays in %s: keep a copy", key, cfg.Paths.Key)
	p.Say("next: edit the file, then `haggled doctor` and `haggled serve`")
	return nil
}

func (p *program) paths() (config.Paths, error) {
	home := p.home
	if home == "" {
		home = os.Getenv("HAGGLED_HOME")
	}
	return config.RigPaths(home)
}
