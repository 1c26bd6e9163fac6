//go:build linux

package e2e_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"haggle/internal/view"
	"haggle/market"
)

// fullVar asks for the tests that take minutes.
const fullVar = "HAGGLE_FULL"

// TestAPaymentProgramThatMisbehavesCostsNobodyAnything lets the program of one side die, lie, be late and hang.
func TestAPaymentProgramThatMisbehavesCostsNobodyAnything(t *testing.T) {
	t.Parallel()
	s := newShop(t, shortDir(t))
	for i, c := range []struct{ name, side, fault, state string }{
		{"the payer's dies once it has paid", "payer", "die", ""},
		{"the payer's is late", "payer", "late", ""},
		{"the payer's lies", "payer", "lie", "sent"},
		{"the payee's hangs", "payee", "hang", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := *s
			in.lab, in.own = s.in(t), s.own.in(t)
			in.reprice([]string{"0.18", "0.54", "1.62", "4.86"}[i]) // what is left of one lease does not pay for the next
			in.outlives(c.side, c.fault, c.state)
		})
	}
}

// reprice changes what the rig asks for, and returns when the agent knows.
func (s *shop) reprice(price string) {
	s.t.Helper()
	start(s.t, []string{"HAGGLED_HOME=" + s.own.home}, "haggled", "price", price).wants(0)
	await(s.t, "an offer at "+price, func() bool {
		list, err := s.agent.Offers(s.t.Context(), view.OfferQuery{})
		return err == nil && slices.ContainsFunc(list.Offers, func(o view.Offer) bool { return o.Rig == "own" && o.Price.Text == price })
	})
}

// in returns the rig for a subtest.
func (r *ownRig) in(t *testing.T) *ownRig {
	t.Helper()
	sub := *r
	sub.t = t
	return &sub
}

// outlives has a lease meet a fault before its first payment. The agent's request is in a state while the fault lasts, if one
// is given; then the fault goes, and the job runs, paid once.
func (s *shop) outlives(side, fault, state string) {
	s.t.Helper()
	s.fault(side, fault)
	defer s.fault(side, "")
	lease := s.bid(s.order("bid", "lab", "2m", 5))
	if state != "" {
		await(s.t, "a request for money that is "+state, func() bool {
			v, err := s.agent.Lease(s.t.Context(), lease)
			return err == nil && v.Pay != nil && v.Pay.Asked != nil && v.Pay.Asked.State == state
		})
		if v := s.own.lease(lease); v.State != string(market.JobPreparing) || v.Pay.Payments > 0 {
			s.t.Errorf("without money the job is %s, and the rig says %+v", v.State, v.Pay)
		}
		s.fault(side, "")
	}
	if side == "payee" {
		await(s.t, "a log line of the rig about its program", func() bool { return countLines(s.t, s.own.log, "lease="+lease[:8]) > 1 })
		s.fault(side, "")
	}
	wantExit(s.t, s.settled(lease), market.ReasonCompleted, 0)
	if list := s.transfers(lease); len(list) != 1 {
		s.t.Errorf("the bank has %+v for one slice", list)
	}
}

// TestAJobWhoseMoneyDoesNotComeIsStoppedKeepsItsDiskAndGoesOnOncePaid takes as long as what was paid first lasts, and its grace.
func TestAJobWhoseMoneyDoesNotComeIsStoppedKeepsItsDiskAndGoesOnOncePaid(t *testing.T) {
	if os.Getenv(fullVar) == "" {
		t.Skip("it takes four minutes: set " + fullVar)
	}
	t.Parallel()
	s := newShop(t, shortDir(t))
	lease := s.bid(s.order("bid", "lab", "1h", 3000))
	s.awaitPaid(lease, 1)
	s.fault("payer", "hang")
	for range 5 { // each wait lasts less than a minute
		if s.patiently(lease, market.JobPaused) {
			break
		}
	}
	v := s.awaitState(lease, market.JobPaused)
	if v.Reason != string(market.ReasonUnpaid) || v.BilledMs < market.FirstSliceMs-1000 || v.BilledMs > market.FirstSliceMs {
		s.t.Errorf("the job is %s (%s), %d ms are billed of the %d that were paid", v.State, v.Reason, v.BilledMs, market.FirstSliceMs)
	}
	if !strings.Contains(s.jobLog(lease), "told to stop (SIGTERM)") {
		t.Error("the job was not asked to stop")
	}
	s.fault("payer", "")
	s.haggle("pay", lease).wants(0)
	s.haggle("resume", lease).wants(0)
	s.awaitState(lease, market.JobRunning)
	s.haggle("stop", lease).wants(0)
	wantExit(t, s.settled(lease), market.ReasonRenter, 143)
}

// patiently waits for a state of a job for most of a minute, and tells whether it came.
func (s *shop) patiently(lease string, state market.JobState) bool {
	s.t.Helper()
	before := s.own.lease(lease)
	var now string
	await(s.t, "a job that comes on", func() bool {
		v := s.own.lease(lease)
		now = v.State
		return now == string(state) || v.BilledMs+v.Pay.DryMs > before.BilledMs+before.Pay.DryMs+40_000
	})
	return now == string(state)
}
