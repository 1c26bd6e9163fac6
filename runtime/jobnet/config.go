//go:build linux

package jobnet

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Bounds and defaults.
const (
	DefaultName              = "haggle"
	DefaultShareUpPermille   = 800
	DefaultShareDownPermille = 900
	DefaultNewConns          = 20   // a second
	DefaultNewConnsBurst     = 200  // at once
	DefaultMaxConns          = 1024 // held

	mailPort   = 25
	maxReject  = 4096
	maxPorts   = 256
	minPoolLen = 16 // /16: more addresses than any rig has jobs
	maxRate    = 1 << 50
)

// defaultPool is a corner of 10.0.0.0/8 that no common program hands out by itself. Docker takes 172.17.0.0/16 and up and
// 192.168.0.0/16, libvirt 192.168.122.0/24, routers 192.168.0.0/24 to 192.168.2.0/24, 10.0.0.0/24 and 10.1.1.0/24, Kubernetes
// 10.42, 10.43, 10.96 and 10.244, podman 10.88, WireGuard guides 10.6 to 10.8, Tailscale 100.64.0.0/10, and proxies with fake
// answers 198.18.0.0/15. It is small on purpose: the rig routes only the /31 of each job there is, so even inside a larger
// network of the same number nothing but these few addresses is shadowed.
func defaultPool() netip.Prefix { return netip.MustParsePrefix("10.213.97.0/24") }

// defaultResolvers are of two operators, so that one of them may fail.
func defaultResolvers() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("9.9.9.9"), netip.MustParseAddr("1.1.1.1")}
}

// Config says where the networks are and what jobs may do. The zero value of every field but Dir is its default.
type Config struct {
	// Netns is the path of the network namespace that stands for the rig. "" is the process's own.
	Netns string
	// Name is the name of the table, [a-z][a-z0-9_]{0,31}, and shortened the beginning of every interface's name. Several
	// rigs on one machine have a name each.
	Name string
	// Pool is where jobs' addresses come from, two for each job: an IPv4 prefix of 16 to 30 bits.
	Pool netip.Prefix
	// Resolvers are the name servers that jobs are told. They must be addresses that jobs can reach.
	Resolvers []netip.Addr
	Profile   Profile
	// Dir keeps what must outlive the process: counters and who has which address. It is made when missing.
	Dir string
	// Clock tells in which month we are; its location's calendar counts. nil is the system's.
	Clock func() time.Time
	// Without names protections that are left out, for tests that prove that they matter; nothing else sets it.
	Without []string
	// Log is told when rules had to be put back. nil discards.
	Log *slog.Logger
}

// Profile is what a household lets jobs do with its line.
type Profile struct {
	// LineUp and LineDown are what the household's line carries, in bits a second. 0 means unknown: then jobs are bounded
	// by their own limits only.
	LineUp, LineDown int64
	// ShareUpPermille and ShareDownPermille are the part of the line that all jobs together may take, 1 to 1000.
	ShareUpPermille, ShareDownPermille int64
	// NewConnsPerSecond, NewConnsBurst and MaxConns bound each job's connections: how many it opens and how many it has.
	// A packet that nothing answered yet counts as one that opens.
	NewConnsPerSecond, NewConnsBurst, MaxConns int64
	// BlockedPorts are TCP and UDP ports that jobs cannot send to. nil means mail's, 25; empty means none.
	BlockedPorts []uint16
	// MonthlyBytes bounds what all jobs send and receive in a calendar month. 0 means no bound.
	MonthlyBytes int64
	// Reject is more that jobs must not reach.
	Reject []netip.Prefix
}

// Protections that Config.Without can name.
const (
	// ReservedRanges: private, shared, link-local, metadata, multicast and other addresses that are not the internet.
	ReservedRanges = "reserved-ranges"
	// ConnectedSubnets: networks that the rig is in, even when their addresses are public.
	ConnectedSubnets = "connected-subnets"
	// OwnerRejects: what Profile.Reject and Avoid name.
	OwnerRejects = "owner-rejects"
	// RigItself: the rig, on any of its addresses.
	RigItself = "rig-itself"
	// SilentARP: the rig tells a job no address but the gateway's.
	SilentARP = "silent-arp"
	// OwnAddress: a job sends from its own address only.
	OwnAddress = "own-address"
	// NoIPv6: jobs have IPv4 only, since all rules are about IPv4.
	NoIPv6 = "no-ipv6"
	// NothingInbound: only answers come to a job; nothing new from outside, from the rig or from another job.
	NothingInbound = "nothing-inbound"
	// NothingInherited: the connections of a job end with it, also when its address is used again.
	NothingInherited = "nothing-inherited"
	// BlockedPorts: Profile.BlockedPorts.
	BlockedPorts = "blocked-ports"
	// ConnectionRate: Profile.NewConnsPerSecond.
	ConnectionRate = "connection-rate"
	// ConnectionCount: Profile.MaxConns.
	ConnectionCount = "connection-count"
	// Bandwidth: each job's part of the line.
	Bandwidth = "bandwidth"
	// LowPriority: what jobs send is marked as less urgent than the household's.
	LowPriority = "low-priority"
	// MonthlyCap: Profile.MonthlyBytes.
	MonthlyCap = "monthly-cap"
	// RouteGuard: a machine that did not route before routes for jobs only.
	RouteGuard = "route-guard"
	// Repair: rules that another program removed or changed are put back.
	Repair = "repair"
)

// Protections lists the names that Config.Without knows.
func Protections() []string {
	return []string{
		ReservedRanges, ConnectedSubnets, OwnerRejects, RigItself, SilentARP, OwnAddress, NoIPv6, NothingInbound, NothingInherited,
		BlockedPorts, ConnectionRate, ConnectionCount, Bandwidth, LowPriority, MonthlyCap, RouteGuard, Repair,
	}
}

// complete checks the configuration and fills in its defaults.
func (c *Config) complete() error {
	if c.Name == "" {
		c.Name = DefaultName
	}
	if !regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`).MatchString(c.Name) {
		return fmt.Errorf("name %.80q is not [a-z][a-z0-9_]{0,31}", c.Name)
	}
	if c.Dir == "" {
		return fmt.Errorf("no folder for the counters")
	}
	if !c.Pool.IsValid() {
		c.Pool = defaultPool()
	}
	if !c.Pool.Addr().Is4() || c.Pool.Bits() < minPoolLen || c.Pool.Bits() > 30 || c.Pool != c.Pool.Masked() {
		return fmt.Errorf("pool %s is no IPv4 prefix of %d to 30 bits", c.Pool, minPoolLen)
	}
	if err := c.Profile.complete(); err != nil {
		return err
	}
	if c.Resolvers == nil {
		c.Resolvers = defaultResolvers()
	}
	for _, a := range c.Resolvers {
		if !a.Is4() || covered(a, ipv4Only(slices.Concat(reservedRanges(), c.Profile.Reject))) {
			return fmt.Errorf("resolver %s is not where a job could ask it", a)
		}
	}
	for _, w := range c.Without {
		if !slices.Contains(Protections(), w) {
			return fmt.Errorf("there is no protection %.80q", w)
		}
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

func (p *Profile) complete() error {
	for _, f := range []struct {
		name          string
		v             *int64
		def, min, max int64
	}{
		{"line up", &p.LineUp, 0, 8000, maxRate},
		{"line down", &p.LineDown, 0, 8000, maxRate},
		{"share up", &p.ShareUpPermille, DefaultShareUpPermille, 1, 1000},
		{"share down", &p.ShareDownPermille, DefaultShareDownPermille, 1, 1000},
		{"new connections a second", &p.NewConnsPerSecond, DefaultNewConns, 1, 1 << 20},
		{"new connections at once", &p.NewConnsBurst, DefaultNewConnsBurst, 1, 1 << 20},
		{"connections", &p.MaxConns, DefaultMaxConns, 1, 1 << 20},
		{"bytes a month", &p.MonthlyBytes, 0, 1, 1 << 60},
	} {
		if *f.v == 0 {
			*f.v = f.def
		} else if *f.v < f.min || *f.v > f.max {
			return fmt.Errorf("%s: %d is not in %d..%d", f.name, *f.v, f.min, f.max)
		}
	}
	if p.BlockedPorts == nil {
		p.BlockedPorts = []uint16{mailPort}
	}
	if len(p.BlockedPorts) > maxPorts || len(p.Reject) > maxReject {
		return fmt.Errorf("%d blocked ports and %d rejected networks: at most %d and %d",
			len(p.BlockedPorts), len(p.Reject), maxPorts, maxReject)
	}
	for _, r := range p.Reject {
		if !r.IsValid() {
			return fmt.Errorf("a rejected network is no prefix")
		}
	}
	return nil
}

// interfacePrefix is how the names of a rig's interfaces begin. With up to five digits they fit into the 15 bytes of an
// interface's name, and the dash keeps "haggle" from matching the interfaces of "haggle2".
func interfacePrefix(name string) string {
	short := strings.ReplaceAll(name, "_", "")
	if len(short) > 9 || short != name {
		h := fnv.New32a()
		_, _ = h.Write([]byte(name)) // a hash takes everything
		short = fmt.Sprintf("%.4s%05x", short, h.Sum32()&0xfffff)
	}
	return short + "-"
}
