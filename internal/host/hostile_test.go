package host_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"haggle/market"
)

func TestAStrangerLearnsNothingOfALease(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "print", "secret")
		eve := market.KeyOf(private("eve"))
		for name, s := range map[string]*pipe{
			"lease":  ask(t, r.open(eve, r.ServeLease), market.Hello{WallMs: time.Now().UnixMilli(), Lease: a.id}),
			"tunnel": ask(t, r.open(eve, r.ServeTunnel), market.TunnelRequest{Lease: a.id, Kind: "log"}),
		} {
			_, err := s.Receive(t.Context())
			if market.CodeOf(err) != market.CodeNotYours {
				t.Errorf("%s: got %v", name, err)
			}
		}
		for name, s := range map[string]*pipe{
			"lease":  ask(t, r.open(eve, r.ServeLease), market.Hello{Lease: market.LeaseID{1}}),
			"tunnel": ask(t, r.open(eve, r.ServeTunnel), market.TunnelRequest{Lease: market.LeaseID{1}, Kind: "log"}),
		} {
			_, err := s.Receive(t.Context())
			if market.CodeOf(err) != market.CodeLeaseUnknown {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}

func ask(t *testing.T, s *pipe, m market.Message) *pipe {
	t.Helper()
	if err := s.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAMessageThatDoesNotFitIsRefusedAndChangesNothing(t *testing.T) {
	receipt := func(a *renter, change func(*market.Receipt), signers ...string) market.Message {
		r, _, err := market.OpenReceipt(network, a.drafts[0], a.terms)
		if err != nil {
			a.t.Fatal(err)
		}
		change(&r)
		s := market.SealReceipt(network, a.rig.key, r)
		for _, name := range signers {
			s = s.Sign(market.RoleRenter, private(name))
		}
		return market.ReceiptMessage{Receipt: s.Encode()}
	}
	same := func(*market.Receipt) {}
	for name, c := range map[string]struct {
		code market.Code
		say  func(a *renter) market.Message
	}{
		"a hello":              {market.CodeUnexpected, func(*renter) market.Message { return market.Hello{} }},
		"a bid":                {market.CodeUnexpected, func(a *renter) market.Message { return a.sent }},
		"a status":             {market.CodeUnexpected, func(*renter) market.Message { return market.StatusMessage{} }},
		"an unsigned receipt":  {market.CodeBadSignature, func(a *renter) market.Message { return receipt(a, same) }},
		"another's signature":  {market.CodeBadSignature, func(a *renter) market.Message { return receipt(a, same, "eve") }},
		"a forked receipt":     {market.CodeReceiptChain, func(a *renter) market.Message { return receipt(a, func(r *market.Receipt) { r.WallMs++ }, "ann") }},
		"a receipt from ahead": {market.CodeReceiptChain, func(a *renter) market.Message { return receipt(a, func(r *market.Receipt) { r.Seq = 9 }, "ann") }},
		"another's receipt":    {market.CodeReceiptChain, func(a *renter) market.Message { return receipt(a, func(r *market.Receipt) { r.Lease[0]++ }, "ann") }},
		"garbage":              {market.CodeBadEncoding, func(*renter) market.Message { return market.ReceiptMessage{Receipt: []byte{0xff}} }},
		"a refusal of nothing": {market.CodeReceiptChain, func(a *renter) market.Message {
			return market.RejectMessage{Reject: market.SealReject(network, a.key, market.Reject{Lease: a.id, Seq: 5}).Encode()}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				a := newRenter(r, "ann")
				a.setMute(true)
				a.rent("probe", "polite")
				pass(11 * time.Second)
				before := r.lease()
				a.say(c.say(a))
				a.heard.Wait()
				wantCode(t, a.refused, c.code)
				synctest.Wait()
				if after := r.lease(); after.Job != market.JobRunning || after.Head.Hash != before.Head.Hash || after.Debt != market.DebtOpen {
					t.Errorf("lease %+v", after)
				}
			})
		})
	}
}

func TestARenterThatFloodsIsCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		for {
			if err := a.stream.Send(t.Context(), market.AcceptMessage{Lease: a.signed()}); err != nil {
				break
			}
		}
		a.heard.Wait()
		wantCode(t, a.refused, market.CodeTooMany)
	})
}

func TestARenterThatDoesNotReadLosesItsConnectionOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "polite"}, nil)
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.say(market.AcceptMessage{Lease: a.signed()})
		pass(20 * time.Minute) // a status every 5 s fills whatever lies between
		if l := r.lease(); l.Job != market.JobEnded || l.Reason != market.ReasonUnsigned {
			t.Errorf("job is %s (%s)", l.Job, l.Reason)
		}
		a.hangUp()
	})
}

func TestANewConversationEndsTheOldOne(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		old := a.stream
		a.connect()
		select {
		case <-old.shut.done:
		default:
			t.Error("the old stream is still open")
		}
		pass(15 * time.Second)
		if l := r.lease(); l.Away || l.Head.Seq != 1 {
			t.Errorf("away %t, head %d", l.Away, l.Head.Seq)
		}
	})
}

func TestARenterWithAnotherChainIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		pass(15 * time.Second)
		a.hangUp()
		a.head.Hash[0]++
		a.connect()
		a.heard.Wait()
		wantCode(t, a.refused, market.CodeReceiptChain)
	})
}

func TestALogComesWholeAndFollowsTheJob(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "count", "1000"}, nil)
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		// The renter asks before the job is made.
		s := ask(t, r.open(a.self(), r.ServeTunnel), market.TunnelRequest{Lease: a.id, Kind: "log", Follow: true})
		a.accept()
		pass(5 * time.Second)
		a.say(market.StopMessage{})
		var got []byte
		for {
			m, err := s.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			chunk, ok := m.(market.ChunkMessage)
			if !ok {
				if _, end := m.(market.EndMessage); !end {
					t.Fatalf("got %T", m)
				}
				break
			}
			got = append(got, chunk.Data...)
		}
		want := readLog(t, r, a)
		if string(got) != string(want) || len(got) == 0 {
			t.Errorf("%d bytes of %d", len(got), len(want))
		}
		rest := ask(t, r.open(a.self(), r.ServeTunnel), market.TunnelRequest{Lease: a.id, Kind: "log", Offset: int64(len(want)) - 8})
		if m, err := rest.Receive(t.Context()); err != nil || len(m.(market.ChunkMessage).Data) != 8 {
			t.Errorf("the end mark is %v: %v", m, err)
		}
	})
}

func readLog(t *testing.T, r *rig, a *renter) []byte {
	t.Helper()
	log, err := r.engine.Log(t.Context(), a.id.String()[:32], 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	data, err := io.ReadAll(log)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestATunnelEndsWhenItsRenterGoes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "stubborn")
		s := ask(t, r.open(a.self(), r.ServeTunnel), market.TunnelRequest{Lease: a.id, Kind: "log", Follow: true})
		pass(time.Second)
		s.Close()
		synctest.Wait()
		a.hangUp()
		r.streams.Wait() // or the test does not end
	})
}

func TestAPeerThatSaysNothingAfterItsHelloIsCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		s := ask(t, r.open(market.KeyOf(private("eve")), r.ServeLease), market.Hello{})
		if _, err := s.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err := s.Receive(t.Context())
		if market.CodeOf(err) != market.CodeTooSlow || time.Since(start) != 10*time.Second {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
	})
}

func TestNothingIsServedBeforeAndAfterTheRigsLife(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.stop()
		if _, err := r.Status(t.Context()); market.CodeOf(err) != market.CodeEngineDown {
			t.Errorf("got %v", err)
		}
		_, err := r.open(market.KeyOf(private("ann")), r.ServeLease).Receive(t.Context()) // it need not say anything
		wantCode(t, err, market.CodeEngineDown)
		r.start()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Status(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTheOwnerIsToldOncePerPeerOfAWrongClock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.stop()
		var log bytes.Buffer
		r.config.Log = slog.New(slog.NewTextHandler(&log, nil))
		r.start()
		for _, ahead := range []time.Duration{time.Minute, time.Hour, time.Hour} {
			s := ask(t, r.open(market.KeyOf(private("eve")), r.ServeLease), market.Hello{WallMs: time.Now().Add(ahead).UnixMilli()})
			if _, err := s.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Close()
			synctest.Wait()
		}
		if got := strings.Count(log.String(), "clocks differ"); got != 1 {
			t.Errorf("told %d times: %s", got, log.String())
		}
	})
}
