package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"haggle/internal/netlab"
	"haggle/market"
	"haggle/p2p"
)

const (
	findTime  = 3 * time.Second // how long a lookup is listened to
	largest   = 1 << 30         // bytes that are sent for one question
	pieceSize = 64 << 10
)

// obey does what a command says.
func (p *peer) obey(ctx context.Context, q netlab.Question) (a netlab.Answer, err error) {
	var key market.Key
	if q.Peer != "" {
		if key, err = market.ParseKey(q.Peer); err != nil {
			return a, err
		}
	}
	switch q.Do {
	case netlab.DoStatus:
		a.Status = p.status()
	case netlab.DoAnnounce:
		p.node.Announce(q.Texts)
	case netlab.DoFind:
		ctx, cancel := context.WithTimeout(ctx, findTime)
		defer cancel()
		for key := range p.node.Find(ctx, q.Text) {
			a.Keys = append(a.Keys, key.String())
		}
	case netlab.DoOffers:
		offers, err := p.node.FetchOffers(ctx, key)
		for _, o := range offers {
			a.Texts = append(a.Texts, string(o))
		}
		return a, err
	case netlab.DoPing:
		ping, err := p.node.Ping(ctx, key)
		a.Path, a.RTT, a.Texts = ping.Path, float64(ping.RTT.Microseconds())/1000, []string{ping.Addr}
		return a, err
	case netlab.DoReach:
		r := p.node.Reach()
		a.Reach = netlab.Reach{Kind: r.Kind, NAT: string(r.NAT), Relays: r.Relays, Serves: r.Serves.String(), Punched: r.PunchesOK, Failed: r.Failed}
	case netlab.DoTalk:
		err = p.talk(ctx, key, q.Count)
	case netlab.DoPull:
		a.Bytes, err = p.pull(ctx, key, q.Count, p.node.Open)
	case netlab.DoBulk:
		a.Bytes, err = p.pull(ctx, key, q.Count, p.node.OpenBulk)
	default:
		err = fmt.Errorf("there is no command %q", q.Do)
	}
	return a, err
}

// handlers answer other peers: one offer with the peer's name, an echo of messages, and as many bytes as they want.
func handlers(name string) map[p2p.Protocol]p2p.Handler {
	return map[p2p.Protocol]p2p.Handler{
		p2p.OffersProtocol: p2p.OffersHandler(func() [][]byte { return [][]byte{[]byte(name)} }),
		p2p.LeaseProtocol:  echo,
		p2p.TunnelProtocol: pour,
	}
}

func echo(ctx context.Context, s *p2p.Stream) error {
	for {
		m, err := s.Receive(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.Send(ctx, m); err != nil {
			return err
		}
	}
}

// talk sends messages of a receipt's size on one stream, each when the last has come back.
func (p *peer) talk(ctx context.Context, key market.Key, count int64) error {
	s, err := p.node.Open(ctx, key, p2p.LeaseProtocol)
	if err != nil {
		return err
	}
	said := market.OfferMessage{Offer: bytes.Repeat([]byte{7}, 1000)}
	for range count {
		if err := s.Send(ctx, said); err != nil {
			return errors.Join(err, s.Reset())
		}
		heard, err := s.Receive(ctx)
		if err != nil {
			return errors.Join(err, s.Reset())
		}
		if !reflect.DeepEqual(heard, market.Message(said)) {
			return errors.Join(fmt.Errorf("said %v, heard %v", said, heard), s.Reset())
		}
	}
	return s.Close()
}

// pour sends as many bytes as the other side asks for.
func pour(ctx context.Context, s *p2p.Stream) error {
	m, err := s.Receive(ctx)
	if err != nil {
		return err
	}
	ask, ok := m.(market.OfferMessage)
	if !ok || len(ask.Offer) != 8 {
		return market.Unexpected(m)
	}
	count := int64(binary.BigEndian.Uint64(ask.Offer))
	if count < 0 || count > largest {
		return market.Unexpected(m)
	}
	if err := s.Send(ctx, market.EndMessage{}); err != nil { // a refusal would have come in its place
		return err
	}
	_, err = io.CopyN(s.Raw(), &pattern{}, count)
	return err
}

// pull wants bytes of a peer and checks each of them.
func (p *peer) pull(ctx context.Context, key market.Key, count int64, open func(context.Context, market.Key, p2p.Protocol) (*p2p.Stream, error)) (int64, error) {
	s, err := open(ctx, key, p2p.TunnelProtocol)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if err := s.Send(ctx, market.OfferMessage{Offer: binary.BigEndian.AppendUint64(nil, uint64(count))}); err != nil {
		return 0, err
	}
	if _, err := s.Receive(ctx); err != nil {
		return 0, err
	}
	want, got := sha256.New(), sha256.New()
	n, err := io.Copy(got, io.LimitReader(s.Raw(), count))
	if err != nil {
		return n, fmt.Errorf("after %d bytes: %w", n, err)
	}
	_, _ = io.CopyN(want, &pattern{}, n) // neither side can fail
	if n < count || !bytes.Equal(want.Sum(nil), got.Sum(nil)) {
		return n, fmt.Errorf("%d bytes of %d came, or others than were sent", n, count)
	}
	return n, nil
}

// pattern is bytes without an end, of which no two pieces are alike.
type pattern struct{ at uint64 }

func (r *pattern) Read(p []byte) (int, error) {
	p = p[:min(len(p), pieceSize)]
	for i := range p {
		p[i] = byte((r.at * 0x9E3779B97F4A7C15) >> 56)
		r.at++
	}
	return len(p), nil
}
