//go:build linux

package hostile_test

import (
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"haggle/runtime/containerd"
	"haggle/runtime/device"
	"haggle/runtime/jobnet"
	"haggle/runtime/volume"
)

// wire gives an engine its networks and devices, each without those of the protections that are its own.
func (h *house) wire(e *engine, name string, without []string) error {
	pick := func(known ...string) []string {
		return slices.DeleteFunc(slices.Clone(without), func(w string) bool { return !slices.Contains(known, w) })
	}
	pool := "10.213.97.0/24"
	if h.engine != nil {
		pool = "10.213.98.0/24"
	}
	log := slog.New(slog.NewTextHandler(h.log, nil))
	nets, err := jobnet.New(jobnet.Config{
		Netns: "/run/netns/" + h.world.rig, Name: "hgh_" + strings.ReplaceAll(name, "-", "_"), Pool: netip.MustParsePrefix(pool),
		Resolvers: []netip.Addr{netip.MustParseAddr(internet)}, Dir: filepath.Join(h.dir, name, "net"),
		Profile: jobnet.Profile{Reject: []netip.Prefix{netip.MustParsePrefix(ownersReject + "/32")}},
		Without: pick(jobnet.Protections()...), Log: log,
	})
	if err != nil {
		return err
	}
	devices, err := device.New(device.Config{
		Dirs: []string{h.cards.descriptions}, Nodes: []string{h.cards.nodes + "/card-*"},
		Mode: device.WithHooks, Hooks: device.HookPolicy{Programs: []string{h.cards.hook}},
		Without: pick(device.Protections()...), Log: log,
	})
	if err != nil {
		return err
	}
	e.cfg.Networks, e.cfg.Devices = nets, devices
	e.cfg.Without = pick(slices.Concat(containerd.Protections(), volume.Protections())...)
	return nil
}
