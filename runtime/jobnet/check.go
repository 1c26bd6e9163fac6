//go:build linux

package jobnet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// Names of what Check looks at.
const (
	CheckTools    = "network-tools"    // nft is there and works
	CheckRules    = "network-rules"    // the table is as it should be
	CheckRoute    = "network-route"    // the rig has a way to the internet
	CheckForward  = "network-forward"  // that way can forward
	CheckFirewall = "network-firewall" // no other firewall refuses jobs' packets; one entry for each that does
	CheckPool     = "network-pool"     // jobs' addresses are nobody else's
	CheckMonth    = "network-month"    // the month's traffic is not used up
)

// Check looks at what on this machine stands in the way of jobs' networks, and says what to do. It changes nothing. The last
// of the names, CheckMonth, tells what the owner's own cap does, not how the machine is.
func (n *Networks) Check(ctx context.Context) []runtime.Protection {
	var found []runtime.Protection
	err := n.locked(ctx, func(r *rig) error {
		if err := n.count(r); err != nil {
			return err
		}
		h, err := r.survey(n.prefix)
		if err != nil {
			return err
		}
		rules, err := r.program(ctx, "", "nft", "-j", "list", "ruleset")
		if err != nil {
			found = append(found, broken(CheckTools, err.Error(), "apt install nftables"))
		} else {
			found = append(found, holds(CheckTools, "nft lists the rules"), n.checkRules(ctx, r))
			found = append(found, n.checkFirewalls(ctx, r, h, []byte(rules))...)
		}
		found = append(found, n.checkRoute(h), n.checkForward(r, h), n.checkPool(h), n.checkMonth())
		return nil
	})
	if err != nil {
		found = append(found, broken(CheckTools, err.Error(), "run as root on Linux with nftables"))
	}
	return found
}

func holds(name, seen string) runtime.Protection {
	return runtime.Protection{Name: name, Holds: true, Found: seen}
}

func broken(name, seen, fix string) runtime.Protection {
	return runtime.Protection{Name: name, Found: seen, Fix: fix}
}

func (n *Networks) checkRules(ctx context.Context, r *rig) runtime.Protection {
	ok, err := n.intact(ctx, r)
	switch {
	case err != nil:
		return broken(CheckRules, err.Error(), "nft list table inet "+n.cfg.Name)
	case n.state.Listing == "":
		return broken(CheckRules, "the table inet "+n.cfg.Name+" is not installed yet", "start haggled")
	case !ok:
		return broken(CheckRules, "the table inet "+n.cfg.Name+" was changed by another program",
			"haggled puts it back; find out who changes it with: nft monitor")
	}
	return holds(CheckRules, "the table inet "+n.cfg.Name+" is as haggled wrote it")
}

func (n *Networks) checkFirewalls(ctx context.Context, r *rig, h house, rules []byte) []runtime.Protection {
	uplink := "eth0"
	if len(h.uplinks) > 0 {
		uplink = h.uplinks[0]
	}
	rs, err := parseRuleset(rules)
	if err != nil {
		return []runtime.Protection{broken(CheckFirewall, err.Error(), "nft -j list ruleset")}
	}
	list := rs.obstacles(n.cfg.Name, n.prefix, uplink)
	save := "iptables-legacy-save"
	if _, err := findProgram(save); err != nil && rs.chain("ip", "filter", "FORWARD") == nil {
		save = "iptables-save" // It shows the old filter, unless it is a face of nft: then its chains were in nft's list.
	}
	if text, err := r.program(ctx, "", save); err == nil {
		if o, stands := legacyObstacle(text, n.prefix); stands {
			list = append(list, o)
		}
	}
	var found []runtime.Protection
	for _, o := range list {
		found = append(found, broken(CheckFirewall,
			fmt.Sprintf("%s refuses what jobs send or receive: chain %s of table %s %s", o.by(), o.chain, o.family, o.table),
			o.remedy(n.prefix)))
	}
	if found == nil {
		return []runtime.Protection{holds(CheckFirewall, "no other firewall refuses jobs' packets")}
	}
	return found
}

func (n *Networks) checkRoute(h house) runtime.Protection {
	if len(h.uplinks) == 0 {
		return broken(CheckRoute, "the rig has no default route, so jobs reach nothing", "ip route add default via ROUTER")
	}
	return holds(CheckRoute, "jobs go out by "+strings.Join(h.uplinks, ", "))
}

func (n *Networks) checkForward(r *rig, h house) runtime.Protection {
	var problem error
	state := "forwarding is on"
	err := inside(r.ns, func() error {
		for _, up := range h.uplinks {
			on, err := sysctlOn(forwardingOf(up))
			if err != nil {
				return err
			}
			if on {
				continue
			}
			state = "forwarding is off until the first job; then " + strings.Join(h.uplinks, ", ") + " forwards for jobs only"
			problem = errors.Join(problem, unix.Access(sysctlDir+forwardingOf(up), unix.W_OK))
		}
		return nil
	})
	if err = errors.Join(err, problem); err != nil {
		return broken(CheckForward, fmt.Sprintf("forwarding cannot be switched on: %v", err), "sysctl -w net.ipv4.ip_forward=1")
	}
	return holds(CheckForward, state)
}

func (n *Networks) checkPool(h house) runtime.Protection {
	for _, p := range h.taken {
		// What lies above the pool and is larger is no harm: a more specific route wins for the few addresses of jobs.
		inside := p.Bits() >= n.cfg.Pool.Bits() && n.cfg.Pool.Contains(p.Addr())
		around := p.Bits() < n.cfg.Pool.Bits() && p.Bits() >= minPoolLen && p.Contains(n.cfg.Pool.Addr())
		if (inside && p.Bits() < 31) || around {
			return broken(CheckPool, fmt.Sprintf("jobs' addresses %s are in use here: %s", n.cfg.Pool, p),
				"give jobs another range in haggled's configuration, such as 10.214.97.0/24")
		}
	}
	return holds(CheckPool, fmt.Sprintf("jobs' addresses %s are nobody else's", n.cfg.Pool))
}

func (n *Networks) checkMonth() runtime.Protection {
	most := n.cfg.Profile.MonthlyBytes
	if most == 0 || !n.has(MonthlyCap) {
		return holds(CheckMonth,
			fmt.Sprintf("jobs have sent and received %d bytes in %s; there is no cap", n.state.MonthBytes, n.state.Month))
	}
	if n.table().spent() {
		return broken(CheckMonth,
			fmt.Sprintf("the traffic of %s is used up: %d of %d bytes; jobs reach nothing until the month turns",
				n.state.Month, n.state.MonthBytes, most),
			"raise the monthly cap in haggled's configuration, or wait")
	}
	return holds(CheckMonth, fmt.Sprintf("jobs have sent and received %d of %d bytes in %s", n.state.MonthBytes, most, n.state.Month))
}
