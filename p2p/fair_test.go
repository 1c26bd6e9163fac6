package p2p_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/x/simlibp2p"
	"github.com/marcopolo/simnet"

	"haggle/internal/index"
	"haggle/internal/netsim"
	"haggle/market"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

// fair is a market of real nodes on a simulated network in virtual time: rigs with shelves, and renters.
type fair struct {
	t      *testing.T
	sc     *netsim.Scenario
	router *simnet.Simnet
	runs   sync.WaitGroup
	boot   []string
	rigs   []*stall
	visits int // the number of the next renter's address

	mu   sync.Mutex
	hole map[string]bool // addresses whose packets vanish
	sent map[string]int  // bytes that each address sent or was sent, headers included
}

// stall is one program of a fair.
type stall struct {
	key   ed25519.PrivateKey
	ip    string
	node  *p2p.Node
	index *index.Index
	stop  context.CancelFunc
	offer rigOffer
}

func newFair(t *testing.T, rigs int) *fair {
	t.Helper()
	sc, err := netsim.DefaultScenario()
	if err != nil {
		t.Fatal(err)
	}
	f := &fair{t: t, sc: sc, hole: map[string]bool{}, sent: map[string]int{}}
	f.router = &simnet.Simnet{LatencyFunc: f.pass}
	f.router.Start()
	for i := range rigs {
		f.rigs = append(f.rigs, f.join(i, p2ptest.Key(t), true, nil))
		if i == 0 {
			f.boot = f.rigs[0].node.Addrs()
		}
		if i%10 == 9 {
			<-time.After(time.Second) // people do not switch their rigs on in the same instant
		}
	}
	f.visits = rigs
	return f
}

// pass counts a packet and says how long it takes.
func (f *fair) pass(p *simnet.Packet) time.Duration {
	from, _, _ := strings.Cut(p.From.String(), ":")
	to, _, _ := strings.Cut(p.To.String(), ":")
	const headers = 28 // of IPv4 and UDP
	size := reflect.ValueOf(p).Elem().FieldByName("buf").Len() + headers
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent[from] += size
	f.sent[to] += size
	if f.hole[from] || f.hole[to] {
		return 1000 * time.Hour
	}
	return time.Duration(f.sc.Virtual.RTT / 2 * float64(time.Millisecond))
}

// bytes returns what an address has sent and received until now.
func (f *fair) bytes(ip string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent[ip]
}

// join starts a rig, or a renter with what it remembers.
func (f *fair) join(i int, key ed25519.PrivateKey, rig bool, store index.Store) *stall {
	f.t.Helper()
	s := &stall{key: key, ip: simnet.IntToPublicIPv4(i).String(), offer: rigOffer{key: key}}
	cfg := p2p.Config{Key: key, Network: fairNetwork, Mode: p2p.ModeClient, Bootstrap: f.boot}
	book := index.Config{Network: fairNetwork, Self: market.KeyOf(key), Store: store, Workers: 1}
	if rig {
		cfg.Mode = p2p.ModeServer
		cfg.Handlers = map[p2p.Protocol]p2p.Handler{
			p2p.OffersProtocol: p2p.OffersHandler(s.offer.current),
			p2p.SnapshotProtocol: p2p.SnapshotHandler(func(asker market.Key, r market.SnapshotRequest) ([][]byte, market.SnapshotEnd) {
				return s.index.Serve(asker, r)
			}),
		}
		book.Offers, book.Buckets = s.offer.current, s.offer.buckets
	}
	s.node = f.node(s.ip, cfg)
	book.Net = s.node
	var err error
	if s.index, err = index.New(book); err != nil {
		f.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(f.t.Context())
	s.stop = stop
	f.runs.Go(func() {
		if err := s.node.Run(ctx); err != nil {
			f.t.Error(err)
		}
	})
	f.runs.Go(func() {
		if err := s.index.Run(ctx); err != nil {
			f.t.Error(err)
		}
	})
	return s
}

func (f *fair) node(ip string, cfg p2p.Config) *p2p.Node {
	f.t.Helper()
	cfg.Listen = []string{fmt.Sprintf("/ip4/%s/udp/8000/quic-v1", ip)}
	n, err := p2p.NewOn(cfg,
		simlibp2p.QUICSimnet(f.router, simnet.NodeBiDiLinkSettings{
			Downlink: simnet.LinkSettings{BitsPerSecond: int(f.sc.Virtual.Down * simlibp2p.OneMbps)},
			Uplink:   simnet.LinkSettings{BitsPerSecond: int(f.sc.Virtual.Up * simlibp2p.OneMbps)},
		}),
		libp2p.DisableIdentifyAddressDiscovery(), // it stalls virtual time
		libp2p.ResourceManager(&network.NullResourceManager{}),
		libp2p.DisableRelay(),
		libp2p.ForceReachabilityPublic(),
	)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

// digHoles makes a share of the rigs vanish without a word; the first one, by which renters come, stays.
func (f *fair) digHoles(share float64) (dead map[market.Key]bool) {
	dead = map[market.Key]bool{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.rigs[1 : 1+int(share*float64(len(f.rigs)))] {
		f.hole[s.ip] = true
		dead[market.KeyOf(s.key)] = true
	}
	return dead
}

func (f *fair) close(more ...*stall) {
	for _, s := range append(f.rigs, more...) {
		s.stop()
	}
	f.runs.Wait()
	f.router.Close()
}

const fairNetwork = "simulated"

// rigOffer is the offer of one rig, signed anew every few minutes.
type rigOffer struct {
	key ed25519.PrivateKey

	mu     sync.Mutex
	issued time.Time
	sealed []byte
}

func (o *rigOffer) current() [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); o.sealed == nil || now.Sub(o.issued) >= market.OfferRenewal {
		o.issued = now
		o.sealed = market.SealOffer(fairNetwork, o.key, o.offer(now)).Encode()
	}
	return [][]byte{o.sealed}
}

func (o *rigOffer) buckets() []string { return market.Buckets(o.offer(time.Now())) }

// memory is a store of what an index remembers.
type memory struct {
	mu   sync.Mutex
	rigs map[market.Key]index.Remembered
}

func (m *memory) RememberedRigs(_ context.Context, most int) ([]index.Remembered, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.SortedFunc(maps.Values(m.rigs), func(a, b index.Remembered) int { return int(b.Used - a.Used) })
	return all[:min(len(all), most)], nil
}

func (m *memory) RememberRigs(_ context.Context, rigs []index.Remembered) ([]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var first []int64
	for _, r := range rigs {
		if old, ok := m.rigs[r.Rig]; ok {
			r.FirstSeen = old.FirstSeen
		}
		m.rigs[r.Rig] = r
		first = append(first, r.FirstSeen)
	}
	return first, nil
}

func (o *rigOffer) offer(now time.Time) market.Offer {
	memory := int64(24564) << 20
	at := now.UnixMilli()
	key := market.KeyOf(o.key)
	return market.Offer{
		Rig: key, Owner: key, Name: "rig", ID: "main", Seq: at, Issued: at,
		Expires: at + market.MaxOfferLife.Milliseconds(), State: market.OfferOpen,
		Host: market.HostFacts{CPU: "sample", SlotThreads: 4, SlotMemory: 8 << 30, DiskFree: 100e9, Kernel: "6.1", Isolation: "runc"},
		Net:  market.NetFacts{Reach: "direct", Country: "DE"},
		Slots: []market.Slot{{
			Kind: market.SlotCard, Card: market.HashOf(key[:]), Vendor: "nvidia", Model: "RTX_4090",
			RawModel: "NVIDIA GeForce RTX 4090", Memory: memory, Usable: memory, Health: "fit",
		}},
		Prices: market.Prices{Currency: "USD", Slot: 360_000},
		Rules: market.Rules{
			MinMs: 1000, MaxMs: 7 * 24 * 3_600_000, IntervalMs: 60_000, FirstMs: 10_000, GraceMs: 120_000, NoticeMs: 10_000,
			MaxUnattended: market.Unlimited, Credit: market.Unlimited, Bidders: market.BiddersAnyone,
		},
	}
}
