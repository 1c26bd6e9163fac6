package p2p

import (
	"fmt"
	"time"

	dht "github.com/libp2p/go-libp2p-kad-dht"
	"github.com/libp2p/go-libp2p-kad-dht/records"
	"github.com/libp2p/go-libp2p-kbucket/peerdiversity"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/multiformats/go-multiaddr"

	"haggle/market"
)

// Nobody fills a routing table from one corner of the internet: so many peers of a group of addresses, which is a /16 of IPv4 or what
// one carrier announces of IPv6.
const (
	perGroupInBucket = 2
	perGroupInTable  = 3
)

// Traffic of the DHT: kad-dht's own numbers are those of a network with a hundred times as many keys, and its refreshing alone would cost a
// rig several times what all the rest does.
const (
	tableBucket  = 10 // peers kept of each distance, and peers that keep an announcement
	lookupAtOnce = 4  // questions of one lookup
	tableRefresh = 4 * time.Hour
)

// newDHT makes the network's private DHT on a host.
func newDHT(cfg Config, h host.Host) (*dht.IpfsDHT, error) {
	mode := map[Mode]dht.ModeOpt{ModeClient: dht.ModeClient, ModeServer: dht.ModeServer, ModeAuto: dht.ModeAuto}[cfg.Mode]
	options := []dht.Option{
		dht.Mode(mode),
		dht.ProtocolPrefix(protocol.ID("/haggle/" + cfg.Network)),
		dht.DisableValues(),
		dht.Datastore(newRecordStore(maxKeptRecords, recordsPerPeer)),
		dht.BucketSize(tableBucket),
		dht.Concurrency(lookupAtOnce),
		dht.RoutingTableRefreshPeriod(tableRefresh),
		dht.ProviderManagerOpts(
			records.ProvideValidity(announceValidity),
			records.ProviderAddrTTL(announceValidity),
			records.CleanupInterval(announceEvery),
		),
	}
	if cfg.Network == market.NetworkMain {
		options = append(
			options,
			dht.RoutingTablePeerDiversityFilter(diversity{dht.NewRTPeerDiversityFilter(h, perGroupInBucket, perGroupInTable)}),
			dht.AddressFilter(func(addrs []multiaddr.Multiaddr) []multiaddr.Multiaddr {
				return believable(cfg.Network, atHome(h), addrs)
			}),
		)
	}
	if cfg.Mode == ModeClient {
		options = append(options, dht.DisableAutoRefresh())
	}
	d, err := dht.New(h, options...)
	if err != nil {
		return nil, fmt.Errorf("start DHT: %w", err)
	}
	return d, nil
}

// diversity bounds the peers of one corner of the internet, and not those of one's own LAN: a market of a house has no other peers.
type diversity struct {
	peerdiversity.PeerIPGroupFilter
}

// homeAddr stands for every address of this machine and of private networks, which are one group.
const homeAddr, homeGroup = "/ip4/127.0.0.1", "127.0.0.0"

// Allow implements peerdiversity.PeerIPGroupFilter.
func (d diversity) Allow(g peerdiversity.PeerGroupInfo) bool {
	return g.IPGroupKey == homeGroup || d.PeerIPGroupFilter.Allow(g)
}

// PeerAddresses implements peerdiversity.PeerIPGroupFilter.
func (d diversity) PeerAddresses(id peer.ID) []multiaddr.Multiaddr {
	addrs := d.PeerIPGroupFilter.PeerAddresses(id)
	for i, addr := range addrs {
		if ip := ipOf(addr); ip.IsValid() && len(netsOf(ip)) == 0 {
			addrs[i] = multiaddr.StringCast(homeAddr)
		}
	}
	return addrs
}
