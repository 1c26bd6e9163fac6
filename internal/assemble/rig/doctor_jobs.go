//go:build linux

package rig

import (
	"context"
	"fmt"
	"strings"
	"time"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/market"
	"haggle/runtime"
)

// jobNetworks looks at what stands in the way of the jobs' network, one finding for each thing.
func jobNetworks(ctx context.Context, cfg config.Rig) []Finding {
	if cfg.JobNetwork() == config.NetworkNone {
		return []Finding{{"jobs' network", LevelNote, "none: jobs reach nothing but themselves", `set jobs.network = "internet" to let them`}}
	}
	networks, err := openNetworks(cfg, nil)
	if err != nil {
		return []Finding{{"jobs' network", LevelBad, err.Error(), "correct the table [line] of the configuration"}}
	}
	findings := []Finding{tool(ctx, "nft", "nft", "apt install nftables", "--version")}
	seen := networks.Check(ctx)
	held := 0
	for _, p := range seen {
		if p.Holds {
			held++
			continue
		}
		findings = append(findings, Finding{p.Name, LevelNote, market.Printable(p.Found), p.Fix})
	}
	if held == len(seen) {
		findings = append(findings, Finding{"jobs' network", LevelGood, "the internet, and nothing of the house", ""})
	}
	return findings
}

// isolation asks the running rig what it has tried out.
func isolation(ctx context.Context, cfg config.Rig) Finding {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	s, err := api.DialRig(cfg.Paths.Socket).Status(ctx)
	switch {
	case err != nil:
		return Finding{"isolation", LevelNote, "not known before the rig runs: it tries its protections out at each start", "`haggled serve`, then `haggled doctor` again"}
	case len(s.Weak) > 0:
		return Finding{
			"isolation", LevelNote, fmt.Sprintf("%s: %s does not hold", s.Isolation, strings.Join(s.Weak, ", ")),
			"`haggled status` says for each what mends it",
		}
	case s.Isolation != runtime.IsolationUserns:
		return Finding{"isolation", LevelNote, s.Isolation + ": nothing was tried out yet", "put the program haggle beside haggled, as `make install` does; the rig runs it inside a job"}
	}
	return Finding{"isolation", LevelGood, fmt.Sprintf("%s: %d protections were tried out and hold", s.Isolation, len(s.Protections)), ""}
}
