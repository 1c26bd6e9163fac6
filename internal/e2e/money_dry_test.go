//go:build linux && soak

package e2e_test

import (
	"strings"
	"testing"

	"haggle/market"
)

// TestAJobWhoseMoneyDoesNotComeIsStoppedKeepsItsDiskAndGoesOnOncePaid takes as long as what was paid first lasts, and its grace.
func TestAJobWhoseMoneyDoesNotComeIsStoppedKeepsItsDiskAndGoesOnOncePaid(t *testing.T) {
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
	if v.Reason != string(market.ReasonUnpaid) || v.BilledMs < market.FirstSliceMs-1000 || v.Spent.Micro > v.Pay.Paid.Micro {
		s.t.Errorf("the job is %s (%s), it ran for %d ms and costs %s of %s that were paid", v.State, v.Reason, v.BilledMs, v.Spent.Text, v.Pay.Paid.Text)
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
