//go:build linux

package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// trainJob orders a job of some steps on the first rig.
func trainJob(verb string, steps int, more ...string) []string {
	args := []string{verb, "--offer", "rig-1", "--image", "lab", "--for", "10m", "--budget", "1.00", "--", "train", "--steps", strconv.Itoa(steps)}
	return append(args, more...)
}

// outage is the time in which a rig was certainly dead, and what is known of the job's time around it.
type outage struct {
	began   int64 // wall time at which the rig saw the job run
	dead    time.Time
	lasting time.Duration
}

// watchStart notes when the rig saw the job run.
func (l *lab) watchStart(lease string) outage {
	l.t.Helper()
	v := l.rigLease(1, lease)
	if v.State != string(market.JobRunning) {
		l.t.Fatalf("the job is %s, it should run", v.State)
	}
	return outage{began: v.Since}
}

// over notes that the rig is about to be started again.
func (o *outage) over() { o.lasting = time.Since(o.dead) }

// wantUnbilled wants that no moment of an outage is billed.
func (l *lab) wantUnbilled(o outage, final view.Receipt) {
	l.t.Helper()
	const clocks = 2 // ms that rounding may take
	ended := l.rigLease(1, final.Lease).Since
	dead := o.lasting.Milliseconds()
	if most := ended - o.began - dead + clocks; final.BilledMs > most {
		l.t.Errorf("%d ms are billed; the job ran for %d and the rig was dead for %d of them", final.BilledMs, ended-o.began, dead)
	}
	if final.UnbilledMs < dead-clocks {
		l.t.Errorf("%d ms are said not to be billed; the rig was dead for %d", final.UnbilledMs, dead)
	}
	if final.BilledMs == 0 {
		l.t.Error("nothing is billed of a job that ran")
	}
}

func TestAJobOutlivesItsRigsDaemonWhichAdoptsItAndBillsNoDowntime(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, manyReceipts()...)
	run := l.haggle(trainJob("run", 120, "--step-time", "100ms")...)
	run.awaitOut("step 1/120")
	lease := l.newest(1).ID
	l.awaitReceipt(lease)
	o := l.watchStart(lease)

	l.killRig(1)
	o.dead = time.Now()
	l.awaitStep(1, lease, 40) // nobody but the job and its logger is left to write it
	o.over()
	l.restartRig(1)
	l.awaitAdoption(lease)

	run.wants(0)
	wantSteps(t, run.out.String(), 120)
	final := l.settled(1, lease)
	l.wantUnbilled(o, final)
	wantExit(t, final, market.ReasonCompleted, 0)
	l.awaitFree(1, 2)
}

func TestAJobThatEndsWhileItsRigIsDeadIsSettledAfterwards(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, manyReceipts()...)
	run := l.haggle(trainJob("run", 20, "--step-time", "100ms", "--exit", "7")...)
	run.awaitOut("step 4/20")
	lease := l.newest(1).ID

	l.killRig(1)
	await(t, "the job's last word", func() bool { return strings.Contains(l.logFile(1, lease), "saved ckpt.json at step 20") })
	l.restartRig(1)

	run.wants(7)
	wantSteps(t, run.out.String(), 20)
	wantExit(t, l.settled(1, lease), market.ReasonCompleted, 7)
	l.awaitFree(1, 2)
}

func TestAJobOutlivesTheAgentAndTheNextCommandsAgentTakesItUp(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, manyReceipts()...)
	lease := strings.TrimSpace(l.haggle(trainJob("bid", 80, "--step-time", "100ms")...).wants(0).out.String())
	l.awaitReceipt(lease)

	l.killAgent()
	l.awaitStep(1, lease, 45)
	if v := l.rigLease(1, lease); v.State != string(market.JobRunning) {
		t.Errorf("without its renter's agent the job is %s: %s", v.State, v.Reason)
	}

	logs := l.haggle("logs", "-f", lease).wants(0)
	wantSteps(t, logs.out.String(), 80)
	if !strings.Contains(logs.err.String(), "haggle: started the agent") {
		t.Errorf("the command did not say that it started an agent:\n%s", logs.err.String())
	}
	wantExit(t, l.settled(1, lease), market.ReasonCompleted, 0)
}

func TestAJobOutlivesAgentRigAndContainerdAllAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, manyReceipts()...)
	run := l.haggle(trainJob("run", 120, "--step-time", "100ms")...)
	run.awaitOut("step 1/120")
	lease := l.newest(1).ID
	l.awaitReceipt(lease)
	o := l.watchStart(lease)

	kill(t, l.containerd(1))
	l.killRig(1)
	o.dead = time.Now()
	l.killAgent()
	l.awaitStep(1, lease, 40)
	o.over()
	l.restartRig(1)
	l.awaitAdoption(lease)

	run.wants(0)
	wantSteps(t, run.out.String(), 120)
	final := l.settled(1, lease)
	l.wantUnbilled(o, final)
	wantExit(t, final, market.ReasonCompleted, 0)
	wantSteps(t, l.haggle("logs", lease).wants(0).out.String(), 120)
}

func TestAnAgentThatStandsStillForAMomentLosesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, manyReceipts()...)
	run := l.haggle(trainJob("run", 50, "--step-time", "100ms")...)
	run.awaitOut("step 5/50")
	lease := l.newest(1).ID
	s, err := l.agent.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	signal := func(sig syscall.Signal) {
		if err := syscall.Kill(s.PID, sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	t.Cleanup(func() { _ = syscall.Kill(s.PID, syscall.SIGCONT) }) // should the test end early: lab down needs it
	l.awaitStep(1, lease, 30)
	signal(syscall.SIGCONT)

	run.wants(0)
	wantSteps(t, run.out.String(), 50)
	wantExit(t, l.settled(1, lease), market.ReasonCompleted, 0)
}

// awaitReceipt waits until both sides have signed a receipt of a job that runs.
func (l *lab) awaitReceipt(lease string) {
	l.t.Helper()
	await(l.t, "a receipt that both signed", func() bool { return l.rigLease(1, lease).Receipts > 0 })
}

// awaitAdoption waits until a daemon that was started again bills a job that still runs.
func (l *lab) awaitAdoption(lease string) {
	l.t.Helper()
	before := l.rigLease(1, lease)
	await(l.t, "adoption of the job", func() bool {
		now := l.rigLease(1, lease)
		if now.State != string(market.JobRunning) {
			l.t.Fatalf("the job is %s: %s; it should run and be adopted", now.State, now.Reason)
		}
		return now.BilledMs > before.BilledMs
	})
}

// containerd returns the process of a rig's own containerd.
func (l *lab) containerd(rig int) int {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(l.rigHome(rig), "run/containerd/containerd.pid"))
	if err != nil {
		l.t.Fatal(err)
	}
	var p struct{ PID int }
	if err := json.Unmarshal(text, &p); err != nil || p.PID == 0 {
		l.t.Fatalf("%s: %v", text, err)
	}
	return p.PID
}

// wantExit wants a final receipt that says how the job ended.
func wantExit(t *testing.T, final view.Receipt, reason market.Reason, code int64) {
	t.Helper()
	if final.Exit == nil || final.Exit.Reason != reason || final.Exit.Code != code {
		t.Errorf("the final receipt says %+v, want %s and code %d", final.Exit, reason, code)
	}
}
