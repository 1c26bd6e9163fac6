package host_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"haggle/market"
	"haggle/runtime"
)

// trial is a lease to which everything happens that can, in an order made from a seed.
type trial struct {
	*rig
	giving   *giving
	a        *renter
	dice     *rand.Rand
	up, seen bool          // the daemon lives; the engine answers
	linked   bool          // the renter is connected
	visible  time.Duration // in which the rig could see the job, at most
	turns    int           // of engine and daemon, each worth a moment of doubt
	log      []string
}

func TestWhateverHappensTheBillStaysTrue(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			engine := &giving{}
			inBubbleOf(t, func(r *rig) {
				engine.Fake, r.config.Runtime = r.engine, engine
				r.config.Prices.In, r.config.Prices.Disk = 500_000, 100
			}, func(t *testing.T, r *rig) {
				tr := &trial{rig: r, giving: engine, a: newRenter(r, "ann"), dice: rand.New(rand.NewPCG(seed, 1)), up: true, seen: true, linked: true, visible: time.Second}
				tr.a.order([]string{"probe", "count", "5000"}, func(b *market.Bid, _ *market.BidMessage) { b.Budget = 150_000 })
				if err := tr.a.send(); err != nil {
					t.Fatal(err)
				}
				tr.a.accept()
				pass(time.Second)
				for range 40 {
					tr.turn()
					tr.check()
				}
				tr.settle()
				if t.Failed() {
					t.Log(tr.log)
				}
			})
		})
	}
}

// turn lets one thing happen, and some time pass.
func (tr *trial) turn() {
	what := tr.dice.IntN(9)
	tr.log = append(tr.log, fmt.Sprint(what))
	switch what {
	case 0:
		tr.turns++
		if tr.up = !tr.up; tr.up {
			tr.life()
		} else {
			tr.a.hangUp()
			tr.linked = false
			tr.stop()
		}
	case 1:
		tr.turns++
		tr.seen = !tr.seen
		tr.engine.SetDown(!tr.seen)
	case 2:
		if tr.linked {
			tr.a.hangUp()
			tr.linked = false
		} else if tr.up {
			tr.a.connect()
			tr.linked = true
		}
	case 3:
		tr.a.setMute(tr.dice.IntN(2) == 0)
	case 4:
		tr.store.breakWith(errors.New("disk full"))
	case 5, 6:
		if tr.linked && tr.up {
			tr.order()
		}
	default:
		tr.store.breakWith(nil)
	}
	d := time.Duration(tr.dice.IntN(40_000)) * time.Millisecond
	tr.giving.change(func() { tr.giving.use.NetInBytes += uint64(tr.dice.IntN(8_000_000)) })
	pass(d)
	if tr.up && tr.seen {
		tr.visible += d
	}
}

// order pauses the lease, or goes on with it, or asks for more. The conversation may be over without the renter's knowing.
func (tr *trial) order() {
	var m market.Message = market.StopMessage{Keep: true}
	switch {
	case tr.dice.IntN(4) == 0:
		m = market.ExtendMessage{Extension: tr.a.extension(time.Hour, 10_000, nil)}
	case tr.lease().Job == market.JobPaused:
		m = market.ResumeMessage{}
	}
	if tr.a.stream.Send(tr.t.Context(), m) == nil {
		synctest.Wait()
	}
}

// life starts the daemon, which needs a store.
func (tr *trial) life() {
	tr.store.breakWith(nil)
	down := !tr.seen
	tr.engine.SetDown(false) // without an engine there is no offer to wait for
	tr.start()
	tr.engine.SetDown(down)
}

func (tr *trial) check() {
	tr.t.Helper()
	l := tr.lease()
	if budget := l.Current().Budget; l.Total() > budget {
		tr.t.Errorf("total %s is over the budget %s", l.Total(), budget)
	}
	doubt := time.Duration(tr.turns) * 2 * time.Second
	if billed := time.Duration(l.Meter.BilledMs) * time.Millisecond; billed > tr.visible+doubt {
		tr.t.Errorf("billed %s of at most %s", billed, tr.visible+doubt)
	}
}

// settle makes everything work again: whatever happened, both sides come to the same bill.
func (tr *trial) settle() {
	tr.t.Helper()
	tr.store.breakWith(nil)
	tr.engine.SetDown(false)
	if !tr.up {
		tr.start()
	}
	tr.a.setMute(false)
	if tr.linked {
		tr.a.hangUp()
	}
	pass(15 * time.Second)
	tr.a.connect()
	tr.a.say(market.StopMessage{Kill: true})
	pass(15 * time.Second)
	l := tr.lease()
	if l.Job != market.JobEnded || l.Debt != market.DebtFinal || tr.free() != 2 {
		tr.t.Fatalf("job %s, debt %s, %d slots free", l.Job, l.Debt, tr.free())
	}
	if j := tr.a.judge(); j.Verdict != market.VerdictAgreed || j.Head.Total != l.Head.Total {
		tr.t.Errorf("verdict %s: %+v", j.Verdict, j.Checks)
	}
	jobs, err := tr.engine.List(tr.t.Context())
	if err != nil || slices.ContainsFunc(jobs, func(s runtime.Status) bool { return s.Exit == nil }) {
		tr.t.Errorf("jobs %+v: %v", jobs, err)
	}
}
