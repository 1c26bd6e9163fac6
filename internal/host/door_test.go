package host_test

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/host"
	"haggle/market"
	"haggle/nvml/sim"
)

// knock asks for a path into the job and returns it, or the refusal.
func (a *renter) knock() (host.Conn, error) {
	a.t.Helper()
	s := ask(a.t, a.rig.open(a.self(), a.rig.ServeTunnel), market.TunnelRequest{Lease: a.id, Kind: market.TunnelDoor})
	m, err := s.Receive(a.t.Context())
	if err != nil {
		return nil, err
	}
	if _, ok := m.(market.OpenMessage); !ok {
		return nil, market.Unexpected(m)
	}
	return s.Raw(), nil
}

// say sends bytes on a path, ends its own direction and returns what came back.
func exchange(t *testing.T, path host.Conn, data []byte) []byte {
	t.Helper()
	if _, err := path.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := path.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = path.Close()
	return got
}

// enter is a whole visit: the door echoes.
func (a *renter) enter() {
	a.t.Helper()
	path, err := a.knock()
	if err != nil {
		a.t.Fatal(err)
	}
	if got := exchange(a.t, path, []byte("hello")); string(got) != "hello" {
		a.t.Errorf("the door answers %q", got)
	}
}

func TestAJobIsEnteredFromWhenItIsMadeUntilItsDiskIsDestroyed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		a.enter()
		path, err := a.knock()
		if err != nil {
			t.Fatal(err)
		}
		big := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
		go func() {
			_, _ = path.Write(big)
			_ = path.CloseWrite()
		}()
		if got, err := io.ReadAll(path); err != nil || !bytes.Equal(got, big) {
			t.Errorf("%d bytes of %d came back: %v", len(got), len(big), err)
		}
		a.say(market.StopMessage{})
		pass(2 * time.Second)
		a.wantState(market.JobEnded, market.ReasonRenter)
		a.enter() // its disk
		pass(25 * time.Hour)
		_, err = a.knock()
		wantCode(t, err, market.CodeNoDoor)
		a.hangUp()
	})
}

func TestADoorThatIsNotThereYetIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.env = market.Env{"A=1"} // made only after the signature
		a.order([]string{"probe", "polite"}, nil)
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		came := make(chan error, 1)
		go func() {
			_, err := a.knock()
			came <- err
		}()
		pass(5 * time.Second)
		a.accept()
		if err := <-came; err != nil {
			t.Errorf("got %v", err)
		}
	})
	inBubble(t, func(t *testing.T, r *rig) {
		r.stop()
		r.config.Runtime = stuckEngine{r.engine}
		r.start()
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		begun := time.Now()
		_, err := a.knock()
		wantCode(t, err, market.CodeNoDoor)
		if waited := time.Since(begun); waited != 10*time.Second {
			t.Errorf("waited %s", waited)
		}
		r.engine.SetDown(true)
		pass(3 * time.Minute)
	})
}

func TestOnlyTheRenterEntersAJob(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		for _, kind := range []string{market.TunnelDoor, market.TunnelImage} {
			s := ask(t, r.open(market.KeyOf(private("eve")), r.ServeTunnel), market.TunnelRequest{Lease: a.id, Kind: kind})
			_, err := s.Receive(t.Context())
			wantCode(t, err, market.CodeNotYours)
		}
		s := ask(t, r.open(a.self(), r.ServeTunnel), market.TunnelRequest{Lease: a.id, Kind: "cellar"})
		_, err := s.Receive(t.Context())
		wantCode(t, err, market.CodeUnsupported)
	})
}

func TestPathsIntoALeaseAreBoundedInNumberAndRate(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		var open []host.Conn
		for range 96 {
			path, err := a.knock()
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, path)
		}
		pass(time.Minute)
		_, err := a.knock()
		wantCode(t, err, market.CodeTooManyTunnels)
		for _, path := range open {
			_ = path.Close()
		}
		synctest.Wait()
		refused := 0
		for range 200 {
			path, err := a.knock()
			if err != nil {
				wantCode(t, err, market.CodeTooManyTunnels)
				refused++
				continue
			}
			_ = path.Close()
			synctest.Wait()
		}
		if refused < 100 {
			t.Errorf("%d of 200 paths at once were refused", refused)
		}
		pass(time.Minute)
		a.enter()
	})
}

func TestAPathEndsWithTheRigsProgramAndTheNextIsAnsweredByItsSuccessor(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		path, err := a.knock()
		if err != nil {
			t.Fatal(err)
		}
		r.stop()
		if _, err := path.Read(make([]byte, 1)); err == nil {
			t.Error("the path is still open")
		}
		r.start()
		pass(time.Second)
		a.enter()
	})
}

func TestAJobWaitsForWhatItsRenterSendsFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) { b.Upload = 1000 })
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.accept()
		pass(30 * time.Second)
		if s := a.status(); s.State != market.JobPreparing || !s.Ready {
			t.Fatalf("status %+v", s)
		}
		a.enter()
		a.say(market.BeginMessage{})
		a.say(market.BeginMessage{}) // a repetition
		pass(time.Second)
		a.wantState(market.JobRunning, "")
		if s := a.status(); s.Ready || s.BilledMs > 1000 {
			t.Errorf("status %+v", s)
		}
		a.say(market.BeginMessage{})
		pass(time.Second)
		a.wantState(market.JobRunning, "")
	})
}

func TestAnUploadThatNeverEndsFreesItsSlotAndCostsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) { b.Upload = 1000 })
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.accept()
		pass(time.Minute)
		r.stop()
		r.start()
		pass(time.Second)
		a.connect()
		if s := a.status(); s.State != market.JobPreparing || !s.Ready {
			t.Fatalf("status after a restart %+v", s)
		}
		pass(3 * time.Minute)
		a.wantState(market.JobEnded, market.ReasonPrepare)
		if s := a.status(); s.Code != market.CodeUploadMissing || s.Total != 0 || r.free() != 2 {
			t.Errorf("status %+v, %d slots free", s, r.free())
		}
	})
}

func TestARenterThatSendsNothingHoldsNoCard(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) { b.Upload = 2_000_000_000 })
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.accept()
		pass(time.Second)
		path, err := a.knock()
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, path) }()
		for range 5 { // what is sent slowly is sent
			pass(time.Minute)
			if _, err := path.Write(make([]byte, 64<<10)); err != nil {
				t.Fatal(err)
			}
		}
		a.wantState(market.JobPreparing, "")
		for range 3 { // what keeps a connection alive is not
			pass(time.Minute)
			_, _ = path.Write(make([]byte, 1000))
		}
		a.wantState(market.JobEnded, market.ReasonPrepare)
		if s := a.status(); s.Code != market.CodeUploadMissing || s.Total != 0 || r.free() != 2 {
			t.Errorf("status %+v, %d slots free", s, r.free())
		}
	})
}

func TestARenterCannotHoldManyCardsWithUploadsThatNeverBegin(t *testing.T) {
	inBubbleOf(t, func(r *rig) {
		_ = r.cards.Close()
		cards, err := sim.New(sim.Config{Cards: []sim.CardConfig{{Profile: "RTX_4090", Count: 6}}, Serial: "test"})
		if err != nil {
			t.Fatal(err)
		}
		r.cards, r.config.Cards = cards, cards
	}, func(t *testing.T, r *rig) {
		rent := func(n byte, upload int64) error {
			a := newRenter(r, "ann")
			a.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) { b.Upload, b.Nonce = upload, market.Nonce{n} })
			if err := a.send(); err != nil {
				return err
			}
			a.accept()
			synctest.Wait()
			return nil
		}
		for n := range byte(4) {
			if err := rent(n, 10); err != nil {
				t.Fatal(err)
			}
		}
		wantCode(t, rent(5, 10), market.CodeTooMany)
		pass(3 * time.Minute)
		if r.free() != 6 {
			t.Errorf("%d slots are free", r.free())
		}
		if err := rent(6, 0); err != nil {
			t.Error(err)
		}
	})
}
