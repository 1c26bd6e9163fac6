package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"haggle/market"
	"haggle/nvml"
	"haggle/runtime"
)

// onReal rents a card of a rig with real cards to a trusted renter.
func onReal(t *testing.T, change func(r *rig, cards *real, engine *giving), test func(t *testing.T, r *rig, a *renter, cards *real, engine *giving)) {
	t.Helper()
	var cards *real
	var engine *giving
	inBubbleOf(t, func(r *rig) {
		cards, engine = realRig(r, 2)
		r.config.Credit = 1e9
		change(r, cards, engine)
	}, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		if err := r.Trust(t.Context(), a.self(), named("ann")); err != nil {
			t.Fatal(err)
		}
		a.order([]string{"probe", "polite"}, nil)
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.accept()
		pass(30 * time.Second)
		test(t, r, a, cards, engine)
	})
}

func unchanged(*rig, *real, *giving) {}

func TestASlotIsFreeOnlyOnceTheMemoryOfItsCardIsOverwritten(t *testing.T) {
	onReal(t, func(_ *rig, cards *real, _ *giving) {
		cards.scrub = func(ctx context.Context, _ string) (int64, error) {
			select {
			case <-time.After(7 * time.Second):
				return memory, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
	}, func(t *testing.T, r *rig, a *renter, _ *real, _ *giving) {
		a.say(market.StopMessage{})
		pass(time.Second)
		a.wantState(market.JobEnded, market.ReasonRenter)
		if r.free() != 2 {
			t.Error("the slot is not offered while a bid for it would wait")
		}
		pass(5500 * time.Millisecond)
		if r.free() != 1 {
			t.Error("the slot is free before its card is wiped")
		}
		r.stop() // the wipe begins again in the next life
		r.start()
		pass(5 * time.Second)
		if r.free() != 1 {
			t.Error("the slot is free after a restart, before its card is wiped")
		}
		a.connect()
		pass(5 * time.Second)
		if r.free() != 2 {
			t.Error("the slot is not free after the wipe")
		}
		o := a.outcome()
		if o.DiskAt != 0 || len(o.Cards) != 1 || o.Cards[0].Bytes != memory || o.Cards[0].Why != "" {
			t.Errorf("outcome %+v", o)
		}
		if l := r.lease(); l.Meter.BilledMs != 30_000 || l.Debt != market.DebtFinal {
			t.Errorf("billed %d ms, debt %s", l.Meter.BilledMs, l.Debt)
		}
		pass(25 * time.Hour)
		a.connect()
		a.hangUp()
		if o := a.outcome(); o.DiskAt == 0 || o.Cards[0].Bytes != memory {
			t.Errorf("outcome %+v", o)
		}
		list, err := r.Leases(t.Context(), true)
		if err != nil || list[0].Outcome == nil || list[0].Outcome.DiskAt == 0 {
			t.Errorf("leases %+v, %v", list, err)
		}
	})
}

func TestACardWhoseMemoryCannotBeOverwrittenIsWithheldUntilItsOwnerGivesItBack(t *testing.T) {
	for name, c := range map[string]struct {
		scrub    func(context.Context, string) (int64, error)
		withheld bool
		why      string
	}{
		"it fails":         {func(context.Context, string) (int64, error) { return 0, errors.New("out of memory") }, true, "it failed"},
		"it hangs":         {func(ctx context.Context, _ string) (int64, error) { <-ctx.Done(); return 0, ctx.Err() }, true, "longer than 2m"},
		"it is lost":       {func(context.Context, string) (int64, error) { return 0, fmt.Errorf("scrub: %w", nvml.ErrLost) }, true, "does not answer"},
		"this card cannot": {func(context.Context, string) (int64, error) { return 0, nvml.ErrUnsupported }, false, "cannot be overwritten here"},
	} {
		t.Run(name, func(t *testing.T) {
			onReal(t, func(_ *rig, cards *real, _ *giving) { cards.scrub = c.scrub }, func(t *testing.T, r *rig, a *renter, _ *real, _ *giving) {
				a.say(market.StopMessage{})
				pass(3 * time.Minute)
				o := a.outcome()
				if len(o.Cards) != 1 || o.Cards[0].Bytes != 0 || !strings.Contains(o.Cards[0].Why, c.why) {
					t.Errorf("outcome %+v", o)
				}
				want := 2
				if c.withheld {
					want = 1
				}
				r.stop()
				r.start()
				if r.free() != want {
					t.Errorf("%d slots are free, want %d", r.free(), want)
				}
				s, err := r.Status(t.Context())
				if err != nil || c.withheld != slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, "is not offered") }) {
					t.Errorf("warnings %q, %v", s.Warnings, err)
				}
				if err := r.Giveback(t.Context(), "0"); err != nil || r.free() != 2 {
					t.Errorf("given back, %d slots are free, %v", r.free(), err)
				}
			})
		})
	}
}

func TestALeasedCardIsHeldToThePowerThatItsOwnerAllows(t *testing.T) {
	onReal(t, func(r *rig, cards *real, _ *giving) {
		r.config.PowerLimitMW, r.config.Power = 250_000, cards
	}, func(t *testing.T, r *rig, a *renter, cards *real, _ *giving) {
		if o, _, _ := r.offer(); *o.Slots[0].PowerLimit != 250_000 {
			t.Errorf("the offer says %d mW", *o.Slots[0].PowerLimit)
		}
		if got := cards.set(); !slices.Equal(got, []string{"limited"}) {
			t.Errorf("limits %v", got)
		}
		cards.scrub = func(ctx context.Context, _ string) (int64, error) { <-ctx.Done(); return 0, ctx.Err() }
		a.say(market.StopMessage{})
		pass(time.Second)
		r.stop()
		cards.scrub = func(context.Context, string) (int64, error) { return memory, nil }
		r.start()
		pass(2 * time.Second)
		if got := cards.set(); got[len(got)-1] != "default" {
			t.Errorf("after a restart the limits were %v", got)
		}
		cards.broken = errors.New("permission denied")
		b := newRenter(r, "ann")
		b.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) { b.Nonce = market.Nonce{9} })
		if err := b.send(); err != nil {
			t.Fatal(err)
		}
		b.accept()
		pass(time.Second)
		b.wantState(market.JobRunning, "")
		s, err := r.Status(t.Context())
		if err != nil || !slices.ContainsFunc(s.Warnings, func(w string) bool { return strings.Contains(w, "permission denied") }) {
			t.Errorf("warnings %q, %v", s.Warnings, err)
		}
	})
}

func TestAnOwnerTakesACardBackAndTheJobKeepsItsNotice(t *testing.T) {
	onReal(t, unchanged, func(t *testing.T, r *rig, a *renter, _ *real, _ *giving) {
		ctx := t.Context()
		if _, err := r.Takeback(ctx, "GPU-nobody", true); market.CodeOf(err) != market.CodeCardUnknown {
			t.Errorf("an unknown card: %v", err)
		}
		if _, err := r.Takeback(ctx, "GPU-", true); market.CodeOf(err) != market.CodeBadRequest {
			t.Errorf("a name of two cards: %v", err)
		}
		v, err := r.Takeback(ctx, "0", true)
		if err != nil || v.Done || v.Lease != a.id.String() || v.NoticeMs != 120_000 || v.Penalty.Text != "0.012" ||
			v.Earned.Text != "0.003" || v.Forgone.Text != "0.357" {
			t.Errorf("takeback %+v, %v", v, err)
		}
		if r.free() != 1 {
			t.Error("looking took the card")
		}
		now := time.Now().UnixMilli()
		if v, err = r.Takeback(ctx, v.UUID[:len(v.UUID)-1], false); market.CodeOf(err) == market.CodeBadRequest {
			v, err = r.Takeback(ctx, v.UUID, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		pass(0)
		s := a.statusOf(market.JobStopping)
		if s.Reason != market.ReasonTakeback || s.KillAt != now+120_000 {
			t.Errorf("the renter hears %+v", s)
		}
		pass(5 * time.Second)
		a.wantState(market.JobEnded, market.ReasonTakeback)
		list := a.receipts()
		if last := list[len(list)-1]; last.BilledMs != 30_000 {
			t.Errorf("billed %d ms", last.BilledMs)
		}
		r.stop()
		r.start()
		if o, _, _ := r.offer(); len(o.Slots) != 1 {
			t.Errorf("%d slots are offered", len(o.Slots))
		}
		cards, err := r.Cards(ctx)
		if err != nil || cards[0].Withheld != "taken back by the owner" {
			t.Errorf("cards %+v, %v", cards, err)
		}
		if err := r.Giveback(ctx, "0"); err != nil || r.free() != 2 {
			t.Errorf("%d slots are free, %v", r.free(), err)
		}
		if v, err := r.Takeback(ctx, "1", false); err != nil || !v.Done || v.Lease != "" {
			t.Errorf("a free card: %+v, %v", v, err)
		}
	})
}

func TestANoticeGoesOnThroughARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "stubborn")
		pass(10 * time.Second)
		if _, err := r.Takeback(t.Context(), "0", false); err != nil {
			t.Fatal(err)
		}
		pass(30 * time.Second)
		r.stop()
		r.start()
		pass(80 * time.Second)
		if l := r.lease(); l.Job != market.JobStopping {
			t.Fatalf("after 110 of 120 s the job is %s", l.Job)
		}
		pass(15 * time.Second)
		if l := r.lease(); l.Job != market.JobEnded || l.Reason != market.ReasonTakeback {
			t.Errorf("job is %s (%s)", l.Job, l.Reason)
		}
	})
}

func TestTheOfferSaysWhichProtectionsHoldAndTheOwnerHowToMendTheOthers(t *testing.T) {
	inBubbleOf(t, func(r *rig) {
		_, engine := realRig(r, 2)
		engine.about.Isolation = runtime.IsolationRunc
		engine.about.Protections = []runtime.Protection{
			{Name: "user-namespace", Holds: true}, {Name: "lan", Found: "a job reached 192.168.1.1", Fix: "install nftables"}, {Name: "no name \x1b"},
		}
	}, func(t *testing.T, r *rig) {
		o, _, _ := r.offer()
		if o.Host.Isolation != "runc" || !slices.Equal(o.Host.Protections, []string{"user-namespace"}) || !slices.Equal(o.Host.Weak, []string{"lan"}) {
			t.Errorf("offer %+v", o.Host)
		}
		s, err := r.Status(t.Context())
		if err != nil || !slices.ContainsFunc(s.Warnings, func(w string) bool {
			return w == "the protection lan does not hold: a job reached 192.168.1.1; install nftables"
		}) {
			t.Errorf("warnings %q, %v", s.Warnings, err)
		}
	})
}

func TestTheOfferFollowsWhatTheEngineLearnsOfItself(t *testing.T) {
	var engine *giving
	inBubbleOf(t, func(r *rig) {
		_, engine = realRig(r, 2)
		engine.extra = make(chan runtime.Event)
	}, func(t *testing.T, r *rig) {
		if o, _, _ := r.offer(); len(o.Host.Protections) != 0 {
			t.Fatalf("before its check the rig offers %q", o.Host.Protections)
		}
		engine.change(func() {
			engine.about.Isolation = runtime.IsolationUserns
			engine.about.Protections = []runtime.Protection{{Name: "user-namespace", Holds: true, Found: "seen"}}
		})
		engine.extra <- runtime.Event{Kind: runtime.EventEngine}
		pass(time.Second)
		if o, _, _ := r.offer(); o.Host.Isolation != runtime.IsolationUserns || len(o.Host.Protections) != 1 {
			t.Errorf("a second after its check the rig offers %s with %q", o.Host.Isolation, o.Host.Protections)
		}
	})
}
