//go:build linux

package e2e_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"haggle/market"
)

// TestEveryEndOfAJobIsNamedInItsFinalReceipt has one lab for all ways to end a job. The job that uses up its budget takes
// a minute, for a budget must pay for the first one: it runs beside the others.
func TestEveryEndOfAJobIsNamedInItsFinalReceipt(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3)
	// At 2.40 an hour a minute costs 0.04.
	spent := l.haggle("run", "gpu_name=H100*", "--image", "lab", "--for", "10m", "--budget", "0.04", "--", "train", "--steps", "100000")
	spent.awaitOut("step 1/")
	poor := l.newest(3)

	t.Run("stop lets a job save its work", func(t *testing.T) {
		l := l.in(t)
		run, lease := l.endless()
		l.haggle("stop", lease).wants(0)
		run.wants(143)
		for _, want := range []string{"told to stop (SIGTERM) at step", "saved ckpt.json at step"} {
			if !strings.Contains(run.err.String(), want) {
				t.Errorf("the log has no %q:\n%s", want, run.err.String())
			}
		}
		wantExit(t, l.settled(1, lease), market.ReasonRenter, 143)
	})
	t.Run("stop --kill ends a job that does not listen", func(t *testing.T) {
		l := l.in(t)
		run, lease := l.endless("--ignore-term")
		l.haggle("stop", lease).wants(0)
		await(t, "the job's answer to SIGTERM", func() bool { return strings.Contains(run.err.String(), "going on because of --ignore-term") })
		l.haggle("stop", "--kill", lease).wants(0)
		run.wants(137)
		wantExit(t, l.settled(1, lease), market.ReasonRenter, 137)
	})
	t.Run("the leased time ends a job", func(t *testing.T) {
		l := l.in(t)
		run := l.haggle("run", "--offer", "rig-1", "--image", "lab", "--for", "2s", "--", "train", "--steps", "100000").wants(143)
		lease := l.newest(1).ID
		final := l.settled(1, lease)
		wantExit(t, final, market.ReasonExpired, 143)
		if final.BilledMs != 2000 {
			t.Errorf("%d ms are billed of a lease of 2 s that was used up", final.BilledMs)
		}
		if !strings.Contains(run.err.String(), "ended: expired, exit 143;") {
			t.Errorf("run does not say how the job ended:\n%s", run.err.String())
		}
	})
	t.Run("Ctrl-C leaves a job running and says how to come back", func(t *testing.T) { l.in(t).detaches() })
	t.Run("a detached run prints the lease's id", func(t *testing.T) {
		l := l.in(t)
		lease := strings.TrimSpace(l.haggle(slices.Insert(trainJob("run", 5), 1, "--detach")...).wants(0).out.String())
		wantSteps(t, l.haggle("logs", "-f", lease[:8]).wants(0).out.String(), 5)
		wantExit(t, l.settled(1, lease), market.ReasonCompleted, 0)
	})
	t.Run("the budget ends a job", func(t *testing.T) {
		l := l.in(t)
		spent.wants(143)
		final := l.settled(3, poor.ID)
		wantExit(t, final, market.ReasonBudget, 143)
		if final.Total.Micro != 40_000 || final.BilledMs < 60_000 {
			t.Errorf("%s are billed for %d ms of a budget of 0.04", final.Total.Text, final.BilledMs)
		}
	})
	l.awaitFree(1, 2)
	l.awaitFree(3, 2)
}

// endless runs a job on the first rig that would never end, and returns when it has taken a step.
func (l *lab) endless(more ...string) (run *program, lease string) {
	l.t.Helper()
	run = l.haggle(trainJob("run", 100000, more...)...)
	run.awaitOut("step 2/")
	return run, l.newest(1).ID
}

func (l *lab) detaches() {
	t := l.t
	t.Helper()
	run := l.haggle(trainJob("run", 20)...)
	run.awaitOut("step 2/20")
	lease := l.newest(1).ID
	if err := run.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	run.wants(130)
	for _, want := range []string{"lease " + lease[:8] + " goes on", "`haggle logs -f " + lease[:8] + "`", "`haggle stop " + lease[:8] + "`"} {
		if !strings.Contains(run.err.String(), want) {
			t.Errorf("run does not say %q when it leaves:\n%s", want, run.err.String())
		}
	}
	wantSteps(t, l.haggle("logs", "-f", lease).wants(0).out.String(), 20)
	wantExit(t, l.settled(1, lease), market.ReasonCompleted, 0)
}
