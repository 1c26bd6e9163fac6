//go:build linux

package netlab_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"haggle/internal/netlab"
	"haggle/market"
)

// peerPath is the program of a bare node. It is built once for all tests.
var peerPath = sync.OnceValues(func() (string, error) { return netlab.BuildPeer(context.Background(), buildDir) })

// peer is a bare node of a test's.
type peer struct {
	t *testing.T
	*netlab.Peer
	log *output
}

// question is a command for a peer.
type question = netlab.Question

// keyOf is the key of the peer of a name, as text.
func keyOf(name string) string { return market.KeyOf(netlab.PeerKey(name)).String() }

// startPeer starts a peer that ends with the test.
func startPeer(t *testing.T, h *netlab.Host, name string, args ...string) *peer {
	t.Helper()
	p := &peer{t: t, log: &output{}}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	if p.Peer, err = netlab.StartPeer(ctx, must[string](t)(peerPath()), h, p.log, name, args...); err != nil {
		t.Fatalf("%v\n%s", err, p.log)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("peer %s:\n%s", name, p.log)
		}
	})
	return p
}

// ask gives a command and returns the answer.
func (p *peer) ask(q question) netlab.Answer {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*patience)
	defer cancel()
	a, err := p.Ask(ctx, q)
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.log)
	}
	return a
}

func (p *peer) key() string { return keyOf(p.Name) }

// find looks a bucket up and tells whether it names some peers.
func (p *peer) finds(bucket string, others ...*peer) bool {
	p.t.Helper()
	keys := p.ask(question{Do: netlab.DoFind, Text: bucket}).Keys
	return !slices.ContainsFunc(others, func(o *peer) bool { return !slices.Contains(keys, o.key()) })
}

// direct tells whether a peer has a connection to another that no relay carries.
func (p *peer) direct(other *peer) bool {
	p.t.Helper()
	return slices.ContainsFunc(p.ask(question{Do: netlab.DoStatus}).Status.Peers, func(c netlab.Connected) bool {
		return c.Key == other.key() && !c.Relayed
	})
}

// multiaddr is where a public host's peer is called.
func multiaddr(at netip.Addr, name, transport string) string {
	family := "ip4"
	if at.Is6() {
		family = "ip6"
	}
	return fmt.Sprintf("/%s/%s/%s/p2p/%s", family, at, transport, keyOf(name))
}

const (
	quic = "udp/4701/quic-v1"
	tcp  = "tcp/4701"
)

// core starts peers on public hosts that everybody knows, and returns what others take for -bootstrap.
func core(t *testing.T, n *netlab.Net, count int, family netlab.Family, args ...string) (peers []*peer, bootstrap string) {
	t.Helper()
	var addrs []string
	for i := range count {
		name := fmt.Sprintf("core-%d", i+1)
		h := must[*netlab.Host](t)(n.Public(t.Context(), name, family))
		more := append([]string{"-mode", "server", "-bootstrap", strings.Join(addrs, ",")}, args...)
		peers = append(peers, startPeer(t, h, name, more...))
		at := h.V4
		if family == netlab.OnlyV6 {
			at = h.V6
		}
		addrs = append(addrs, multiaddr(at, name, quic), multiaddr(at, name, tcp))
	}
	return peers, strings.Join(addrs, ",")
}

// output collects what a program writes, for a test that reads along.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// buildDir is where programs of the tests' own are built.
var buildDir string

func TestMain(m *testing.M) {
	os.Exit(testAll(m))
}

func testAll(m *testing.M) int {
	var err error
	if buildDir, err = os.MkdirTemp("/tmp", "hgn"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(buildDir)
	return m.Run()
}
