//go:build linux

package e2e_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"haggle/internal/view"
	"haggle/market"
)

// Flags of the test of crashes; `make soak` sets them.
var (
	kills    = flag.Int("kills", 10, "programs that are killed while a lease is paid")
	killSeed = flag.Uint64("kill-seed", 1, "the seed of their order and moments")
)

// TestAgentRigAndPaymentProgramMayBeKilledAtAnyMoment kills one of the three again and again while a lease runs and its renter
// pays for it, then wants both sides to hold the same, nothing paid twice, and nothing lost.
func TestAgentRigAndPaymentProgramMayBeKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	s := newShop(t, shortDir(t))
	k := killing{shop: s, random: rand.New(rand.NewPCG(*killSeed, 0))} //nolint:gosec // the same again for a seed
	k.slowPrograms()
	k.lease = s.bid(s.order("bid", "slow", "7d", 1_000_000, "--budget", "900"))
	s.awaitState(k.lease, market.JobRunning)
	for n := range *kills {
		k.round(n)
	}
	s.haggle("stop", k.lease).wants(0)
	final := k.settled(k.lease)
	wantExit(t, final, market.ReasonRenter, 143)
	k.wantEachOnce()
}

// killing is the test of crashes.
type killing struct {
	*shop
	random *rand.Rand
	lease  string
	wishes []int64 // amounts that the user wanted to pay
}

// slowPrograms puts a payment program before the lab's that takes its time on both sides of the payment, so that it can be met.
func (k *killing) slowPrograms() {
	k.t.Helper()
	dir := filepath.Join(k.home, "programs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		k.t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nsleep 0.1\nanswer=$(%s) || exit 1\nsleep 0.1\nprintf '%%s' \"$answer\"\n", programPath("haggle-pay-lab"))
	if err := os.WriteFile(filepath.Join(dir, "haggle-pay-slow"), []byte(script), 0o700); err != nil {
		k.t.Fatal(err)
	}
	k.useSlow(filepath.Join(k.own.home, "haggled.toml"), "pay.lab = ", fmt.Sprintf("pay.path = [%q]\npay.slow = ", dir))
	k.useSlow(filepath.Join(k.home, "config.toml"), "[pay.lab]\n", fmt.Sprintf("path = [%q]\n[pay.slow]\n", dir))
	if err := k.own.end(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
	k.own.up()
	k.haggle("agent", "stop").wants(0)
	await(k.t, "an offer that takes the slow way of paying", func() bool {
		p := k.haggle("offers", "pay=slow")
		<-p.ended
		return p.cmd.ProcessState.ExitCode() == 0
	})
}

func (k *killing) useSlow(file, old, instead string) {
	k.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		k.t.Fatal(err)
	}
	if bytes.Count(text, []byte(old)) != 1 {
		k.t.Fatalf("%s has no %q:\n%s", file, old, text)
	}
	write(k.t, file, string(bytes.Replace(text, []byte(old), []byte(instead), 1)))
}

// round has the user pay something, kills a program at some moment, and starts it again.
func (k *killing) round(n int) {
	k.t.Helper()
	k.awaitStill()
	amount, told := int64(1000+n), make(chan struct{})
	k.wishes = append(k.wishes, amount)
	go func() {
		defer close(told)
		_, _ = k.agent.PayLease(k.t.Context(), k.lease, view.PayRequest{AmountMicro: amount}) // the agent may die meanwhile
	}()
	moment := k.random.IntN(25) // times 20 ms
	await(k.t, "the moment of a crash", func() bool { moment--; return moment < 0 })
	switch k.random.IntN(3) {
	case 0:
		k.killAgent()
	case 1:
		kill(k.t, k.own.status().PID)
		k.own.up()
	default:
		k.killPrograms()
	}
	<-told
	await(k.t, "an agent", func() bool { // started where it is dead; one that is dying may still take the question
		p := k.haggle("status")
		<-p.ended
		return p.cmd.ProcessState.ExitCode() == 0
	})
	signed := k.own.lease(k.lease).Receipts
	await(k.t, "a job that runs, and another receipt that both signed", func() bool {
		v := k.own.lease(k.lease)
		if v.State != string(market.JobRunning) {
			k.t.Fatalf("after kill %d the job is %s: %s", n, v.State, v.Reason)
		}
		return v.Receipts > signed
	})
}

// killPrograms kills the payment programs that run for this lab.
func (k *killing) killPrograms() {
	k.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		k.t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(line, []byte(k.home+"/programs/haggle-pay-slow")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}

// awaitStill waits until no payment is on its way: one at a time is made. One may have failed, where the rig's program was killed
// as it said that it takes money.
func (k *killing) awaitStill() {
	k.t.Helper()
	await(k.t, "the end of the last payment", func() bool {
		v, err := k.agent.Lease(k.t.Context(), k.lease)
		return err == nil && v.Connected && v.Pay != nil && (v.Pay.Asked == nil || v.Pay.Asked.State == "failed")
	})
}

// wantEachOnce wants no wish to be paid twice, and most of them to be paid: a crash may come before the agent has heard of one.
func (k *killing) wantEachOnce() {
	k.t.Helper()
	paid := map[int64]int{}
	list := k.transfers(k.lease)
	for _, t := range list {
		paid[t.Amount]++
	}
	done := 0
	for _, amount := range k.wishes {
		if paid[amount] > 1 {
			k.t.Errorf("%d were to be paid, and were paid %d times", amount, paid[amount])
		}
		done += paid[amount]
	}
	if 2*done < len(k.wishes) {
		k.t.Errorf("of %d wishes %d were paid: %+v", len(k.wishes), done, list)
	}
	v, err := k.agent.Lease(k.t.Context(), k.lease)
	if err != nil || v.Pay.Sent != v.Pay.Paid {
		k.t.Errorf("the agent sent %s, and the rig has signed for %s: %v", v.Pay.Sent.Text, v.Pay.Paid.Text, err)
	}
	k.t.Logf("%d payments, %d receipts", len(list), v.Receipts)
}
