//go:build linux

package e2e_test

import (
	"testing"

	"haggle/market"
)

func TestAJobOutlivesItsContainerdWhichTheRigStartsAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, manyReceipts()...)
	run := l.haggle(trainJob("run", 80, "--step-time", "100ms", "--exit", "7")...)
	run.awaitOut("step 2/80")
	lease := l.newest(1).ID
	l.awaitReceipt(lease)

	dead := l.containerd(1)
	kill(t, dead)
	// Whoever bids now is served by the new one, or is told in a sentence that the engine is away.
	bid := l.haggle(trainJob("bid", 2)...)
	<-bid.ended
	if code := bid.cmd.ProcessState.ExitCode(); code == int(market.ClassFailed) {
		wantSaid(t, bid, "the rig's container engine does not answer", "it is being restarted")
	} else if code != 0 {
		t.Errorf("a bid while containerd is away ends with %d: %s", code, bid.err.String())
	}
	await(t, "another containerd", func() bool { return l.containerd(1) != dead })

	run.wants(7)
	wantSteps(t, run.out.String(), 80)
	wantExit(t, l.settled(1, lease), market.ReasonCompleted, 7)
	l.awaitFree(1, 2)
	l.haggle(trainJob("run", 2)...).wants(0)
}
