package p2p

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/huin/goupnp/dcps/internetgateway2"
	"github.com/libp2p/go-libp2p/core/network"
	basichost "github.com/libp2p/go-libp2p/p2p/host/basic"
	manet "github.com/multiformats/go-multiaddr/net"
)

// IPv6 needs no port mapping, but home routers let nobody in from outside. UPnP has a service for that, WANIPv6FirewallControl:1
// (UPnP Forum, 2010), which the library does not use.
const (
	pinLife   = time.Hour        // of a pinhole; a node that dies leaves it open no longer
	pinRenew  = 20 * time.Minute // tries enough before it closes
	pinCheck  = 30 * time.Second // for new addresses of the machine
	pinSearch = 5 * time.Second  // for a router
	pinAgain  = 15 * time.Minute // after no router answered
	pinBye    = 2 * time.Second  // to close the holes when the node stops
	maxPins   = 16
	maxGates  = 2 // routers
)

// pin is one address that strangers are to reach: protocol 6 is TCP and 17 is UDP.
type pin struct {
	addr     netip.AddrPort
	protocol uint16
}

// gate6 is a router's firewall.
type gate6 interface {
	GetFirewallStatusCtx(ctx context.Context) (enabled, allowed bool, err error)
	AddPinholeCtx(ctx context.Context, remoteHost string, remotePort uint16, client string, port, protocol uint16, lease uint32) (uint16, error)
	UpdatePinholeCtx(ctx context.Context, id uint16, lease uint32) error
	DeletePinholeCtx(ctx context.Context, id uint16) error
}

// pinholes keeps holes in the firewalls of routers for this node's IPv6 addresses.
type pinholes struct {
	log  *slog.Logger
	find func(ctx context.Context) ([]gate6, error) // nil: by multicast

	mu    sync.Mutex
	holes map[pin]hole
}

type hole struct {
	gate    gate6
	id      uint16
	renewed time.Time
}

// open returns the addresses that have a hole.
func (p *pinholes) open() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for one := range p.holes {
		out = append(out, fmt.Sprintf("%s/%s", one.addr, map[uint16]string{6: "tcp", 17: "udp"}[one.protocol]))
	}
	slices.Sort(out)
	return out
}

// keep keeps a hole for each address that wanted returns until ctx ends, and then closes them.
func (p *pinholes) keep(ctx context.Context, wanted func() []pin) {
	defer p.shut(context.WithoutCancel(ctx))
	var gates []gate6
	var searched time.Time
	for {
		pins := wanted()
		if len(pins) > 0 && len(gates) == 0 && (searched.IsZero() || time.Since(searched) > pinAgain) {
			searched = time.Now()
			gates = p.search(ctx)
		}
		if len(gates) > 0 && !p.update(ctx, gates, pins, time.Now()) {
			gates = nil // it may have started anew, at another port
		}
		wait(ctx, pinCheck, nil)
		if ctx.Err() != nil {
			return
		}
	}
}

// search finds routers whose firewall is on and lets programs open it.
func (p *pinholes) search(ctx context.Context) []gate6 {
	ctx, cancel := context.WithTimeout(ctx, pinSearch)
	defer cancel()
	find := p.find
	if find == nil {
		find = findGates
	}
	found, err := find(ctx)
	if err != nil {
		p.log.Debug("no router opens its IPv6 firewall", "err", err)
	}
	var gates []gate6
	for _, g := range found[:min(len(found), maxGates)] {
		enabled, allowed, err := g.GetFirewallStatusCtx(ctx)
		switch {
		case err != nil:
			p.log.Debug("a router's IPv6 firewall gives no answer", "err", err)
		case enabled && !allowed:
			p.log.Warn("the router keeps its IPv6 firewall shut", "fix", "allow pinholes by UPnP in the router, or open port "+fixedPort+" for this machine there")
		case enabled:
			gates = append(gates, g)
		}
	}
	return gates
}

func findGates(ctx context.Context) ([]gate6, error) {
	clients, errs, err := internetgateway2.NewWANIPv6FirewallControl1ClientsCtx(ctx)
	return gatesOf(clients), errors.Join(append(errs, err)...)
}

// gatesOf returns the firewalls that may be asked.
func gatesOf(clients []*internetgateway2.WANIPv6FirewallControl1) []gate6 {
	var gates []gate6
	for _, c := range clients {
		if boundGate(c) {
			gates = append(gates, c)
		}
	}
	return gates
}

// update opens, renews and closes holes. It reports false where a router failed.
func (p *pinholes) update(ctx context.Context, gates []gate6, pins []pin, now time.Time) bool {
	ctx, cancel := context.WithTimeout(ctx, pinSearch)
	defer cancel()
	well := true
	for _, one := range pins[:min(len(pins), maxPins)] {
		p.mu.Lock()
		h, known := p.holes[one]
		p.mu.Unlock()
		if known && now.Sub(h.renewed) < pinRenew {
			continue
		}
		if known && h.gate.UpdatePinholeCtx(ctx, h.id, uint32(pinLife/time.Second)) == nil {
			h.renewed = now
			p.set(one, h)
			continue
		}
		if !p.add(ctx, gates, one, now) {
			well = false
		}
	}
	for _, one := range p.gone(pins) {
		p.drop(ctx, one)
	}
	return well
}

func (p *pinholes) add(ctx context.Context, gates []gate6, one pin, now time.Time) bool {
	for _, g := range gates {
		id, err := g.AddPinholeCtx(ctx, "", 0, one.addr.Addr().String(), one.addr.Port(), one.protocol, uint32(pinLife/time.Second))
		if err == nil {
			p.set(one, hole{g, id, now})
			p.log.Info("the router lets IPv6 in", "addr", one.addr.String())
			return true
		}
		p.log.Debug("the router opens no hole", "addr", one.addr.String(), "err", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.holes, one)
	return false
}

func (p *pinholes) set(one pin, h hole) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holes == nil {
		p.holes = map[pin]hole{}
	}
	p.holes[one] = h
}

// gone returns the pins that are wanted no longer.
func (p *pinholes) gone(wanted []pin) []pin {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []pin
	for one := range p.holes {
		if !slices.Contains(wanted, one) {
			out = append(out, one)
		}
	}
	return out
}

func (p *pinholes) drop(ctx context.Context, one pin) {
	p.mu.Lock()
	h, known := p.holes[one]
	delete(p.holes, one)
	p.mu.Unlock()
	if known {
		if err := h.gate.DeletePinholeCtx(ctx, h.id); err != nil {
			p.log.Debug("a hole in the router's firewall is left to run out", "addr", one.addr.String(), "err", err)
		}
	}
}

func (p *pinholes) shut(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pinBye)
	defer cancel()
	for _, one := range p.gone(nil) {
		p.drop(ctx, one)
	}
}

// pinnable returns the IPv6 addresses and ports at which strangers could call the node if no firewall were between.
func (r *reacher) pinnable() []pin {
	r.mu.Lock()
	ifaces := r.ifaces
	r.mu.Unlock()
	resolved, err := manet.ResolveUnspecifiedAddresses(r.listening(), ifaces)
	if err != nil {
		return nil
	}
	var out []pin
	for _, addr := range resolved {
		transport, _, ok := portOf(addr)
		at := addrPort(addr)
		if !ok || circuit(addr) || !at.IsValid() || !globalIPv6(at.Addr().AsSlice()) {
			continue
		}
		one := pin{at, 6}
		if transport == "udp" {
			one.protocol = 17
		}
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

// mapPorts implements libp2p's NATManager option: the library's own manager, kept to be asked.
func (r *reacher) mapPorts(net network.Network) basichost.NATManager {
	r.ports = basichost.NewNATManager(net)
	return r.ports
}

// mapped returns whether a router was found that maps ports, and the addresses that it mapped.
func (r *reacher) mapped() (gateway bool, addrs []string) {
	if r.ports == nil || !r.ports.HasDiscoveredNAT() {
		return false, nil
	}
	for _, addr := range r.listening() {
		if outside := r.ports.GetMapping(addr); outside != nil {
			addrs = append(addrs, outside.String())
		}
	}
	return true, addrs
}
