//go:build linux

package rig

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"haggle/internal/config"
	"haggle/market"
	"haggle/nvml"
	"haggle/nvml/nvidia"
	"haggle/runtime"
	"haggle/runtime/device"
)

// cards looks at what there is to offer, and whether it reaches a job.
func cards(ctx context.Context, cfg config.Rig) Finding {
	driver, err := openCards(ctx, cfg, market.Key{}, nil)
	if err != nil {
		return Finding{"cards", LevelBad, err.Error(), "install NVIDIA's driver, or look at a market without cards: `haggle lab up`"}
	}
	defer driver.Close()
	list, err := driver.Cards(ctx)
	if err != nil || len(list) == 0 {
		return Finding{"cards", LevelBad, "none", "`nvidia-smi` must list the cards"}
	}
	names := make([]string, 0, len(list))
	for _, c := range list {
		names = append(names, c.RawName)
	}
	f := Finding{"cards", LevelGood, market.Printable(strings.Join(names, ", ")), ""}
	if own, ok := driver.(*nvidia.Driver); ok {
		f.Level, f.Fix = passable(ctx, cfg, own, list)
	}
	return f
}

// passable tells whether every card can be given to a job, and if not, what stands in the way of the first.
func passable(ctx context.Context, cfg config.Rig, driver *nvidia.Driver, list []nvml.Card) (Level, string) {
	devices, err := device.New(device.Config{Dirs: cfg.Cards.CDI, Specs: driver.Specs, Mode: deviceMode(cfg), Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = devices.Refresh(ctx)
	}
	if err != nil {
		return LevelNote, "no card reaches a job: " + market.Printable(err.Error())
	}
	can := devices.List()
	for _, c := range list {
		if slices.Contains(can, runtime.DeviceID{Class: "nvidia.com/gpu", UUID: c.UUID}) {
			continue
		}
		for _, refusal := range devices.Refusals() {
			if refusal.Device == c.UUID {
				return LevelNote, market.Printable(fmt.Sprintf("%s reaches no job: %s", c.UUID, refusal.Reason))
			}
		}
		return LevelNote, c.UUID + " reaches no job: nothing describes how; `nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` does"
	}
	return LevelGood, ""
}
