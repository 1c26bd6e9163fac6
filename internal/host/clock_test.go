package host_test

import (
	"strings"
	"testing"
	"time"

	"haggle/market"
)

func TestAWallClockThatJumpsChangesNoBill(t *testing.T) {
	for name, jumps := range map[string][]time.Duration{
		"ahead": {3 * time.Minute}, "back": {-3 * time.Hour}, "ahead and back": {4 * time.Minute, -time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				a := newRenter(r, "ann")
				a.rent("probe", "count", "10000")
				for _, jump := range jumps {
					pass(50 * time.Second)
					r.off.Store(jump.Milliseconds())
				}
				pass(5*time.Minute - time.Duration(len(jumps))*50*time.Second)
				a.say(market.StopMessage{})
				pass(2 * time.Second)
				a.wantState(market.JobEnded, market.ReasonRenter)
				list := a.receipts()
				if last := list[len(list)-1]; last.BilledMs != 300_000 || last.Bill.Total != 30_000 {
					t.Errorf("5 minutes are billed as %d ms for %s", last.BilledMs, last.Bill.Total)
				}
				if j := a.judge(); j.Verdict != market.VerdictAgreed {
					t.Errorf("verdict %s: %+v", j.Verdict, j.Checks)
				}
			})
		})
	}
}

func TestTheOwnerSeesWhoseClockIsOffUntilItIsRight(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		warnings := func() []string {
			t.Helper()
			s, err := r.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s.Warnings
		}
		greet := func() {
			t.Helper()
			s := ask(t, r.open(market.KeyOf(private("eve")), r.ServeLease), market.Hello{WallMs: time.Now().UnixMilli()})
			m, err := s.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if theirs, ok := m.(market.Hello); !ok || theirs.WallMs != time.Now().UnixMilli()+r.off.Load() {
				t.Errorf("the rig tells the renter %+v", m)
			}
			s.Close()
		}
		r.off.Store(time.Hour.Milliseconds())
		greet()
		if w := warnings(); len(w) != 1 || !strings.Contains(w[0], "is 1h0m0s behind this machine's") {
			t.Errorf("the owner is warned of %q", w)
		}
		r.off.Store(0)
		greet()
		if w := warnings(); len(w) != 0 {
			t.Errorf("with the clock set right the owner is warned of %q", w)
		}
	})
}
