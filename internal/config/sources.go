package config

import (
	"fmt"
	"regexp"
)

// Sources is where a program looks for its first peers, beside the knob bootstrap.
type Sources struct {
	LAN             string   // Yes or No
	Remember        string   // Yes or No
	DNS             []string // names with dnsaddr records
	Public          string   // Yes, No, or "" where it depends on the network: see AskPublic
	PublicBootstrap []string // multiaddrs that end in /p2p/ID
	Creator         string   // key of the private network's creator; "" on a public network
}

// AskPublic reports whether the public DHT of IPFS is asked on a network.
func (s Sources) AskPublic(network string) bool {
	return s.Public == Yes || s.Public == "" && network == "main"
}

// hostForm is how a name looks at which records stand. It is compiled once and never written to.
var hostForm = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)

func checkHost(s string) error {
	if len(s) > 240 || !hostForm.MatchString(s) {
		return fmt.Errorf("holds %.80q, which is not a name such as haggle.example.org", s)
	}
	return nil
}

// sourcesTable has the knobs of finding first peers, and the one that makes a network private.
func sourcesTable[C any](part func(*C) *Sources, _ bool) []spec[C] {
	return []spec[C]{
		{
			Knob: Knob{
				Name: "sources.lan", Kind: KindText, Default: Yes,
				Doc: "Whether others are looked for on the local network, and answered there (multicast DNS): yes or no. Labs never do.",
			},
			field: func(c *C) any { return &part(c).LAN }, check: oneOf(Yes, No),
		},
		{
			Knob: Knob{
				Name: "sources.remember", Kind: KindText, Default: Yes,
				Doc: "Whether peers are kept for the next start, in the file peers-NETWORK beside the database: yes or no.",
			},
			field: func(c *C) any { return &part(c).Remember }, check: oneOf(Yes, No),
		},
		{
			Knob: Knob{
				Name: "sources.dns", Kind: KindList,
				Doc: "Names at which addresses of members stand, as TXT records of _dnsaddr.NAME.",
			},
			field: func(c *C) any { return &part(c).DNS }, check: checkHost,
		},
		{
			Knob: Knob{
				Name: "sources.public", Kind: KindText,
				Doc: "Whether members are looked for in the public DHT of IPFS while few are known, and a rig that can be called stands there: yes or no. Not set: yes on main, no on other networks.",
			},
			field: func(c *C) any { return &part(c).Public }, check: orNothing(oneOf(Yes, No)),
		},
		{
			Knob: Knob{
				Name: "sources.public_bootstrap", Kind: KindList,
				Doc: "Addresses of members of the public DHT that are asked first, each ending in /p2p/ID. None: those that IPFS itself uses.",
			},
			field: func(c *C) any { return &part(c).PublicBootstrap }, check: checkBootstrap,
		},
		{
			Knob: Knob{
				Name: "members.creator", Kind: KindText,
				Doc: "The key of whoever made the private network, and says who belongs to it. `network join` sets it; none: everybody does.",
			},
			field: func(c *C) any { return &part(c).Creator }, check: orNothing(checkPeer),
		},
	}
}
