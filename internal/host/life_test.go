package host_test

import (
	"slices"
	"testing"
	"time"

	"haggle/market"
)

func TestALeaseLivesItsWholeLife(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.env = market.Env{"A=1"}
		a.rent("probe", "count", "10000")
		if got := r.free(); got != 1 {
			t.Errorf("%d slots are free beside one lease", got)
		}
		pass(5 * time.Minute)
		a.say(market.StopMessage{})
		pass(2 * time.Second)
		a.wantState(market.JobEnded, market.ReasonRenter)
		want := []market.JobState{market.JobPreparing, market.JobStarting, market.JobRunning, market.JobStopping, market.JobEnded}
		if got := a.states(); !slices.Equal(got, want) {
			t.Errorf("states %v, want %v", got, want)
		}
		var billed []int64
		for _, receipt := range a.receipts() {
			billed = append(billed, receipt.BilledMs)
		}
		// 10 s, then every 60 s, then what the job ran in all. 100 millionths a second.
		if want := []int64{10_000, 70_000, 130_000, 190_000, 250_000, 300_000}; !slices.Equal(billed, want) {
			t.Errorf("billed %v, want %v", billed, want)
		}
		if j := a.judge(); j.Verdict != market.VerdictAgreed || j.Head.Total != 30_000 {
			t.Errorf("verdict %s, total %s: %+v", j.Verdict, j.Head.Total, j.Checks)
		}
		if got := r.free(); got != 2 {
			t.Errorf("%d slots are free after the lease", got)
		}
		if l := r.lease(); l.Debt != market.DebtFinal || l.Draft != nil {
			t.Errorf("debt %s, draft %v", l.Debt, l.Draft)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if want := []uint32{1, 2, 3, 4, 5, 6}; !slices.Equal(a.acks, want) {
			t.Errorf("acknowledged %v, want %v", a.acks, want)
		}
	})
}

func TestAReceiptHoldsWhatTheCardDid(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "stubborn")
		pass(11 * time.Second)
		first := a.receipts()[0]
		if len(first.Slots) != 1 {
			t.Fatalf("%d slots", len(first.Slots))
		}
		u := first.Slots[0]
		if u.UtilPermilleMs == nil || *u.UtilPermilleMs < 7*900_000 || *u.UtilPermilleMs > 10*900_000 {
			t.Errorf("utilisation %v", u.UtilPermilleMs)
		}
		if u.EnergyMJ == nil || *u.EnergyMJ <= 0 || u.PeakMemory == nil || *u.PeakMemory < 10<<30 {
			t.Errorf("energy %v, memory %v", u.EnergyMJ, u.PeakMemory)
		}
		if u.ECCUncorrected != nil || u.LastXid != nil {
			t.Errorf("unknown numbers are %v and %v", u.ECCUncorrected, u.LastXid)
		}
	})
}

func TestTheFinalReceiptHoldsTheJobsExitCode(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "exit", "7")
		pass(time.Second)
		a.wantState(market.JobEnded, market.ReasonCompleted)
		list := a.receipts()
		if len(list) != 1 || list[0].Exit == nil || list[0].Exit.Code != 7 || list[0].Bill.Total != 0 {
			t.Errorf("receipts %+v", list)
		}
	})
}

func TestAJobThatCannotBeMadeCostsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("no-such-program")
		pass(time.Second)
		a.wantState(market.JobEnded, market.ReasonPrepare)
		if list := a.receipts(); len(list) != 1 || list[0].Bill.Total != 0 || list[0].Exit.Code != 125 {
			t.Errorf("receipts %+v", list)
		}
	})
}

func TestTheRigKeepsALogForADayAndThenWipesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "print", "hello")
		pass(23 * time.Hour)
		if list, err := r.engine.List(t.Context()); err != nil || len(list) != 1 {
			t.Fatalf("%d jobs: %v", len(list), err)
		}
		pass(90 * time.Minute)
		if list, err := r.engine.List(t.Context()); err != nil || len(list) != 0 {
			t.Fatalf("%d jobs: %v", len(list), err)
		}
		if l := r.lease(); !l.Closed() {
			t.Errorf("lease %+v is not closed", l)
		}
		// What is closed is still told to its renter.
		a.head = market.Head{}
		a.agreed = nil
		a.connect()
		a.wantState(market.JobEnded, market.ReasonCompleted)
		if len(a.receipts()) != 1 {
			t.Errorf("%d receipts", len(a.receipts()))
		}
		a.hangUp()
	})
}
