package host_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"haggle/market"
	"haggle/runtime"
)

func TestADaemonThatComesBackAdoptsItsJobsAndBillsNoneOfItsAbsence(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.setMute(true)
		a.rent("probe", "stubborn")
		pass(33 * time.Second)
		draft := a.drafts[0]
		r.stop()
		if l := r.lease(); l.Meter.BilledMs != 33_000 {
			t.Errorf("%d ms are billed at the end of the daemon's life", l.Meter.BilledMs)
		}
		pass(10 * time.Minute)
		r.start()
		pass(time.Second)
		if l := r.lease(); l.Job != market.JobRunning || l.Meter.BilledMs > 34_000 || l.Meter.UnbilledMs < 599_000 {
			t.Fatalf("job %s, billed %d, not billed %d", l.Job, l.Meter.BilledMs, l.Meter.UnbilledMs)
		}
		a.setMute(false)
		a.connect()
		if last := a.drafts[len(a.drafts)-1]; !bytes.Equal(last, draft) {
			t.Error("the draft has other bytes than before")
		}
		pass(30 * time.Second)
		a.say(market.StopMessage{Kill: true})
		pass(time.Second)
		a.wantState(market.JobEnded, market.ReasonRenter)
		list := a.receipts()
		if last := list[len(list)-1]; last.BilledMs < 63_000 || last.BilledMs > 65_000 || last.Exit.Code != 137 {
			t.Errorf("last receipt %+v", last)
		}
		if j := a.judge(); j.Verdict != market.VerdictAgreed {
			t.Errorf("verdict %s: %+v", j.Verdict, j.Checks)
		}
	})
}

func TestADaemonThatComesBackFindsHowAJobHasEnded(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(r *rig, job string)
		reason    market.Reason
		code      int64
	}{
		"by itself":            {func(*rig, string) {}, market.ReasonCompleted, 0},
		"by nobody knows what": {func(r *rig, job string) { r.engine.Lose(job) }, market.ReasonLost, 125},
		"without a trace": {func(r *rig, job string) {
			if err := r.engine.Remove(r.t.Context(), job); err != nil {
				r.t.Fatal(err)
			}
		}, market.ReasonLost, 125},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				a := newRenter(r, "ann")
				a.rent("probe", "wait", "60")
				pass(30 * time.Second)
				r.stop()
				c.meanwhile(r, a.id.String()[:32])
				pass(time.Minute)
				r.start()
				pass(2 * time.Second)
				a.connect()
				a.wantState(market.JobEnded, c.reason)
				list := a.receipts()
				if last := list[len(list)-1]; last.BilledMs != 30_000 || last.Exit.Code != c.code {
					t.Errorf("last receipt %+v, exit %+v", last, last.Exit)
				}
			})
		})
	}
}

func TestADaemonThatComesBackGoesOnWhereItWas(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		r.engine.SetDown(true)
		r.engine.SetDown(false)
		pass(time.Second)
		a.env = market.Env{"TOKEN=x"} // a job that cannot be made before the signature
		a.order([]string{"probe", "polite"}, nil)
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		r.engine.SetDown(true)
		a.accept()
		pass(5 * time.Second)
		a.wantState(market.JobPreparing, "")
		r.stop()
		r.engine.SetDown(false)
		r.start()
		pass(2 * time.Second)
		a.connect()
		a.wantState(market.JobRunning, "")
	})
}

func TestWhatNoLeaseKeepsIsSwept(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		r.stop()
		other := newRig(t)
		other.engine = r.engine
		other.image = r.image
		other.config.Runtime = r.engine
		other.start()
		pass(time.Second)
		if list, err := r.engine.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("%d jobs: %v", len(list), err)
		}
		other.stop()
		r.start()
	})
}

func TestTimeInWhichTheEngineIsAwayIsNotBilled(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "count", "1000")
		pass(30 * time.Second)
		r.engine.SetDown(true)
		pass(5 * time.Minute)
		// Neither a call by the renter nor a break makes time pass for the bill.
		a.hangUp()
		pass(time.Minute)
		a.connect()
		if got := a.status().BilledMs; got > 30_000 {
			t.Errorf("billed %d while nobody saw the job", got)
		}
		r.engine.SetDown(false)
		billed := int64(30_000)
		for billed == 30_000 { // the engine is asked again within 10 s
			pass(100 * time.Millisecond)
			list, err := r.Leases(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			billed = list[0].BilledMs
		}
		if billed > 31_000 {
			t.Errorf("%d ms are billed for the time before the job was seen again", billed-31_000)
		}
		pass(10 * time.Second)
		l := r.lease()
		if l.Job != market.JobRunning || l.Meter.BilledMs < 35_000 || l.Meter.BilledMs > 41_000 || l.Away {
			t.Errorf("job %s, billed %d, away %t", l.Job, l.Meter.BilledMs, l.Away)
		}
		if sum := l.Meter.BilledMs + l.Meter.UnbilledMs; sum < 400_000 || sum > 411_000 {
			t.Errorf("billed %d and not billed %d: together not the time since the start", l.Meter.BilledMs, l.Meter.UnbilledMs)
		}
	})
}

func TestAJobThatEndsWhileTheEngineIsAwayIsFound(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "wait", "60")
		pass(30 * time.Second)
		r.engine.SetDown(true)
		pass(2 * time.Minute)
		r.engine.SetDown(false)
		pass(12 * time.Second)
		a.wantState(market.JobEnded, market.ReasonCompleted)
		list := a.receipts()
		if last := list[len(list)-1]; last.BilledMs > 30_000 {
			t.Errorf("billed %d", last.BilledMs)
		}
	})
}

func TestWhatTheStoreDoesNotTakeIsNeitherDoneNorLost(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "wait", "20")
		pass(15 * time.Second)
		r.store.breakWith(errors.New("disk full"))
		pass(10 * time.Second)
		a.wantState(market.JobRunning, "")
		r.store.breakWith(nil)
		pass(2 * time.Second)
		a.wantState(market.JobEnded, market.ReasonCompleted)
		list := a.receipts()
		if last := list[len(list)-1]; last.BilledMs > 20_000 {
			t.Errorf("billed %d of 20 s", last.BilledMs)
		}
	})
}

func TestAJobWhoseLeaseCannotBeStoredEndsWithinItsLimitAndKeepsItsDisk(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		pass(30 * time.Second)
		r.store.breakWith(errors.New("disk full"))
		pass(3*time.Minute - 5*time.Second)
		if list := r.jobs(); len(list) != 1 || list[0].State != runtime.Running {
			t.Errorf("jobs %+v", list)
		}
		pass(20 * time.Second)
		if list := r.jobs(); len(list) != 1 || list[0].State == runtime.Running {
			t.Errorf("jobs %+v", list)
		}
		pass(time.Hour)
		r.store.breakWith(nil)
		pass(5 * time.Second)
		a.wantState(market.JobPaused, market.ReasonFault)
		if l := r.lease(); l.Meter.BilledMs > 38_000 {
			t.Errorf("%d ms are billed", l.Meter.BilledMs)
		}
		a.say(market.ResumeMessage{})
		pass(3 * time.Second)
		a.wantState(market.JobRunning, "")
	})
}

func TestTheTimeInWhichTheProgramDidNotRunGoesByTheClockThatNobodySets(t *testing.T) {
	for name, c := range map[string]struct {
		boot byte // of the second life; the first is 1
		ms   int64
	}{
		"the same boot":    {1, 600_000},
		"another boot":     {2, 86_400_000 + 600_000},
		"nobody knows any": {0, 86_400_000 + 600_000},
	} {
		t.Run(name, func(t *testing.T) {
			boot := min(c.boot, 1)
			inBubbleOf(t, func(r *rig) {
				born := time.Now()
				r.config.Boot = func() (int64, market.Nonce) { return 5000 + time.Since(born).Milliseconds(), market.Nonce{boot} }
			}, func(t *testing.T, r *rig) {
				a := newRenter(r, "ann")
				a.rent("probe", "polite")
				pass(30 * time.Second)
				r.stop()
				a.hangUp()
				pass(10 * time.Minute)
				r.off.Store(86_400_000) // somebody sets the wall clock
				boot = c.boot
				r.start()
				pass(3 * time.Second)
				var down int64
				for _, g := range r.lease().Gaps {
					if g.Reason == market.UnbilledDown {
						down = g.Ms
					}
				}
				if down < c.ms-2000 || down > c.ms+2000 {
					t.Errorf("%d ms down, want %d", down, c.ms)
				}
			})
		})
	}
}

func TestReceiptsThatTheRenterLostComeBackInOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "count", "1000")
		pass(135 * time.Second)
		a.setMute(true)
		pass(time.Minute)
		a.hangUp()
		a.setMute(false)
		a.head, a.agreed, a.drafts = market.Head{}, nil, nil
		a.connect()
		var seqs []uint32
		for _, receipt := range a.receipts() {
			seqs = append(seqs, receipt.Seq)
		}
		if want := []uint32{1, 2, 3, 4}; !slices.Equal(seqs, want) {
			t.Errorf("receipts %v, want %v", seqs, want)
		}
	})
}

func TestASignatureThatTheRigLostIsGivenAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "count", "1000")
		pass(9 * time.Second)
		a.setMute(true)
		pass(2 * time.Second)
		a.setMute(false)
		a.sign(a.drafts[0]) // signed, and the connection breaks before it is sent
		a.hangUp()
		a.connect()
		if l := r.lease(); l.Head.Seq != 1 || l.Draft != nil {
			t.Errorf("head %d, draft %v", l.Head.Seq, l.Draft)
		}
	})
}
