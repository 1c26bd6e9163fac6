package host_test

import (
	"context"
	"testing"
	"time"

	"haggle/market"
	"haggle/runtime"
	"haggle/runtime/runtimetest"
)

// stuckEngine never comes to an end of making a job.
type stuckEngine struct{ *runtimetest.Fake }

func (stuckEngine) Create(ctx context.Context, _ runtime.Spec) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAJobThatIsNeverReadyIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		wait   time.Duration
		stop   bool
		reason market.Reason
	}{
		"when its time is over": {wait: 181 * time.Second, reason: market.ReasonPrepare},
		"when its renter stops": {wait: time.Second, stop: true, reason: market.ReasonRenter},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.stop()
				r.config.Runtime = stuckEngine{r.engine}
				r.start()
				a := newRenter(r, "ann")
				a.rent("probe", "polite")
				if c.stop {
					a.say(market.StopMessage{})
				}
				pass(c.wait)
				a.wantState(market.JobEnded, c.reason)
				if list := a.receipts(); len(list) != 1 || list[0].Bill.Total != 0 || r.free() != 2 {
					t.Errorf("receipts %+v, %d slots free", list, r.free())
				}
			})
		})
	}
}

func TestAKillDoesNotWaitForTheNotice(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "stubborn")
		pass(20 * time.Second)
		a.say(market.StopMessage{})
		pass(time.Second)
		a.wantState(market.JobStopping, market.ReasonRenter)
		a.say(market.StopMessage{Kill: true})
		pass(0)
		a.wantState(market.JobEnded, market.ReasonRenter)
	})
}

func TestAnEngineThatIsLostDuringTheNoticeStillEndsTheJob(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "stubborn")
		pass(20 * time.Second)
		r.engine.SetDown(true)
		a.say(market.StopMessage{})
		pass(10 * time.Second)
		a.wantState(market.JobStopping, market.ReasonRenter)
		r.engine.SetDown(false)
		pass(90 * time.Second) // what is left of the notice is kept
		a.wantState(market.JobStopping, market.ReasonRenter)
		pass(30 * time.Second)
		a.wantState(market.JobEnded, market.ReasonRenter)
	})
}
