package config

import (
	"fmt"
	"regexp"
)

// Reach is what a program does to be reached.
type Reach struct {
	MapPort  string   // Yes or No; of rigs
	IPv6     string   // Yes or No
	Assume   string   // ReachPublic, ReachPrivate, or "" where other peers are asked; of rigs
	Relay    string   // RelaySmall, RelayBulk or RelayNone; of rigs
	RelayFor []string // keys of those for whom a bulk relay works; of rigs
	Relays   []string // multiaddrs that end in /p2p/ID
	Announce []string // multiaddrs; of rigs
	Private  string   // PrivateTold, PrivateKept, or "" where it depends on the network
}

// Yes and No are the values of a knob that is one or the other.
const (
	Yes = "yes"
	No  = "no"
)

// What a rig's owner knows of its reach.
const (
	ReachPublic  = "public"
	ReachPrivate = "private"
)

// What a rig that is reachable from outside relays for others.
const (
	RelaySmall = "small" // for everybody, within limits
	RelayBulk  = "bulk"  // for the keys of reach.relay_for, without limit
	RelayNone  = "none"
)

// What peers are told of addresses of private networks.
const (
	PrivateTold = "told"
	PrivateKept = "kept"
)

// peerForm is how the key of a program looks: the multihash of an ed25519 key in base58. It is compiled once and never written to.
var peerForm = regexp.MustCompile(`^12D3KooW[1-9A-HJ-NP-Za-km-z]{44}$`)

func checkPeer(s string) error {
	if !peerForm.MatchString(s) {
		return fmt.Errorf("holds %.80q, which is not a key such as 12D3KooW… that `status` shows", s)
	}
	return nil
}

// reachTable has the knobs of being reached; client says that the program is an agent, which nobody has to call.
func reachTable[C any](part func(*C) *Reach, client bool) []spec[C] {
	both := []spec[C]{
		{
			Knob: Knob{
				Name: "reach.ipv6", Kind: KindText, Default: Yes,
				Doc: "Whether IPv6 is used, where listen names no addresses: yes or no.",
			},
			field: func(c *C) any { return &part(c).IPv6 }, check: oneOf(Yes, No),
		},
		{
			Knob: Knob{
				Name: "reach.relays", Kind: KindList,
				Doc: "Addresses of relays that are used before others, each ending in /p2p/ID: a bulk relay of your own, for one.",
			},
			field: func(c *C) any { return &part(c).Relays }, check: checkBootstrap,
		},
		{
			Knob: Knob{
				Name: "reach.private", Kind: KindText,
				Doc: "Whether peers are told your addresses of private networks: told or kept. Not set: kept on main, told on other networks.",
			},
			field: func(c *C) any { return &part(c).Private }, check: orNothing(oneOf(PrivateTold, PrivateKept)),
		},
	}
	if client {
		return both
	}
	return append(both, rigReachTable(part)...)
}

// rigReachTable has the knobs of a program that others call.
func rigReachTable[C any](part func(*C) *Reach) []spec[C] {
	return []spec[C]{
		{
			Knob: Knob{
				Name: "reach.map_port", Kind: KindText, Default: Yes,
				Doc: "Whether your router is asked to let others in, by UPnP, NAT-PMP or an IPv6 pinhole: yes or no.",
			},
			field: func(c *C) any { return &part(c).MapPort }, check: oneOf(Yes, No),
		},
		{
			Knob: Knob{
				Name: "reach.assume", Kind: KindText,
				Doc: "What you know of the rig's reach: public, where you opened a port yourself, or private. Not set: other peers are asked.",
			},
			field: func(c *C) any { return &part(c).Assume }, check: orNothing(oneOf(ReachPublic, ReachPrivate)),
		},
		{
			Knob: Knob{
				Name: "reach.announce", Kind: KindList,
				Doc: "Addresses that others are told beside those that the rig finds out, such as /ip4/203.0.113.7/tcp/4701 that you forward to it.",
			},
			field: func(c *C) any { return &part(c).Announce }, check: checkAddress,
		},
		{
			Knob: Knob{
				Name: "reach.relay", Kind: KindText, Default: RelaySmall,
				Doc: "What a rig that can be called relays for those that cannot: small, for all, 4 MiB each way in 10 minutes; bulk, for relay_for without limit; or none.",
			},
			field: func(c *C) any { return &part(c).Relay }, check: oneOf(RelaySmall, RelayBulk, RelayNone),
		},
		{
			Knob: Knob{
				Name: "reach.relay_for", Kind: KindList,
				Doc: "Keys of the programs for which a bulk relay works; whoever calls them may use it too.",
			},
			field: func(c *C) any { return &part(c).RelayFor }, check: checkPeer,
		},
	}
}

// check reports knobs that contradict each other, by name.
func (r Reach) check() (knob, problem, hint string) {
	switch {
	case r.Relay == RelayBulk && len(r.RelayFor) == 0:
		return "reach.relay", "is bulk, for nobody", "name the keys of your rigs behind routers in reach.relay_for; each one's `haggled status` shows its own"
	case r.Relay != RelayBulk && len(r.RelayFor) > 0:
		return "reach.relay_for", "names keys, but no bulk relay is run", `set reach.relay = "bulk", or take the keys out`
	}
	return "", "", ""
}
