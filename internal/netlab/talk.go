package netlab

import (
	"crypto/ed25519"
	"crypto/sha256"
)

// What a Peer can be told to do: Question.Do.
const (
	DoStatus   = "status"   // Answer.Status
	DoReach    = "reach"    // Answer.Reach
	DoAnnounce = "announce" // be found in the buckets Texts
	DoFind     = "find"     // Answer.Keys of those who are found in the bucket Text
	DoOffers   = "offers"   // Answer.Texts: the offers of a peer
	DoPing     = "ping"     // Answer.Path, RTT and the address in Texts
	DoTalk     = "talk"     // say Count messages on one stream, each when the last has come back
	DoPull     = "pull"     // have a peer send Count bytes through a tunnel, and check each of them
	DoBulk     = "bulk"     // the same on a connection for many bytes
)

// Question is a command for a Peer.
type Question struct {
	ID    int64    `json:"id"`
	Do    string   `json:"do"`
	Peer  string   `json:"peer,omitempty"` // its key
	Text  string   `json:"text,omitempty"`
	Count int64    `json:"count,omitempty"`
	Texts []string `json:"texts,omitempty"`
}

// Answer is what came of it. The answer 0 is the peer's first word.
type Answer struct {
	ID     int64    `json:"id"`
	Error  string   `json:"error,omitempty"`
	Code   string   `json:"code,omitempty"` // of the error, as package market has them
	Took   float64  `json:"ms"`
	Keys   []string `json:"keys,omitempty"`
	Texts  []string `json:"texts,omitempty"`
	Bytes  int64    `json:"bytes,omitempty"`
	Path   string   `json:"path,omitempty"`
	RTT    float64  `json:"rtt_ms,omitempty"`
	Status Status   `json:"status,omitzero"`
	Reach  Reach    `json:"reach,omitzero"`
}

// Status is how a Peer is.
type Status struct {
	Key   string      `json:"key"`
	Ready bool        `json:"ready"`
	Why   string      `json:"why"` // it is not ready
	Table int         `json:"table"`
	Addrs []string    `json:"addrs"`
	Peers []Connected `json:"peers"`
}

// Connected is somebody with whom a Peer is connected.
type Connected struct {
	Key     string   `json:"key"`
	Addrs   []string `json:"addrs"`
	Relayed bool     `json:"relayed"`
}

// Reach is how a Peer can be called: package p2p's report of it.
type Reach struct {
	Kind    string   `json:"kind"`
	NAT     string   `json:"nat"`
	Relays  []string `json:"relays"`
	Serves  string   `json:"serves"`
	Punched int      `json:"punched"`
	Failed  int      `json:"failed"`
}

// PeerKey is the key of the Peer of a name: others know it before the peer runs.
func PeerKey(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}
