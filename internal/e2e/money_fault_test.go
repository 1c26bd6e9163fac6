//go:build linux

package e2e_test

import (
	"slices"
	"testing"

	"haggle/internal/view"
	"haggle/market"
)

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
