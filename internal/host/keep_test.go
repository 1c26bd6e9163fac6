package host_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"haggle/market"
	"haggle/runtime"
)

// keep has the renter keep its disk.
func (a *renter) keep() {
	a.t.Helper()
	a.say(market.StopMessage{Keep: true})
	pass(2 * time.Second)
	a.wantState(market.JobPaused, market.ReasonRenter)
}

// attempts names the jobs of a lease in the engine.
func (r *rig) attempts(a *renter) string {
	r.t.Helper()
	var names []string
	for _, j := range r.jobs() {
		if name, ok := strings.CutPrefix(j.ID, a.id.String()[:32]); ok {
			names = append(names, fmt.Sprintf("%q %s", name, j.State))
		}
	}
	return strings.Join(names, ", ")
}

// file asks the door of the job for a file.
func (a *renter) file(name string) string {
	a.t.Helper()
	path, err := a.knock()
	if err != nil {
		a.t.Fatal(err)
	}
	return string(exchange(a.t, path, []byte("read "+name+"\n")))
}

func TestAKeptDiskGoesOnWithTheNextAttempt(t *testing.T) {
	engine := &giving{}
	inBubbleOf(t, func(r *rig) {
		engine.Fake, r.config.Runtime = r.engine, engine
		r.config.Prices.Disk = 100_000
	}, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.env = market.Env{"A=1", "HAGGLE_ATTEMPT=4"}
		a.rent("probe", "write-and-wait", "state", "saved")
		pass(30 * time.Second)
		a.keep()
		if r.free() != 2 {
			t.Errorf("%d slots are free beside a kept disk", r.free())
		}
		billed := r.lease().Meter.BilledMs
		r.stop()
		r.start()
		pass(time.Second)
		a.connect()
		a.wantState(market.JobPaused, market.ReasonRenter)
		if got := a.file("state"); got != "saved" {
			t.Errorf("the kept disk holds %q", got)
		}
		path, err := a.knock()
		if err != nil {
			t.Fatal(err)
		}
		pass(20 * time.Minute)
		l := r.lease()
		if l.Meter.BilledMs != billed || l.Meter.KeptMs < 1_190_000 || l.Meter.KeptMs > 1_210_000 || l.Head.KeptMs < 900_000 {
			t.Errorf("billed %d and then %d, kept %d, of which %d signed", billed, l.Meter.BilledMs, l.Meter.KeptMs, l.Head.KeptMs)
		}
		a.say(market.ResumeMessage{})
		pass(time.Second)
		a.wantState(market.JobRunning, "")
		if _, err := path.Read(make([]byte, 1)); err == nil {
			t.Error("a path to the kept disk is open beside the job")
		}
		if got := r.attempts(a); got != `"" stopped, "-1" running` {
			t.Errorf("attempts %s", got)
		}
		last := engine.specs[len(engine.specs)-1]
		if last.From != a.id.String()[:32] || !slices.Contains(last.Env, "HAGGLE_ATTEMPT=5") || !slices.Contains(last.Env, "HAGGLE_RESUME=1") || !slices.Contains(last.Env, "A=1") {
			t.Errorf("the second attempt is from %s with %q", last.From, last.Env)
		}
		if got := a.file("state"); got != "saved" {
			t.Errorf("the disk holds %q in the second attempt", got)
		}
		a.say(market.ResumeMessage{}) // a repetition
		pass(10 * time.Second)
		a.keep()
		a.say(market.ResumeMessage{})
		pass(10 * time.Second)
		r.stop()
		r.start()
		pass(time.Second)
		a.connect()
		a.wantState(market.JobRunning, "")
		if got := r.attempts(a); got != `"" stopped, "-1" stopped, "-2" running` {
			t.Errorf("attempts %s", got)
		}
		a.say(market.StopMessage{})
		pass(2 * time.Second)
		a.wantState(market.JobEnded, market.ReasonRenter)
		if j := a.judge(); j.Verdict != market.VerdictAgreed {
			t.Errorf("verdict %s: %+v", j.Verdict, j.Checks)
		}
		pass(25 * time.Hour)
		if got := r.attempts(a); got != "" || !r.lease().Closed() {
			t.Errorf("attempts %s are left", got)
		}
		a.hangUp()
	})
}

func TestALeaseResumesOnItsOwnCardsOrNotAtAll(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a, b := newRenter(r, "ann"), newRenter(r, "bob")
		a.rent("probe", "polite")
		slot := a.terms.Slots[0].Index
		a.keep()
		b.order([]string{"probe", "polite"}, func(bid *market.Bid, _ *market.BidMessage) { bid.Slots = []uint8{slot} })
		if err := b.send(); err != nil {
			t.Fatal(err)
		}
		a.say(market.ResumeMessage{})
		pass(10 * time.Second)
		a.wantDecline(market.OrderResume, market.CodeSlotTaken)
		b.accept()
		pass(time.Second)
		a.say(market.ResumeMessage{})
		pass(10 * time.Second)
		a.wantDecline(market.OrderResume, market.CodeSlotTaken)
		a.wantState(market.JobPaused, market.ReasonRenter)
		b.say(market.StopMessage{Kill: true})
		pass(time.Second)
		cards, err := r.Cards(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		uuid := cards[slot].UUID
		if back, err := r.Takeback(t.Context(), uuid, false); err != nil || back.Lease != "" {
			t.Errorf("taken back from %q: %v", back.Lease, err)
		}
		a.say(market.ResumeMessage{})
		pass(10 * time.Second)
		a.wantDecline(market.OrderResume, market.CodeSlotTaken)
		if err := r.Giveback(t.Context(), uuid); err != nil {
			t.Fatal(err)
		}
		if err := r.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.say(market.ResumeMessage{})
		pass(10 * time.Second)
		a.wantDecline(market.OrderResume, market.CodePaused)
		if err := r.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.say(market.ResumeMessage{})
		pass(10 * time.Second)
		a.wantState(market.JobRunning, "")
		if r.free() != 1 {
			t.Errorf("%d slots are free", r.free())
		}
	})
}

func TestResumesAndBidsForOneSlotNeverBothWin(t *testing.T) {
	for round := range 20 {
		inBubble(t, func(t *testing.T, r *rig) {
			a, b := newRenter(r, "ann"), newRenter(r, "bob")
			a.rent("probe", "polite")
			slot := a.terms.Slots[0].Index
			a.keep()
			b.order([]string{"probe", "polite"}, func(bid *market.Bid, _ *market.BidMessage) { bid.Slots = []uint8{slot} })
			got := make(chan error, 1)
			if round%2 == 0 {
				go func() { got <- b.send() }()
				a.say(market.ResumeMessage{})
			} else {
				a.say(market.ResumeMessage{})
				go func() { got <- b.send() }()
			}
			won := <-got == nil
			pass(10 * time.Second)
			if resumed := a.status().State == market.JobRunning; resumed == won {
				t.Errorf("round %d: the bid won %t, the resume %t", round, won, resumed)
			}
		})
	}
}

func TestOrdersThatDoNotFitAreDeclinedAndTheConversationGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) { b.Upload = 10 })
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.accept()
		pass(time.Second)
		a.say(market.StopMessage{Keep: true})
		pass(time.Second)
		a.wantDecline(market.OrderKeep, market.CodeNotRunning)
		a.say(market.BeginMessage{})
		pass(time.Second)
		a.say(market.ResumeMessage{})
		pass(time.Second)
		a.wantDecline(market.OrderResume, market.CodeNotPaused)
		a.say(market.StopMessage{})
		pass(time.Second)
		a.say(market.StopMessage{Keep: true})
		pass(time.Second)
		a.wantDecline(market.OrderKeep, market.CodeKeepEnded)
		a.wantState(market.JobEnded, market.ReasonRenter)
	})
}

func TestAKeptDiskThatIsGivenUpIsDestroyedAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		pass(20 * time.Second)
		a.keep()
		a.say(market.StopMessage{})
		pass(2 * time.Second)
		a.wantState(market.JobEnded, market.ReasonRenter)
		if got := r.attempts(a); got != "" || a.outcome().DiskAt == 0 || r.lease().Debt != market.DebtFinal {
			t.Errorf("attempts %s, outcome %+v", got, a.outcome())
		}
		a.hangUp()
	})
}

func TestAResumeThatCannotBeMadeLeavesTheDiskAsItWas(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "write-and-wait", "state", "saved")
		pass(20 * time.Second)
		a.keep()
		r.engine.Fail("Create", runtime.ErrNoRoom)
		a.say(market.ResumeMessage{})
		pass(2 * time.Second)
		a.wantState(market.JobPaused, market.ReasonPrepare)
		if s := a.status(); s.Code != market.CodeNoRoom || r.free() != 2 {
			t.Errorf("status %+v, %d slots free", s, r.free())
		}
		if got := a.file("state"); got != "saved" {
			t.Errorf("the kept disk holds %q", got)
		}
		a.say(market.ResumeMessage{})
		pass(2 * time.Second)
		a.wantState(market.JobRunning, "")
		if got := a.file("state"); got != "saved" {
			t.Errorf("the disk holds %q", got)
		}
	})
}

func TestTrafficOfAllAttemptsIsBilled(t *testing.T) {
	engine := &giving{}
	inBubbleOf(t, func(r *rig) {
		engine.Fake, r.config.Runtime = r.engine, engine
		r.config.Prices.In = 1000
	}, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		engine.change(func() { engine.use.NetInBytes = 5_000_000 })
		a.rent("probe", "polite")
		pass(10 * time.Second)
		a.keep()
		engine.change(func() { engine.use.NetInBytes = 0 })
		a.say(market.ResumeMessage{})
		pass(10 * time.Second)
		engine.change(func() { engine.use.NetInBytes = 2_000_000 })
		pass(10 * time.Second)
		if got := r.lease().Meter.In; got != 7_000_000 {
			t.Errorf("%d bytes are billed", got)
		}
	})
}

func TestAKeptDiskEndsWithTheCreditOfItsOwner(t *testing.T) {
	onReal(t, func(r *rig, _ *real, _ *giving) {
		r.config.Credit, r.config.Prices.Disk = 200_000, 1_000_000
	}, func(t *testing.T, r *rig, a *renter, _ *real, _ *giving) {
		a.keep()
		pass(10 * time.Minute)
		a.wantState(market.JobEnded, market.ReasonCredit)
		if l := r.lease(); l.Total() > 200_000 || l.Total() < 190_000 || l.Debt != market.DebtFinal || l.Gone {
			t.Errorf("total %s, debt %s, gone %t", l.Total(), l.Debt, l.Gone)
		}
		a.enter() // for a day
	})
}
