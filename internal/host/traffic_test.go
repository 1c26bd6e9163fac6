package host_test

import (
	"fmt"
	"testing"
	"time"

	"haggle/market"
	"haggle/nvml"
	"haggle/runtime"
)

func priced(r *rig, _ *real, _ *giving) {
	r.config.Prices.In, r.config.Prices.Out = 1_000_000, 2_000_000
}

func TestTrafficIsBilledAsTheEngineCountsItTheLastBytesToo(t *testing.T) {
	onReal(t, priced, func(t *testing.T, r *rig, a *renter, _ *real, engine *giving) {
		engine.change(func() { engine.use = runtime.Usage{NetInBytes: 5_000_000, NetOutBytes: 1_000_000, DiskBytes: 7} })
		pass(15 * time.Second)
		if s := a.status(); s.In != 5_000_000 || s.Out != 1_000_000 || s.DiskUsed != 7 || s.Total != 4500+5000+2000 {
			t.Errorf("status %+v", s)
		}
		engine.change(func() { engine.use = runtime.Usage{NetInBytes: 6_000_000, NetOutBytes: 1_000_000} })
		if err := r.engine.Kill(t.Context(), a.id.String()[:32]); err != nil { // it ends by itself, so to say
			t.Fatal(err)
		}
		pass(time.Second)
		list := a.receipts()
		last := list[len(list)-1]
		if last.Usage.InBytes != 6_000_000 || last.Bill.In != 6000 || last.Bill.Out != 2000 || last.Bill.Total != last.Bill.Slot+8000 {
			t.Errorf("last receipt %+v", last)
		}
		if j := a.judge(); j.Verdict != market.VerdictAgreed {
			t.Errorf("verdict %s: %+v", j.Verdict, j.Checks)
		}
	})
}

func TestTrafficBeyondTheBudgetEndsTheJobAndIsNotBilled(t *testing.T) {
	onReal(t, priced, func(t *testing.T, _ *rig, a *renter, _ *real, engine *giving) {
		engine.change(func() { engine.use = runtime.Usage{NetOutBytes: 1 << 40} })
		pass(10 * time.Second)
		a.wantState(market.JobEnded, market.ReasonBudget)
		list := a.receipts()
		if last := list[len(list)-1]; last.Bill.Total > a.terms.Budget || last.Bill.Total < a.terms.Budget-10 {
			t.Errorf("total %s of %s", last.Bill.Total, a.terms.Budget)
		}
		if j := a.judge(); j.Verdict != market.VerdictAgreed {
			t.Errorf("verdict %s: %+v", j.Verdict, j.Checks)
		}
	})
}

func TestAJobThatFailsWithAFullDiskSaysSo(t *testing.T) {
	onReal(t, unchanged, func(t *testing.T, r *rig, a *renter, _ *real, engine *giving) {
		engine.change(func() { engine.full = true })
		if err := r.engine.Kill(t.Context(), a.id.String()[:32]); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		a.wantState(market.JobEnded, market.ReasonDiskFull)
	})
}

func TestTheDiskThatLeasesHoldIsNotOfferedTwice(t *testing.T) {
	inBubbleOf(t, func(r *rig) { r.config.Machine.DiskFree = 30e9 }, func(t *testing.T, r *rig) {
		before, _, _ := r.offer()
		a, b := newRenter(r, "ann"), newRenter(r, "bob")
		b.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) { b.Resources.DiskMB = 13_500 })
		a.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) { b.Resources.DiskMB = 13_500 })
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.accept()
		pass(time.Second)
		after, _, _ := r.offer()
		if before.Host.DiskFree != 27e9 || after.Host.DiskFree != 14.85e9 {
			t.Errorf("%d bytes are free, then %d", before.Host.DiskFree, after.Host.DiskFree)
		}
		c := newRenter(r, "cat")
		c.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) { b.Resources.DiskMB = 14_851 })
		wantCode(t, c.send(), market.CodeBadLimits) // the share of the new offer
		if err := b.send(); err != nil {
			t.Errorf("what is there is refused: %v", err)
		}
		d := newRenter(r, "dan")
		d.sent = b.sent
		wantCode(t, d.send(), market.CodeNotYours)
	})
	engine := &giving{}
	inBubbleOf(t, func(r *rig) {
		engine.Fake, r.config.Runtime, r.config.Machine.DiskFree = r.engine, engine, 20e9
		engine.use.DiskBytes = 9e9
	}, func(t *testing.T, r *rig) {
		late := newRenter(r, "bob")
		late.order([]string{"probe", "polite"}, func(b *market.Bid, _ *market.BidMessage) { b.Resources.DiskMB = 9_000 })
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		pass(6 * time.Second)
		a.say(market.StopMessage{})
		pass(time.Second)
		c := newRenter(r, "cat") // the ended job's disk is kept with what is on it
		c.rent("probe", "polite")
		pass(time.Second)
		wantCode(t, late.send(), market.CodeNoRoom)
	})
}

func TestARenterHearsWhyItsJobCouldNotBeMade(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code market.Code
	}{
		"no room":            {runtime.ErrNoRoom, market.CodeNoRoom},
		"a busy card":        {runtime.ErrDeviceBusy, market.CodeCardBusy},
		"a hostile spec":     {runtime.ErrPolicy, market.CodeCardPolicy},
		"no such card":       {runtime.ErrNoDevice, market.CodeCardMissing},
		"a card that left":   {nvml.ErrNoCard, market.CodeCardMissing},
		"an image that left": {runtime.ErrImageNotFound, market.CodeImageGone},
		"a huge image":       {runtime.ErrImageTooBig, market.CodeImageTooBig},
		"a bad job":          {runtime.ErrInvalidSpec, market.CodeBadJob},
		"an engine without":  {runtime.ErrUnsupported, market.CodeJobUnsupported},
		"who knows":          {fmt.Errorf("no idea"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				a := newRenter(r, "ann")
				a.env = market.Env{"A=1"} // not made before the signature
				a.order([]string{"probe", "polite"}, nil)
				if err := a.send(); err != nil {
					t.Fatal(err)
				}
				r.engine.Fail("Create", fmt.Errorf("create job: %w", c.err))
				a.accept()
				pass(time.Second)
				a.wantState(market.JobEnded, market.ReasonPrepare)
				if s := a.status(); s.Code != c.code || s.Total != 0 {
					t.Errorf("status %+v", s)
				}
				if market.Explain(market.NewError(c.code)).Message == "" {
					t.Error("there is no sentence for it")
				}
				if l := r.lease(); l.Wiping || r.free() != 2 {
					t.Error("a job that never got its card still holds it")
				}
			})
		})
	}
}

func TestARenterHearsThatTheDiskOfItsJobIsFull(t *testing.T) {
	onReal(t, func(_ *rig, _ *real, engine *giving) { engine.extra = make(chan runtime.Event) }, func(t *testing.T, _ *rig, a *renter, _ *real, engine *giving) {
		if a.status().DiskFull {
			t.Error("it is full from the beginning")
		}
		engine.extra <- runtime.Event{ID: a.id.String()[:32], Kind: runtime.EventDiskFull}
		pass(6 * time.Second)
		a.wantState(market.JobRunning, "")
		if !a.status().DiskFull {
			t.Error("the renter does not hear of it")
		}
	})
}
