//go:build linux

package e2e_test

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"haggle/market"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

// Sizes of an attack.
const (
	attackers   = 2        // for each kind of frames
	attackTotal = 10_000   // frames of each kind on each protocol
	attackBatch = 25       // frames in a row on one stream, where a kind allows more than one
	attackHands = 8        // streams open at once for each kind and protocol, but for the slow ones
	attackHeld  = 1000     // slow streams held at once on each protocol
	mostGrowth  = 64 << 20 // bytes of memory that a rig may keep after an attack
)

// attack is one kind of frames, for each protocol.
type attack struct {
	name  string
	batch int // frames of a stream
	// frames returns the bytes of one stream of a peer.
	frames func(p p2p.Protocol, s *p2ptest.Stranger) []byte
	slow   bool                         // the stream is held open
	codes  map[p2p.Protocol]market.Code // with which those are refused that are not simply too many
}

// loot is what a hostile peer may have seen of an honest lease.
type loot struct {
	network string
	market.Evidence
	lease market.LeaseID
	bid   market.Bid
}

func TestHostilePeersAreRefusedAndTakeNothingFromOthers(t *testing.T) {
	t.Parallel()
	l := newProcessLab(t, 1)
	run, lease := l.endless("--step-time", "100ms")
	stolen := l.loot(lease)
	honest := l.stranger()
	rig := l.rigStatus(1)
	before := pss(t, rig.PID)

	counts := &tally{t: t}
	var peers []*p2ptest.Stranger
	began := time.Now()
	var all sync.WaitGroup
	for i, a := range stolen.attacks() {
		for range attackers {
			peers = append(peers, p2ptest.NewStranger(t, rig.Network.Addrs[0]))
		}
		theirs := peers[i*attackers:]
		for _, protocol := range []p2p.Protocol{p2p.OffersProtocol, p2p.LeaseProtocol, p2p.TunnelProtocol} {
			all.Go(func() { counts.run(a, protocol, theirs) })
		}
	}
	// Meanwhile somebody honest is served, again and again.
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	served := 0
	for attacked := true; attacked; served++ {
		start(t, honest, "haggle", "run", "--offer", "rig-1", "--image", "lab", "--for", "1m", "--", "train", "--steps", "2", "--step-time", "0s").wants(0)
		select {
		case <-ended:
			attacked = false
		default:
		}
	}
	t.Logf("%d honest jobs ran during %s of attacks;%s", served, time.Since(began).Round(time.Second), counts)
	counts.check()

	l.haggle("stop", lease).wants(0)
	run.wants(143)
	wantExit(t, l.settled(1, lease), market.ReasonRenter, 143)
	l.awaitFree(1, 2)
	if now := l.rigStatus(1); now.PID != rig.PID || now.Free != 2 {
		t.Errorf("the rig was process %d and is %d, with %d free slots", rig.PID, now.PID, now.Free)
	}
	wantFewLines(t, filepath.Join(l.rigHome(1), "haggled.log"), peers)
	var after int64
	await(t, "the rig's memory to come down", func() bool {
		after = pss(t, rig.PID)
		return after < before+mostGrowth
	})
	t.Logf("the rig's memory (PSS) was %d MiB before and is %d MiB after", before>>20, after>>20)
}

// loot takes what went over the wire for a lease.
func (l *lab) loot(lease string) loot {
	l.t.Helper()
	data, err := l.agent.Evidence(l.t.Context(), lease)
	if err != nil {
		l.t.Fatal(err)
	}
	e, err := market.DecodeEvidence(data)
	if err != nil {
		l.t.Fatal(err)
	}
	o := loot{network: l.rigStatus(1).Network.Name, Evidence: e}
	if o.bid, _, err = market.OpenBid(o.network, e.Bid); err != nil {
		l.t.Fatal(err)
	}
	terms, err := market.DecodeSealed(e.Lease)
	if err != nil {
		l.t.Fatal(err)
	}
	o.lease = terms.ID()
	return o
}

// attacks are the kinds of frames that are sent.
func (o loot) attacks() []attack {
	all := func(c market.Code) map[p2p.Protocol]market.Code {
		return map[p2p.Protocol]market.Code{p2p.OffersProtocol: c, p2p.LeaseProtocol: c, p2p.TunnelProtocol: c}
	}
	return []attack{
		{name: "garbage", batch: attackBatch, codes: all(market.CodeBadEncoding), frames: func(p2p.Protocol, *p2ptest.Stranger) []byte {
			return times(attackBatch, garbage)
		}},
		{name: "truncated", batch: 1, codes: all(market.CodeBadEncoding), frames: func(p p2p.Protocol, s *p2ptest.Stranger) []byte {
			first := firstFrame(o.replayed(p))
			return first[:1+rand.IntN(len(first)-1)]
		}},
		{name: "oversized", batch: attackBatch, codes: all(market.CodeTooLarge), frames: func(p2p.Protocol, *p2ptest.Stranger) []byte {
			return times(attackBatch, oversized)
		}},
		{name: "slow", batch: 1, slow: true, codes: all(market.CodeTooSlow), frames: func(p p2p.Protocol, s *p2ptest.Stranger) []byte {
			return o.replayed(p)[:1]
		}},
		{name: "replayed", batch: attackBatch, codes: map[p2p.Protocol]market.Code{
			p2p.OffersProtocol: answered, p2p.LeaseProtocol: market.CodeNotYours, p2p.TunnelProtocol: market.CodeNotYours,
		}, frames: func(p p2p.Protocol, s *p2ptest.Stranger) []byte {
			return times(attackBatch, func() []byte { return o.replayed(p) })
		}},
		{name: "wrongly signed", batch: attackBatch, codes: map[p2p.Protocol]market.Code{
			p2p.OffersProtocol: market.CodeUnexpected, p2p.LeaseProtocol: market.CodeBadSignature, p2p.TunnelProtocol: market.CodeUnexpected,
		}, frames: func(p p2p.Protocol, s *p2ptest.Stranger) []byte {
			forged := o.forged(p, s)
			return times(attackBatch, func() []byte { return forged })
		}},
	}
}

func times(n int, frame func() []byte) []byte {
	var all []byte
	for range n {
		all = append(all, frame()...)
	}
	return all
}

// garbage is a frame of random bytes.
func garbage() []byte {
	size := 1 + rand.IntN(200)
	frame := binary.AppendUvarint(nil, uint64(size))
	for range size {
		frame = append(frame, byte(rand.Uint32()))
	}
	return frame
}

// oversized is the head of a frame that is larger than any may be, up to the largest that its length can say, and some of it.
func oversized() []byte {
	frame := binary.AppendUvarint(nil, uint64(market.MaxFrame)+1+rand.Uint64N(1<<(10+rand.UintN(50))))
	return append(frame, make([]byte, 100)...)
}

// framed is a message as it goes over the wire.
func framed(m market.Message) []byte {
	body, err := market.EncodeMessage(m)
	if err != nil {
		panic(err) // ours are small
	}
	return append(binary.AppendUvarint(nil, uint64(len(body))), body...)
}

// firstFrame returns the first of some frames.
func firstFrame(frames []byte) []byte {
	size, head := binary.Uvarint(frames)
	return frames[:head+int(size)]
}

// replayed is what an honest renter has sent, on the protocol where it did.
func (o loot) replayed(p p2p.Protocol) []byte {
	switch p {
	case p2p.LeaseProtocol:
		hello := market.Hello{WallMs: time.Now().UnixMilli(), Speaks: []string{"bid/1"}}
		if rand.IntN(2) == 0 {
			hello.Lease = o.lease
		}
		return append(framed(hello), framed(market.BidMessage{Bid: o.Bid, Offer: o.Offer})...)
	case p2p.TunnelProtocol:
		return framed(market.TunnelRequest{Lease: o.lease, Kind: "log", Follow: true})
	}
	return append(framed(market.OffersRequest{}), framed(market.OffersRequest{})...)
}

// forged is a bid in the peer's own name that another key has signed, and on other protocols an offer and terms.
func (o loot) forged(p p2p.Protocol, s *p2ptest.Stranger) []byte {
	bid := o.bid
	bid.Renter, bid.Owner, bid.Delegate = market.KeyOf(s.Key), market.KeyOf(s.Key), nil
	sealed := market.SealBid(o.network, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), bid).Encode()
	switch p {
	case p2p.LeaseProtocol:
		return append(framed(market.Hello{WallMs: time.Now().UnixMilli()}), framed(market.BidMessage{Bid: sealed, Offer: o.Offer})...)
	case p2p.TunnelProtocol:
		return framed(market.AcceptMessage{Lease: sealed})
	}
	return framed(market.OfferMessage{Offer: sealed})
}

// tally counts how streams ended.
type tally struct {
	t     *testing.T
	mu    sync.Mutex
	lines []string
	wrong []string
}

func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return "\n" + strings.Join(c.lines, "\n")
}

func (c *tally) check() {
	for _, w := range c.wrong {
		c.t.Error(w)
	}
}

// run sends all frames of a kind on a protocol.
func (c *tally) run(a attack, protocol p2p.Protocol, peers []*p2ptest.Stranger) {
	streams := int64((attackTotal + a.batch - 1) / a.batch)
	hands := attackHands
	if a.slow {
		hands = attackHeld
	}
	var next atomic.Int64
	ends := map[string]int{}
	var group sync.WaitGroup
	for range hands {
		group.Go(func() {
			for i := next.Add(1); i <= streams; i = next.Add(1) {
				end := c.one(a, protocol, peers[int(i)%len(peers)])
				c.mu.Lock()
				ends[string(end)]++
				c.mu.Unlock()
			}
		})
	}
	group.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, fmt.Sprintf("%-14s %-18s %d streams: %v", a.name, protocol, streams, ends))
	if ends[string(a.codes[protocol])] == 0 {
		c.wrong = append(c.wrong, fmt.Sprintf("no %s stream of %s ended with %q: %v", a.name, protocol, a.codes[protocol], ends))
	}
	for end, n := range ends {
		switch market.Code(end) {
		case a.codes[protocol], market.CodeTooMany, reset:
		default:
			c.wrong = append(c.wrong, fmt.Sprintf("%d %s streams of %s ended with %q", n, a.name, protocol, end))
		}
	}
}

// How a stream can end beside a code of the rig's.
const (
	reset    = market.Code("reset")
	answered = market.Code("answered")
	silent   = market.Code("neither a word nor an end")
)

// one sends the frames of one stream and tells how the rig ended it.
func (c *tally) one(a attack, protocol p2p.Protocol, peer *p2ptest.Stranger) market.Code {
	s, err := peer.Open(c.t.Context(), protocol)
	if err != nil {
		return reset
	}
	defer func() { _ = s.Reset() }()
	if err := s.SetDeadline(time.Now().Add(patience)); err != nil {
		return reset
	}
	_, _ = s.Write(a.frames(protocol, peer)) // it may be refused before it is read
	if !a.slow {
		_ = s.CloseWrite()
	}
	words := bufio.NewReader(s)
	served := false
	for {
		m, err := readMessage(words)
		refuse, refused := m.(market.Refuse)
		switch {
		case refused:
			return refuse.Err.Code
		case err == nil:
			_, hello := m.(market.Hello)
			served = served || !hello // the rig's Hello goes out before it knows what comes
		case os.IsTimeout(err):
			return silent
		case served:
			return answered
		default:
			return reset
		}
	}
}

func readMessage(r *bufio.Reader) (market.Message, error) {
	length, err := binary.ReadUvarint(r)
	if err != nil || length > market.MaxFrame {
		return nil, fmt.Errorf("length %d: %w", length, err)
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, int64(length)); err != nil {
		return nil, err
	}
	return market.DecodeMessage(body.Bytes())
}

// wantFewLines wants at most one line of a log for each kind of fault and peer.
func wantFewLines(t *testing.T, log string, peers []*p2ptest.Stranger) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`protocol=(\S+) peer=(\S+) code=(\S+)`)
	seen := map[string]int{}
	about := 0
	for line := range strings.Lines(string(text)) {
		for _, p := range peers {
			if !strings.Contains(line, market.KeyOf(p.Key).String()) {
				continue
			}
			about++
			if kind := form.FindString(line); kind != "" {
				seen[kind]++
			} else {
				t.Errorf("a line about a hostile peer is of no kind: %s", line)
			}
		}
	}
	for kind, n := range seen {
		if n > 1 {
			t.Errorf("the log has %d lines with %s", n, kind)
		}
	}
	if about == 0 {
		t.Error("the log says nothing about hostile peers")
	}
	t.Logf("%d log lines about %d hostile peers", about, len(peers))
}

// pss is the memory of a process, its part of what is shared counted by share.
func pss(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^Pss:\s+(\d+) kB$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("no Pss in %s", text)
	}
	kb, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
