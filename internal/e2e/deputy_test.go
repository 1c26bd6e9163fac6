//go:build linux

package e2e_test

import (
	"testing"

	"haggle/internal/view"
	"haggle/market"
)

// TestADeputySignsAndPaysWhileTheAgentIsDead has the agent's own account pay for the start alone: the rest is its deputy's.
func TestADeputySignsAndPaysWhileTheAgentIsDead(t *testing.T) {
	t.Parallel()
	s := newShop(t, shortDir(t))
	env, agent := s.second("secret = \"poor\"\ncap = \"0.006\"") // two minutes at 0.18 an hour
	deputyEnv, deputy := s.second(`secret = "attic"`)
	me, err := agent.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other, err := deputy.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	start(t, env, "haggle", "deputy", "add", other.Network.Key, "--name", "attic").wants(0)
	start(t, deputyEnv, "haggle", "deputy", "serve", me.Network.Key, "--name", "laptop", "--cap", "0.50").wants(0)

	bid := start(t, env, "haggle", s.order("bid", "lab", "10m", 150, "--deputies", "--unattended", "5m")...).wants(0)
	lease := trim(bid)
	s.awaitPaid(lease, 1)
	await(t, "the deputy's own copy of the lease", func() bool {
		v, err := deputy.Lease(t.Context(), lease)
		return err == nil && v.Serves == me.Network.Key
	})
	kill(t, me.PID)
	signed := s.own.lease(lease).Receipts
	await(t, "receipts that the deputy signs", func() bool { return s.own.lease(lease).Receipts > signed+2 })
	s.awaitPaid(lease, 2)
	s.awaitState(lease, market.JobEnded)
	await(t, "the end of the lease, signed by the deputy", func() bool { return s.own.lease(lease).Debt == string(market.DebtFinal) })

	start(t, env, "haggle", "leases").wants(0) // the agent comes back
	final := settled(t, agent, s.own.api, env, lease, all(30_000))
	wantExit(t, final, market.ReasonCompleted, 0)
	s.wantTwoPayers(lease)
	if v, err := agent.Lease(t.Context(), lease); err != nil || v.SignedBy != "deputy" || v.Serves != "" {
		t.Errorf("the agent does not say that its deputy signed: %+v, %v", v, err)
	}
	await(t, "the deputy's leave", func() bool {
		list, err := deputy.Deputies(t.Context())
		return err == nil && len(list) == 1 && list[0] == served(list[0], me.Network.Key)
	})
}

// served is what an agent without leases of somebody else's says of it.
func served(d view.Deputy, key string) view.Deputy {
	d.Key, d.Serves, d.Leases = key, true, 0
	return d
}

// wantTwoPayers wants two transfers from two accounts.
func (s *shop) wantTwoPayers(lease string) {
	s.t.Helper()
	list := s.transfers(lease)
	if len(list) != 2 || list[0].Payer == list[1].Payer {
		s.t.Errorf("agent and deputy paid %+v", list)
	}
}
