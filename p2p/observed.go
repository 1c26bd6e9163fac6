package p2p

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/protocol/identify"
	identifypb "github.com/libp2p/go-libp2p/p2p/protocol/identify/pb"
	"github.com/multiformats/go-multiaddr"
	"github.com/multiformats/go-multistream"
	"google.golang.org/protobuf/proto"
)

// A router that gets another address leaves the node's QUIC connections as they are: they move over. But what a peer sees of the node
// is said once, when a connection begins, so the node would go on believing its old address, and no hole could be punched to it. So
// peers outside are asked anew: each over a connection of its own, which ends with the answer and disturbs nobody.
const (
	observeTime  = 4 * time.Second  // for one answer
	observeEvery = 5 * time.Minute  // while nothing is wrong; one answer costs about 8 kB, so 30 bytes a second
	observePause = 15 * time.Second // at least between two answers for trouble
	observeRetry = 3 * time.Second  // after trouble in which nobody answered: the router may not be back yet
	troubleAsked = 2                // peers at once, at the first sign of trouble
	observersMax = 16               // peers that are asked once one of them sees another address
	identifyMost = 10               // messages of one answer
)

// trouble has the node's addresses looked at: a peer fell silent, or a hole could not be punched. It does not wait.
func (r *reacher) trouble() {
	select {
	case r.troubled <- struct{}{}:
	default: // one token is enough
	}
}

// punchFailed is told of each try that failed. Behind a router of the symmetric kind that is nothing new.
func (r *reacher) punchFailed() {
	if natKind(r.sights.list(), nil) != NATSymmetric {
		r.trouble()
	}
}

// keepObserved keeps what the node knows of its address outside true.
func (r *reacher) keepObserved(ctx context.Context) {
	var answered time.Time
	pause := func(d time.Duration) bool {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
	for {
		routine := time.NewTimer(jitter(observeEvery))
		select {
		case <-routine.C:
			if natKind(r.sights.list(), r.machine()) != NATNone { // the machine's own addresses are looked at elsewhere
				r.observe(ctx, 1)
			}
			continue
		case <-r.troubled:
		case <-ctx.Done():
		}
		routine.Stop()
		if ctx.Err() != nil || !pause(max(0, observePause-time.Since(answered))) {
			return
		}
		r.probe(ctx, r.overTCP(), interfaceProbe) // these connections do not move over
		for !r.observe(ctx, troubleAsked) {
			if len(r.observers()) == 0 {
				break // whoever is called now says it by itself
			}
			if !pause(observeRetry) {
				return
			}
		}
		answered = time.Now()
		r.node.dialBootstrap(ctx)
	}
}

// observe asks some peers at which address they see the node, and many where one sees another than before. It reports whether one
// answered.
func (r *reacher) observe(ctx context.Context, some int) bool {
	conns, began := r.observers(), time.Now()
	first := conns[:min(some, len(conns))]
	answers, news := r.askObservers(ctx, first)
	if news {
		r.askObservers(ctx, conns[len(first):min(len(conns), observersMax)])
		r.sights.forget(began) // by whoever is not connected any more
		r.log.Info("addresses changed", "observed", r.observedTexts())
	}
	return answers > 0
}

func (r *reacher) askObservers(ctx context.Context, conns []network.Conn) (answers int, news bool) {
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, c := range conns {
		asking.Go(func() {
			seen, err := r.observedBy(ctx, c)
			if err != nil {
				r.log.Debug("a peer does not say how it sees the node", "peer", peerText(c.RemotePeer()), "err", err)
				r.suspect(c.RemotePeer())
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answers++
			news = r.sights.differs(c, seen) || news
			r.sights.add(c, seen, time.Now())
			if err := r.identified.Emit(event.EvtPeerIdentificationCompleted{Peer: c.RemotePeer(), Conn: c, ObservedAddr: seen}); err != nil {
				r.log.Debug("an observed address is not told", "err", err)
			}
		})
	}
	asking.Wait()
	return answers, news
}

// observers are connections, one a peer, that this node opened over QUIC to peers outside.
func (r *reacher) observers() []network.Conn {
	return r.outside("udp")
}

// overTCP are peers outside that this node called over TCP.
func (r *reacher) overTCP() []peer.ID {
	var ids []peer.ID
	for _, c := range r.outside("tcp") {
		ids = append(ids, c.RemotePeer())
	}
	return ids
}

func (r *reacher) outside(transport string) []network.Conn {
	var out []network.Conn
	had := map[peer.ID]bool{}
	for _, c := range r.host.Network().Conns() {
		over, _, _ := portOf(c.LocalMultiaddr())
		if over != transport || had[c.RemotePeer()] || isRelayed(c) || c.Stat().Direction != network.DirOutbound ||
			!public(c.RemoteMultiaddr()) || r.punches.through(c.RemotePeer()) {
			continue
		}
		had[c.RemotePeer()] = true
		out = append(out, c)
	}
	return out
}

// observedBy asks the peer of a connection at which address it sees the node now. The question goes from the same port, so it takes the
// same way through the router.
func (r *reacher) observedBy(ctx context.Context, c network.Conn) (multiaddr.Multiaddr, error) {
	dialer, ok := r.host.Network().(interface {
		TransportForDialing(multiaddr.Multiaddr) transport.Transport
	})
	if !ok {
		return nil, errors.New("the network does not dial beside its connections")
	}
	way := dialer.TransportForDialing(c.RemoteMultiaddr())
	if way == nil {
		return nil, fmt.Errorf("nothing dials %s", c.RemoteMultiaddr())
	}
	ctx, cancel := context.WithTimeout(ctx, observeTime)
	defer cancel()
	fresh, err := way.Dial(ctx, c.RemoteMultiaddr(), c.RemotePeer())
	if err != nil {
		return nil, err
	}
	defer fresh.Close()
	s, err := fresh.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Reset() }()
	defer interrupt(ctx, s.SetDeadline)()
	if err := multistream.SelectProtoOrFail(identify.ID, s); err != nil {
		return nil, err
	}
	for range identifyMost {
		frame, err := readFrame(s, func() {})
		if err != nil {
			return nil, err
		}
		var said identifypb.Identify
		if err := proto.Unmarshal(frame, &said); err != nil {
			return nil, err
		}
		if len(said.ObservedAddr) > 0 {
			return multiaddr.NewMultiaddrBytes(said.ObservedAddr)
		}
	}
	return nil, errors.New("the peer does not say how it sees this node")
}

func (r *reacher) observedTexts() []string {
	var out []string
	for _, s := range seen(r.sights.list()) {
		out = append(out, s.Transport+" "+s.Addr.String())
	}
	return out
}
