package sim_test

import (
	"testing"

	"haggle/market/sim"
)

// TestEveryMistakeIsFound switches one mistake on at a time: each must break a promise within 500 lives, or the lives prove nothing.
func TestEveryMistakeIsFound(t *testing.T) {
	tests := []struct {
		name string
		bugs sim.Bugs
		sim.Cheat
	}{
		{"a draft leaves before it is stored", sim.Bugs{RigSendsBeforeStore: true}, ""},
		{"a signature leaves before it is stored", sim.Bugs{RenterSendsBeforeStore: true}, ""},
		{"the engine is ordered before that is stored", sim.Bugs{ActsBeforeIntent: true}, ""},
		{"the rig says that it has what it has not stored", sim.Bugs{AcksBeforeStore: true}, ""},
		{"time in which the rig did not run is billed", sim.Bugs{BillsDowntime: true}, ""},
		{"a stalled program bills a lump", sim.Bugs{NoClamp: true}, ""},
		{"what was not paid is billed", sim.Bugs{BillsUnpaid: true}, ""},
		{"a draft is replaced while it is out", sim.Bugs{NewDraftWhileOneIsOut: true}, ""},
		{"a draft is forgotten by a restart", sim.Bugs{DropsDraftOnRestart: true}, ""},
		{"a rig that was put back signs before it knows the heads", sim.Bugs{SignsBeforeHeads: true}, ""},
		{"a store that was put back passes for the lost one", sim.Bugs{KeepsInstance: true}, ""},
		{"an extension is sent once", sim.Bugs{ExtensionSentOnce: true}, ""},
		{"the final receipt is sent once", sim.Bugs{FinalSentOnce: true}, ""},
		{"the renter leaves before the rig has the final receipt", sim.Bugs{LeavesBeforeAck: true}, ""},
		{"the renter does not look at its measure", sim.Bugs{IgnoresTime: true}, sim.CheatOverbill},
		{"the renter measures with the wall clock", sim.Bugs{TrustsWallClock: true}, ""},
		{"the renter's measure is lost by a restart", sim.Bugs{ForgetsMeasure: true}, ""},
		{"a restart forgets the payments", sim.Bugs{ForgetsPaidSeq: true}, ""},
		{"money is signed for twice", sim.Bugs{CountsPaymentTwice: true}, ""},
		{"the renter's word is taken for money", sim.Bugs{BelievesPaid: true}, ""},
		{"money moves before the intent is stored", sim.Bugs{PaysWithoutIntent: true}, ""},
		{"a payment that is tried again is another one", sim.Bugs{PaysUnderNewName: true}, ""},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 500; seed++ {
				if r := sim.Run(seed, sim.Options{Bugs: c.bugs, Cheat: c.Cheat}); r.Fault != "" {
					t.Logf("seed %d: %s", seed, r.Fault)
					return
				}
			}
			t.Error("500 lives did not find it")
		})
	}
}
