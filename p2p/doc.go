// Package p2p is a haggle program's place in the network: its identity, a private DHT that says whom to ask, and framed,
// bounded streams over which peers talk.
//
// # Streams
//
// A stream carries frames: a length as an unsigned varint in its shortest form, at most market.MaxFrame, then one
// message as market.EncodeMessage writes it. A peer that is refused gets a market.Refuse before the stream is closed.
//
//	protocol           streams  per peer  new per second (burst)  idle    lifetime  over a relay
//	/haggle/offers/1        64         4                  2 (8)    10 s      30 s   yes
//	/haggle/lease/1        256        32                  4 (32)  30 min      none  yes
//	/haggle/tunnel/1      1024       128                64 (128)   none      none  no
//	/haggle/deputy/1        64         8                  4 (64)   30 s      60 s  yes
//	/haggle/snapshot/1      64         4                  2 (16)   10 s      60 s  yes
//	/haggle/members/1       32         2                  1 (4)    10 s      30 s  yes
//
// The numbers bind the side that is called; "new per second" is for each peer. The table is Config.Limits' default.
//
// # Times
//
//	first frame of a called stream, whole   10 s
//	any later frame, once it has begun      10 s
//	one write                               10 s
//	dial of a peer's known addresses       1.5 s  (Config.DialTimeout)
//	lookup of a peer's addresses             3 s
//	FetchOffers                              3 s
//	validity of an announcement           60 min  (part of the protocol: every node must use the same)
//	renewal of an announcement            20 min, a tenth earlier or later
//	bootstrap retries                    250 ms, doubling to 30 s; once a minute while joined
//
// # Networks
//
// The DHT's protocol prefix is /haggle/NETWORK, so that networks never mix. A lab stays on loopback: its nodes listen on,
// dial and accept no other addresses, and port mapping, reachability checks, relays and hole punching are off.
//
// # First peers
//
// A node that knows nobody asks every source of Config.Sources at once: peers of an earlier life, the LAN (multicast DNS), names with
// dnsaddr records, and the public DHT of IPFS, where those nodes that can be called from outside stand under one key per network. The
// public DHT is visited by a host of its own, which calls and cannot be called. What sources name is bounded: 64 peers of an answer
// are looked at, 24 dialled, 64 neighbours kept connected, and whoever is no node of this network is let go for an hour. Neighbours
// are asked for offers directly, so a LAN needs nobody who serves the DHT.
//
// # Private networks
//
// Config.Members names the key that signs who belongs to a network. The gater turns everybody else away, both ways. A newer list is
// brought to all connected peers as soon as it is known, and asked for once a minute from one of them; whoever is not on it any more
// is told and let go.
package p2p
