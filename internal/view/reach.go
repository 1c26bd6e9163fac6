package view

import (
	"strconv"
	"strings"
)

// Reach is how a program can be called from outside, as far as it knows.
type Reach struct {
	Kind       string      `json:"kind" doc:"direct, punched, relayed, loopback or unknown"`
	NAT        string      `json:"nat" doc:"what translates its addresses: none, port-preserving, fixed, symmetric or unknown"`
	Private    bool        `json:"private,omitempty" doc:"others tried to call it and could not"`
	Client     bool        `json:"client,omitempty" doc:"nobody has to call it"`
	Transports []Transport `json:"transports,omitempty"`
	Gateway    bool        `json:"gateway,omitempty" doc:"a router was found that maps ports"`
	Mapped     []string    `json:"mapped,omitempty" doc:"addresses that the router mapped"`
	Pinholes   []string    `json:"pinholes,omitempty" doc:"IPv6 addresses that the router's firewall lets in"`
	Observed   []Observed  `json:"observed,omitempty" doc:"where others see it"`
	Relays     []string    `json:"relays,omitempty" doc:"keys of relays that hold a place for it"`
	Serves     string      `json:"serves,omitempty" doc:"what it relays for others now: small, bulk or none"`
	Punched    int         `json:"punched" doc:"holes punched since it started"`
	Failed     int         `json:"punch_failed" doc:"peers for which none could be"`
	Found      string      `json:"found" doc:"one sentence about it"`
	Fix        string      `json:"fix,omitempty" doc:"what would make it better"`
}

// Transport is whether others could call one of a program's transports.
type Transport struct {
	Name  string `json:"name"`
	State string `json:"state" doc:"reachable, unreachable or unknown"`
}

// Observed is an address at which others see a program.
type Observed struct {
	Transport string `json:"transport"`
	Addr      string `json:"addr"`
	Observers int    `json:"observers" doc:"at different addresses"`
}

// Ping is how a peer was reached at a moment.
type Ping struct {
	Key   string  `json:"key"`
	Path  string  `json:"path" doc:"direct, punched, relayed or loopback"`
	RTTMs float64 `json:"rtt_ms"`
	Addr  string  `json:"addr" doc:"the far end of the connection"`
	Relay string  `json:"relay,omitempty" doc:"the relay's key"`
	Small bool    `json:"small,omitempty" doc:"the relay is a small one, which carries no shells, ports or files"`
}

// Explained returns the reach with a sentence about it, and what would make it better where something would.
func (r Reach) Explained() Reach {
	r.Found, r.Fix = r.words()
	return r
}

const (
	forwardPort = "forward port 4701, TCP and UDP, to this machine in the router, or switch UPnP on there"
	bulkRelay   = "let a program of yours that is reachable run a bulk relay for this one, with its key in reach.relay_for, and name it here in reach.relays"
)

func (r Reach) words() (found, fix string) {
	switch r.Kind {
	case "loopback":
		return "a lab stays on this machine: nobody calls from outside, and nobody has to", ""
	case "direct":
		return r.direct(), ""
	}
	if r.Client {
		return r.client()
	}
	switch {
	case r.Kind == "punched":
		return r.router() + "; others meet it through a relay and then connect directly", "nothing has to be done; to be called at once, " + forwardPort
	case r.Kind == "relayed" && r.NAT == "symmetric":
		return r.router() + ", so no hole can be punched and everything goes through a relay: bids and receipts work, shells and files do not",
			forwardPort + "; where the provider translates addresses itself (CGNAT), use IPv6, or " + bulkRelay
	case r.Kind == "relayed":
		return r.router() + ", and everything goes through a relay: bids and receipts work, shells and files do not", forwardPort + ", or " + bulkRelay
	case r.Private:
		return "others tried to call it and could not, and no relay has a place for it: nobody can rent it", forwardPort + ", or name a relay in reach.relays"
	}
	return "not known yet: others are being asked to call it", "wait a minute; if it stays so, no peer that could try is connected: `status` shows the network"
}

func (r Reach) direct() string {
	switch {
	case len(r.Mapped) > 0:
		return "others can call it: the router maps a port for it"
	case len(r.Pinholes) > 0:
		return "others can call it by IPv6: the router's firewall lets them in"
	case r.NAT == "none":
		return "others can call it: it has a public address"
	}
	return "others can call it"
}

// router describes what is in the way.
func (r Reach) router() string {
	switch r.NAT {
	case "none":
		return "it has a public address, but a firewall lets nobody in"
	case "port-preserving", "fixed":
		return "it is behind a router that shows it to all at one port (" + r.NAT + ")"
	case "symmetric":
		return "it is behind a router that shows it to everybody at another port (symmetric)"
	}
	return "it is behind a router"
}

// client is about a program that calls others.
func (r Reach) client() (found, fix string) {
	switch {
	case r.NAT == "symmetric":
		return r.router() + ": rigs behind such routers too are reached through relays only, which carry no shells and no files",
			"for these, use IPv6 or another line, or choose offers with reach=direct"
	case r.Failed > r.Punched:
		return r.router() + ", and holes could be punched to " + strconv.Itoa(r.Punched) + " of " + strconv.Itoa(r.Punched+r.Failed) + " rigs behind routers",
			"choose offers with reach=direct, or use IPv6"
	case r.NAT == "unknown" && !r.Private:
		return "it calls rigs and is called by nobody; what is between it and them is not known yet", ""
	}
	return r.router() + ", through which it calls rigs, those behind routers too", ""
}

// State sums a transport list up: "quic on IPv4 reachable, tcp on IPv4 unknown".
func (r Reach) State() string {
	var parts []string
	for _, t := range r.Transports {
		parts = append(parts, t.Name+" "+t.State)
	}
	return strings.Join(parts, ", ")
}
