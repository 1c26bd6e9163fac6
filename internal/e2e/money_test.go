//go:build linux

package e2e_test

import (
	"strconv"
	"strings"
	"syscall"
	"testing"

	"haggle/internal/view"
	"haggle/market"
)

// TestTwoStrangersRentAndPayWithoutTrust is the whole way with real containers, where the rig gives no credit.
func TestTwoStrangersRentAndPayWithoutTrust(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, manyReceipts()...)
	run := l.haggle("run", "pay=lab", "--image", "lab", "--for", "10m", "--budget", "1.00", "--pay", "lab", "--", "train", "--step-time", "100ms", "--steps", "20")
	run.wants(0)
	wantSteps(t, run.out.String(), 20)
	if want := "it is paid ahead by lab as it runs"; !strings.Contains(run.err.String(), want) {
		t.Errorf("run does not say %q:\n%s", want, run.err.String())
	}
	lease := l.newest(1).ID
	// Two minutes before the start, and the rest of ten minutes as the job runs, at 0.36 an hour.
	final := settled(t, l.agent, l.rig(1), []string{"HAGGLE_HOME=" + l.home}, lease, all(60_000))
	wantExit(t, final, market.ReasonCompleted, 0)
	paid := l.rigLease(1, lease).Pay
	if paid.Paid.Micro != 60_000 || paid.Payments != 2 || paid.Balance.Micro != 60_000-final.Total.Micro {
		t.Errorf("the rig says %+v of a lease that used %s", *paid, final.Total.Text)
	}
	ledger := l.haggled(1, "ledger").wants(0).out.String()
	if !strings.Contains(ledger, strings.TrimSuffix(paid.Balance.Text, " USD")) {
		t.Errorf("the owner's ledger does not say that %s are left:\n%s", paid.Balance.Text, ledger)
	}
	invoice := l.haggle("invoice", lease[:8], "--format", "csv").wants(0).out.String()
	if strings.Count(invoice, lease[:8]) < 3 { // what it used, and two payments
		t.Errorf("the invoice does not hold the lease's bill and payments:\n%s", invoice)
	}
}

func TestWhatIsLeftOfOneLeasePaysForTheNext(t *testing.T) {
	t.Parallel()
	s := newShop(t, shortDir(t))
	first := s.bid(s.order("bid", "lab", "10m", 100))
	s.awaitPaid(first, 2) // for ten minutes, at 0.18 an hour
	s.haggle("stop", first).wants(0)
	s.settled(first)
	before := len(s.transfers(first))
	second := s.bid(s.order("bid", "lab", "5m", 5))
	final := s.settled(second)
	wantExit(t, final, market.ReasonCompleted, 0)
	if n := len(s.transfers(second)); before == 0 || n != 0 {
		t.Errorf("%d transfers paid for the first lease and %d for the second, whose price the balance covers", before, n)
	}
	if v := s.own.lease(second); v.Pay.Payments == 0 || v.Pay.Paid.Micro < final.Total.Micro {
		t.Errorf("the second lease is not paid: %+v", v.Pay)
	}
}

func TestMoneyIsPaidByHandOnceItsOwnerConfirms(t *testing.T) {
	t.Parallel()
	s := newShop(t, shortDir(t), `pay.hand = {text = "Send {amount} {currency} to Ada, reference {reference}.", qr = "ADA:{amount}:{reference}"}`)
	const steps = 1000
	run := s.haggle(s.order("run", "hand", "2m", steps)...)
	await(t, "what the renter must do", func() bool {
		return strings.Contains(run.err.String(), "Send 0.006 USD to Ada") && strings.Contains(run.err.String(), "ADA:0.006:")
	})
	lease := s.own.status().Leases[0].ID
	if v := s.own.lease(lease); v.State != string(market.JobPreparing) || v.Pay.Asked == nil || v.Pay.Payments != 0 {
		t.Errorf("before the money has come the job is %s, and its rig says %+v", v.State, v.Pay)
	}
	s.haggle("confirm", lease, "--rig-home", s.own.home, "--reference", "transfer of May 3rd").wants(0)
	run.awaitOut("step 1/")
	pay := s.haggle("pay", lease, "--amount", "0.10") // more than it asks for
	await(t, "what the renter must do for more", func() bool { return strings.Contains(pay.err.String(), "Send 0.10 USD to Ada") })
	s.haggle("confirm", lease, "--rig-home", s.own.home, "--amount", "0.10").wants(0)
	pay.wants(0)
	s.haggle("stop", lease).wants(0)
	run.wants(143)
	final := settled(t, s.agent, s.own.api, []string{"HAGGLE_HOME=" + s.home}, lease, all(106_000))
	wantExit(t, final, market.ReasonRenter, 143)
	if invoice := s.haggle("invoice", lease[:8]).wants(0).out.String(); !strings.Contains(invoice, "transfer of May 3rd") {
		t.Errorf("the invoice does not name the transfer:\n%s", invoice)
	}
}

// TestProgramsThatStandStillLoseNothing stops each side for ten seconds of a job that is paid ahead.
func TestProgramsThatStandStillLoseNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t, shortDir(t))
	const steps = 240 // 24 s
	lease := s.bid(s.order("bid", "lab", "10m", steps))
	s.awaitPaid(lease, 2)
	me, err := s.agent.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.standsStill(me.PID, lease, 110)
	s.standsStill(s.own.status().PID, lease, 220)
	final := s.settled(lease)
	wantExit(t, final, market.ReasonCompleted, 0)
	wantSteps(t, s.haggle("logs", lease).wants(0).out.String(), steps)
	if v := s.own.lease(lease); v.Pay.Paid.Micro != 30_000 { // ten minutes at 0.18 an hour
		t.Errorf("%s are paid, want 0.03", v.Pay.Paid.Text)
	}
}

// standsStill keeps a process from running until the job of a lease has come to a step.
func (s *shop) standsStill(pid int, lease string, step int) {
	s.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) }) // should the test end early: its end needs it
	s.awaitStep(lease, step)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		s.t.Fatal(err)
	}
}

// awaitStep waits until a job has come to a step, by nothing but its log file.
func (s *shop) awaitStep(lease string, step int) {
	s.t.Helper()
	line := "step " + strconv.Itoa(step) + "/"
	await(s.t, line+" in the job's log file", func() bool { return strings.Contains(s.jobLog(lease), line) })
}

// TestAFullDiskOfARigThatIsPaidAheadTakesNothingOnAndLosesNothing fills the rig's disk while a job that is paid ahead runs.
func TestAFullDiskOfARigThatIsPaidAheadTakesNothingOnAndLosesNothing(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 160<<20)
	s := newShop(t, disk)
	lease := s.bid(s.order("bid", "lab", "10m", 100))
	s.awaitPaid(lease, 2)
	makeRoom := fillDisk(t, disk)
	await(t, "word of the rig that it cannot store", func() bool { return len(s.own.status().Warnings) > 0 })
	refused := s.haggle(s.order("bid", "lab", "10m", 1)...).wants(int(market.ClassFailed))
	wantSaid(t, refused, "the disk of the rig is full: nothing new is taken on", "what runs goes on")
	if v := s.own.lease(lease); v.State != string(market.JobRunning) {
		t.Errorf("on a full disk the job is %s: %s", v.State, v.Reason)
	}
	makeRoom()
	wantExit(t, s.settled(lease), market.ReasonCompleted, 0)
	var open []view.Lease
	await(t, "a rig without open leases and warnings", func() bool {
		status := s.own.status()
		open = status.Leases
		return len(open) == 0 && len(status.Warnings) == 0
	})
	s.settled(s.bid(s.order("bid", "lab", "1m", 2)))
}
