package p2p

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/huin/goupnp/dcps/internetgateway2"
)

// firewall is a router's IPv6 firewall in memory.
type firewall struct {
	enabled, allowed bool
	holes            map[uint16]pin
	next             uint16
	updates          int
	broken           bool
}

func (f *firewall) GetFirewallStatusCtx(context.Context) (enabled, allowed bool, err error) {
	return f.enabled, f.allowed, nil
}

func (f *firewall) AddPinholeCtx(_ context.Context, _ string, _ uint16, client string, port, protocol uint16, _ uint32) (uint16, error) {
	if f.broken {
		return 0, net.ErrClosed
	}
	f.next++
	f.holes[f.next] = pin{netip.AddrPortFrom(netip.MustParseAddr(client), port), protocol}
	return f.next, nil
}

func (f *firewall) UpdatePinholeCtx(_ context.Context, id uint16, _ uint32) error {
	if _, known := f.holes[id]; !known || f.broken {
		return net.ErrClosed
	}
	f.updates++
	return nil
}

func (f *firewall) DeletePinholeCtx(_ context.Context, id uint16) error {
	delete(f.holes, id)
	return nil
}

func TestPinholesFollowTheMachinesAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &firewall{enabled: true, allowed: true, holes: map[uint16]pin{}}
		searches := 0
		p := &pinholes{log: slog.New(slog.DiscardHandler), find: func(context.Context) ([]gate6, error) {
			searches++
			return []gate6{f}, nil
		}}
		old, later := pin{netip.MustParseAddrPort("[2a00::7]:4701"), 17}, pin{netip.MustParseAddrPort("[2a00::8]:4701"), 17}
		wanted := []pin{old}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { p.keep(ctx, func() []pin { return wanted }); close(done) }()
		<-time.After(time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]string{"[2a00::7]:4701/udp"}, p.open()); diff != "" {
			t.Errorf("at first (-want +got):\n%s", diff)
		}
		<-time.After(2 * time.Hour)
		synctest.Wait()
		if f.updates < 4 || f.next != 1 || searches != 1 {
			t.Errorf("in two hours renewed %d times, made %d times, searched %d times", f.updates, f.next, searches)
		}
		wanted = []pin{later}
		<-time.After(time.Minute)
		synctest.Wait()
		if len(f.holes) != 1 || f.holes[2] != later {
			t.Errorf("the new address has %v", f.holes)
		}
		clear(f.holes) // the router lost its power
		<-time.After(time.Hour)
		synctest.Wait()
		if len(f.holes) != 1 || f.holes[3] != later {
			t.Errorf("a router that forgot has %v", f.holes)
		}
		stop()
		<-done
		if len(f.holes) != 0 {
			t.Errorf("left open: %v", f.holes)
		}
	})
}

func TestAFirewallThatNobodyMayOpenIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, f := range []*firewall{{enabled: true}, {allowed: true}, {enabled: true, allowed: true, broken: true}} {
			f.holes = map[uint16]pin{}
			p := &pinholes{log: slog.New(slog.DiscardHandler), find: func(context.Context) ([]gate6, error) { return []gate6{f}, nil }}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				p.keep(ctx, func() []pin { return []pin{{netip.MustParseAddrPort("[2a00::7]:4701"), 6}} })
				close(done)
			}()
			<-time.After(10 * time.Minute)
			stop()
			<-done
			if len(f.holes) != 0 || len(p.open()) != 0 {
				t.Errorf("%+v: %v", f, p.open())
			}
		}
	})
}

func TestOnlyGlobalIPv6AddressesArePinned(t *testing.T) {
	for text, want := range map[string]bool{
		"2a00:1450::7": true, "fd00::7": false, "fe80::7": false, "::1": false, "5.6.7.8": false, "2001:db8::1": false, "ff02::1": false,
	} {
		if got := globalIPv6(net.ParseIP(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// gatesAt returns the firewalls of the router that a description is of.
func gatesAt(ctx context.Context, description string) ([]gate6, error) {
	at, err := url.Parse(description)
	if err != nil {
		return nil, err
	}
	clients, err := internetgateway2.NewWANIPv6FirewallControl1ClientsByURLCtx(ctx, at)
	return gatesOf(clients), err
}

// Pins are pinholes of one router, for tests.
type Pins struct {
	p     *pinholes
	gates []gate6
}

// NewPins makes pinholes in the firewall of the router at a URL.
func NewPins(description string) *Pins {
	find := func(ctx context.Context) ([]gate6, error) { return gatesAt(ctx, description) }
	return &Pins{p: &pinholes{log: slog.New(slog.DiscardHandler), find: find}}
}

// Update opens holes for TCP and UDP at an address, and reports whether there is a router that does.
func (p *Pins) Update(ctx context.Context, addr string) bool {
	if p.gates == nil {
		p.gates = p.p.search(ctx)
	}
	at := netip.MustParseAddrPort(addr)
	return p.p.update(ctx, p.gates, []pin{{at, 6}, {at, 17}}, time.Now())
}

// Age makes the holes so old that they are renewed.
func (p *Pins) Age() {
	for one, h := range p.p.holes {
		h.renewed = h.renewed.Add(-pinRenew)
		p.p.holes[one] = h
	}
}

// Close closes the holes.
func (p *Pins) Close(ctx context.Context) { p.p.shut(ctx) }
