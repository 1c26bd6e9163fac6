package p2p_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"haggle/market"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

// flooded starts a node that counts nobody's streams, so that every frame is read, and returns its address.
func flooded(t *testing.T, log *slog.Logger) string {
	t.Helper()
	node := p2ptest.Start(t, p2p.Config{
		Key: p2ptest.Key(t), Network: p2ptest.Network(t), Mode: p2p.ModeServer, Log: log,
		Handlers: map[p2p.Protocol]p2p.Handler{p2p.OffersProtocol: p2p.OffersHandler(func() [][]byte { return nil })},
		Limits:   map[p2p.Protocol]p2p.Limit{p2p.OffersProtocol: {Streams: 1 << 20, PerPeer: 1 << 20}},
	})
	return node.Addrs()[0]
}

func TestTenThousandBadFramesOfAKindAreRefusedAndLeaveNothing(t *testing.T) {
	var log lockedBuffer
	address := flooded(t, slog.New(slog.NewTextHandler(&log, nil)))
	peer := p2ptest.NewStranger(t, address)
	good, err := p2p.EncodeFrame(market.TunnelRequest{Kind: "log"})
	if err != nil {
		t.Fatal(err)
	}
	memory := heap()
	for _, c := range []struct {
		name  string
		code  market.Code
		frame func() []byte
	}{
		{"garbage", market.CodeBadEncoding, func() []byte {
			frame := binary.AppendUvarint(nil, 64)
			for range 64 {
				frame = append(frame, byte(rand.Uint32()))
			}
			return frame
		}},
		{"truncated", market.CodeBadEncoding, func() []byte { return good[:1+rand.IntN(len(good)-1)] }},
		{"oversized", market.CodeTooLarge, func() []byte {
			return append(binary.AppendUvarint(nil, market.MaxFrame+1+rand.Uint64N(1<<50)), good...)
		}},
		{"of another protocol", market.CodeUnexpected, func() []byte { return good }},
	} {
		t.Run(c.name, func(t *testing.T) {
			flood(t, peer, c.frame, c.code)
		})
		if lines := strings.Count(log.String(), "code="+string(c.code)); lines != 1 {
			t.Errorf("%s: %d lines of the log, want one for the peer and the kind", c.name, lines)
		}
	}
	deadline := time.Now().Add(time.Minute)
	for heap() > memory+16<<20 {
		if time.Now().After(deadline) {
			t.Fatalf("the heap had %d bytes and has %d", memory, heap())
		}
		goruntime.Gosched()
	}
}

// flood sends 10,000 frames, each on a stream of its own, and wants each refused with a code.
func flood(t *testing.T, peer *p2ptest.Stranger, frame func() []byte, code market.Code) {
	t.Helper()
	var sent atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for sent.Add(1) <= 10_000 {
				if err := sendBad(t, peer, frame(), code); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

func sendBad(t *testing.T, peer *p2ptest.Stranger, frame []byte, code market.Code) error {
	s, err := peer.Open(t.Context(), p2p.OffersProtocol)
	if err != nil {
		return err
	}
	defer func() { _ = s.Reset() }() // all that was wanted has come
	if err := s.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := s.Write(frame); err != nil {
		return err
	}
	if err := s.CloseWrite(); err != nil {
		return err
	}
	data, err := p2p.ReadFrame(bufio.NewReader(s))
	if err != nil {
		return fmt.Errorf("no answer to % x: %w", frame[:min(len(frame), 20)], err)
	}
	m, err := market.DecodeMessage(data)
	if refuse, ok := m.(market.Refuse); err != nil || !ok || refuse.Err.Code != code {
		return fmt.Errorf("the answer to % x is %+v, %w", frame[:min(len(frame), 20)], m, err)
	}
	return nil
}

func heap() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
