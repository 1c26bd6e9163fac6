package p2p_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"haggle/market"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

// open is a network that is neither a lab nor main, on loopback all the same.
func open(t *testing.T, change func(*p2p.Config)) *p2p.Node {
	t.Helper()
	cfg := p2p.Config{
		Key: p2ptest.Key(t), Network: "open", Mode: p2p.ModeServer, Listen: []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"},
		Reach: p2p.Reach{NoPortMap: true},
	}
	change(&cfg)
	return p2ptest.Start(t, cfg)
}

func report(n *p2p.Node, source p2p.Source) p2p.SourceReport {
	for _, r := range n.Sources() {
		if r.Source == source {
			return r
		}
	}
	return p2p.SourceReport{}
}

func TestAPeerOfAnEarlierLifeIsCalledFirst(t *testing.T) {
	known := open(t, func(*p2p.Config) {})
	first := open(t, func(c *p2p.Config) { c.Bootstrap = known.Addrs() })
	if err := first.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	var remembered []string
	until(t, "the peer is worth to be kept", func() bool { remembered = first.Acquainted(); return len(remembered) > 0 })
	if !strings.HasSuffix(remembered[0], "/p2p/"+known.ID().String()) {
		t.Errorf("kept are %q", remembered)
	}
	second := open(t, func(c *p2p.Config) { c.Sources.Remembered = append(remembered, "nonsense", "/ip4/127.0.0.1/tcp/1") })
	if err := second.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	until(t, "the report says so", func() bool {
		r := report(second, p2p.SourceRemembered)
		return r.On && r.Connected == 1 && r.Found == 1 && r.Reason == ""
	})
	if r := report(second, p2p.SourceList); r.On || r.Reason == "" {
		t.Errorf("of the empty list it says %+v", r)
	}
}

// nameserver answers TXT questions on loopback and returns a resolver that asks it.
func nameserver(t *testing.T, records map[string][]string) (*net.Resolver, *atomic.Int64) {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	asked := new(atomic.Int64)
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			asked.Add(1)
			m.Header.Response, m.Header.Authoritative, m.Additionals = true, true, nil
			q := m.Questions[0]
			texts, known := records[q.Name.String()]
			if !known {
				m.Header.RCode = dnsmessage.RCodeNameError
			}
			for _, text := range texts {
				if q.Type != dnsmessage.TypeTXT {
					continue
				}
				m.Answers = append(m.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 60},
					Body:   &dnsmessage.TXTResource{TXT: []string{text}},
				})
			}
			answer, err := m.Pack()
			if err != nil {
				continue
			}
			_, _ = conn.WriteTo(answer, from) // who asked asks again
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}, asked
}

func TestFirstPeersStandInTheRecordsOfAName(t *testing.T) {
	known := open(t, func(*p2p.Config) {})
	var texts []string
	for _, addr := range known.Addrs() {
		texts = append(texts, "dnsaddr="+addr)
	}
	resolver, _ := nameserver(t, map[string][]string{
		"_dnsaddr.first.test.":  {"dnsaddr=/dnsaddr/second.test", "v=spf1 -all", "dnsaddr=nonsense"},
		"_dnsaddr.second.test.": texts,
	})
	n := open(t, func(c *p2p.Config) { c.Sources.DNS, c.Sources.Resolver = []string{"first.test"}, resolver })
	if err := n.Ready(soon(t)); err != nil {
		t.Fatal(err)
	}
	until(t, "the report says so", func() bool { return report(n, p2p.SourceDNS).Connected == 1 })
}

func TestRecordsThatAreHostileCostLittle(t *testing.T) {
	var many []string
	for i := range 5 {
		many = append(many, fmt.Sprintf("dnsaddr=/dnsaddr/loop%d.test", i), "dnsaddr=/ip4/127.0.0.1/tcp/9/p2p/"+market.KeyOf(p2ptest.Key(t)).String())
	}
	records := map[string][]string{"_dnsaddr.loop.test.": many}
	for i := range 5 {
		records[fmt.Sprintf("_dnsaddr.loop%d.test.", i)] = []string{"dnsaddr=/dnsaddr/loop.test", "dnsaddr=/dnsaddr/loop0.test"}
	}
	resolver, asked := nameserver(t, records)
	n := open(t, func(c *p2p.Config) { c.Sources.DNS, c.Sources.Resolver = []string{"loop.test"}, resolver })
	until(t, "the name was asked", func() bool { return report(n, p2p.SourceDNS).Found > 0 })
	if questions := asked.Load(); questions > 64 {
		t.Errorf("the records led to %d questions", questions)
	}
	if r := report(n, p2p.SourceDNS); r.Connected != 0 || r.Reason == "" {
		t.Errorf("the report is %+v", r)
	}
}

func TestANameThatIsNotThereIsTold(t *testing.T) {
	resolver, _ := nameserver(t, nil)
	n := open(t, func(c *p2p.Config) { c.Sources.DNS, c.Sources.Resolver = []string{"nobody.test"}, resolver })
	until(t, "the reason is known", func() bool { return strings.Contains(report(n, p2p.SourceDNS).Reason, "no such host") })
	until(t, "it is the node's reason, too", func() bool { return strings.Contains(n.Health().Reason, "dns: ") })
}

func TestAPeerOfAnotherNetworkIsLetGo(t *testing.T) {
	other := open(t, func(c *p2p.Config) { c.Network = "other" })
	n := open(t, func(c *p2p.Config) { c.Sources.Remembered = other.Addrs() })
	until(t, "it was tried", func() bool {
		return report(n, p2p.SourceRemembered).Reason != "" && report(n, p2p.SourceRemembered).Found == 1
	})
	until(t, "it is gone", func() bool { return !connected(n, other.ID()) })
}

func TestALabAsksNobodyButItsList(t *testing.T) {
	n := p2ptest.Start(t, p2p.Config{Key: p2ptest.Key(t), Network: p2ptest.Network(t), Sources: p2p.Sources{
		LAN: true, Public: true, DNS: []string{"first.test"}, Remembered: []string{"/ip4/127.0.0.1/tcp/1/p2p/" + market.KeyOf(p2ptest.Key(t)).String()},
	}})
	for _, r := range n.Sources() {
		if r.Source != p2p.SourceList && (r.On || !strings.Contains(r.Reason, "lab")) {
			t.Errorf("in a lab: %+v", r)
		}
	}
}
