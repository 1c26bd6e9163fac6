package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"haggle/internal/netlab"
	"haggle/market"
)

// Bounds of the figures on networks, in milliseconds. These are promised by the issue that brought reach and sources; the paths
// have next to no latency, so a figure tells how long the programs wait for each other.
const (
	punchBound   = 1000
	lanBound     = 3000
	addressBound = 30_000
	lanHosts     = 5
)

// The reach of peers in these figures.
const (
	publicReach = `{"Assume":"public"}`
	homeReach   = `{"RelayDelay":1000000000}` // the other peers are all there is: there is nobody to wait for
)

// networkFigures measure bare nodes in network namespaces, where internal/netlab builds an internet. Milliseconds.
func networkFigures() []figure {
	return []figure{
		{name: "net-punched", unit: "ms to a direct way between two homes", peer: theBound, aim: 1, measure: against(punchBound, punched)},
		{name: "net-lan", unit: fmt.Sprintf("ms until %d hosts know each other", lanHosts), peer: theBound, aim: 1, measure: against(lanBound, lanFound)},
		{name: "net-address", unit: "ms to a rig with another address", peer: theBound, aim: 1, measure: against(addressBound, readdressed)},
		{name: "net-relayed", unit: "ms to a receipt's echo over a relay", peer: theBound, atLeast: true, measure: against(punchBound, relayed)},
	}
}

// against measures a time on an internet of its own, beside a bound.
func against(bound float64, measure func(context.Context, *world) (time.Duration, error)) func(context.Context) (float64, float64, error) {
	return func(ctx context.Context) (ours, theirs float64, err error) {
		w, err := newWorld(ctx)
		if err != nil {
			return 0, 0, err
		}
		defer func() { err = errors.Join(err, w.close()) }()
		took, err := measure(ctx, w)
		return float64(took.Microseconds()) / 1000, bound, err
	}
}

// world is an internet with the peers on it.
type world struct {
	*netlab.Net
	folder    string
	program   string
	peers     []*netlab.Peer
	bootstrap []string // addresses of those on public hosts
}

func newWorld(ctx context.Context) (*world, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("it needs root, for network namespaces")
	}
	folder, err := os.MkdirTemp("/tmp", "hgb")
	if err != nil {
		return nil, err
	}
	w := &world{folder: folder}
	if w.program, err = netlab.BuildPeer(ctx, folder); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	if w.Net, err = netlab.New(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return w, nil
}

func (w *world) close() error {
	var errs []error
	for _, p := range slices.Backward(w.peers) {
		errs = append(errs, p.Close())
	}
	return errors.Join(append(errs, w.Close(), os.RemoveAll(w.folder))...)
}

func (w *world) start(ctx context.Context, h *netlab.Host, name string, args ...string) (*netlab.Peer, error) {
	p, err := netlab.StartPeer(ctx, w.program, h, io.Discard, name, args...)
	if err == nil {
		w.peers = append(w.peers, p)
	}
	return p, err
}

// public starts a peer on a public host, which later ones join by.
func (w *world) public(ctx context.Context, name, mode string) (*netlab.Peer, *netlab.Host, error) {
	h, err := w.Public(ctx, name, netlab.OnlyV4)
	if err != nil {
		return nil, nil, err
	}
	p, err := w.start(ctx, h, name, "-mode", mode, "-reach", publicReach, "-bootstrap", strings.Join(w.bootstrap, ","))
	w.bootstrap = append(w.bootstrap, fmt.Sprintf("/ip4/%s/udp/4701/quic-v1/p2p/%s", h.V4, keyOf(name)))
	return p, h, err
}

// home starts a peer behind a router of its own.
func (w *world) home(ctx context.Context, name, mode string, nat netlab.NAT) (*netlab.Peer, error) {
	r, err := w.Router(ctx, "home-of-"+name, nat, netlab.OnlyV4)
	if err != nil {
		return nil, err
	}
	h, err := r.Host(ctx, name)
	if err != nil {
		return nil, err
	}
	return w.start(ctx, h, name, "-mode", mode, "-reach", homeReach, "-bootstrap", strings.Join(w.bootstrap, ","))
}

func keyOf(name string) string { return market.KeyOf(netlab.PeerKey(name)).String() }

// until asks a peer again and again until the answer is right, and returns how long that took.
func until(ctx context.Context, p *netlab.Peer, q netlab.Question, right func(netlab.Answer) bool) (time.Duration, error) {
	began := time.Now()
	var last netlab.Answer
	var fault error
	err := wait(ctx, fmt.Sprintf("%s of peer %s", q.Do, p.Name), func() bool {
		last, fault = p.Ask(ctx, q)
		return fault != nil || right(last)
	})
	if err = errors.Join(err, fault); err != nil {
		return 0, fmt.Errorf("%w; its last word is %+v", err, last)
	}
	return time.Since(began), nil
}

func fine(a netlab.Answer) bool { return a.Error == "" }

// homes starts a rig and a renter behind routers of one kind. The rig is announced, and has a place at a relay.
func (w *world) homes(ctx context.Context, nat netlab.NAT) (renter *netlab.Peer, err error) {
	for i := range 4 {
		if _, _, err := w.public(ctx, fmt.Sprintf("core-%d", i+1), "server"); err != nil {
			return nil, err
		}
	}
	rig, err := w.home(ctx, "rig", "auto", nat)
	if err != nil {
		return nil, err
	}
	if _, err := until(ctx, rig, netlab.Question{Do: netlab.DoReach}, func(a netlab.Answer) bool { return len(a.Reach.Relays) > 0 }); err != nil {
		return nil, err
	}
	if renter, err = w.home(ctx, "renter", "client", nat); err != nil {
		return nil, err
	}
	return renter, w.announced(ctx, rig, renter)
}

// announced has a rig announce itself and a renter find it.
func (w *world) announced(ctx context.Context, rig, renter *netlab.Peer) error {
	if _, err := rig.Ask(ctx, netlab.Question{Do: netlab.DoAnnounce, Texts: []string{market.BucketAny}}); err != nil {
		return err
	}
	_, err := until(ctx, renter, netlab.Question{Do: netlab.DoFind, Text: market.BucketAny}, func(a netlab.Answer) bool { return slices.Contains(a.Keys, keyOf(rig.Name)) })
	return err
}

// punched is the time from a renter's first word to a rig until both are connected directly.
func punched(ctx context.Context, w *world) (time.Duration, error) {
	renter, err := w.homes(ctx, netlab.PortPreserving)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := until(ctx, renter, netlab.Question{Do: netlab.DoOffers, Peer: keyOf("rig")}, fine); err != nil {
		return 0, err
	}
	_, err = until(ctx, renter, netlab.Question{Do: netlab.DoStatus}, func(a netlab.Answer) bool {
		return slices.ContainsFunc(a.Status.Peers, func(c netlab.Connected) bool { return c.Key == keyOf("rig") && !c.Relayed })
	})
	return time.Since(began), err
}

// relayed is the time from a renter's first word to a rig until a message of a receipt's size has come back, where both have
// symmetric routers.
func relayed(ctx context.Context, w *world) (time.Duration, error) {
	renter, err := w.homes(ctx, netlab.Symmetric)
	if err != nil {
		return 0, err
	}
	return until(ctx, renter, netlab.Question{Do: netlab.DoTalk, Peer: keyOf("rig"), Count: 1}, fine)
}

// lanFound is the time from the start of the last of some hosts on a LAN until each has found all others, with no configuration.
func lanFound(ctx context.Context, w *world) (time.Duration, error) {
	lan, err := w.LAN(ctx, "lan", netlab.Both)
	if err != nil {
		return 0, err
	}
	var began time.Time
	for i := range lanHosts {
		name := fmt.Sprintf("rig-%d", i+1)
		h, err := lan.Host(ctx, name)
		if err != nil {
			return 0, err
		}
		began = time.Now()
		p, err := w.start(ctx, h, name, "-sources", `{"LAN":true}`)
		if err != nil {
			return 0, err
		}
		if _, err := p.Ask(ctx, netlab.Question{Do: netlab.DoAnnounce, Texts: []string{market.BucketAny}}); err != nil {
			return 0, err
		}
	}
	for _, p := range w.peers {
		if _, err := until(ctx, p, netlab.Question{Do: netlab.DoFind, Text: market.BucketAny}, func(a netlab.Answer) bool { return len(a.Keys) == lanHosts-1 }); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// readdressed is the time from the moment at which a public rig has another address until a renter at home, who talked with it
// before, talks with it again.
func readdressed(ctx context.Context, w *world) (time.Duration, error) {
	for i := range 3 {
		if _, _, err := w.public(ctx, fmt.Sprintf("core-%d", i+1), "server"); err != nil {
			return 0, err
		}
	}
	rig, host, err := w.public(ctx, "rig", "auto")
	if err != nil {
		return 0, err
	}
	w.bootstrap = w.bootstrap[:len(w.bootstrap)-1] // the renter has to look it up
	renter, err := w.home(ctx, "renter", "client", netlab.PortPreserving)
	if err != nil {
		return 0, err
	}
	if err := w.announced(ctx, rig, renter); err != nil {
		return 0, err
	}
	talk := netlab.Question{Do: netlab.DoTalk, Peer: keyOf("rig"), Count: 1}
	if _, err := until(ctx, renter, talk, fine); err != nil {
		return 0, err
	}
	if err := host.Readdress(ctx); err != nil {
		return 0, err
	}
	return until(ctx, renter, talk, fine)
}
