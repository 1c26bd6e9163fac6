package renter_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"haggle/internal/renter"
	"haggle/internal/view"
	"haggle/market"
)

var (
	standIn  = seedKey(201)
	stranger = seedKey(202)
)

// keyText is a key as people write it.
func keyText(seed byte) string { return market.KeyOf(seedKey(seed)).String() }

// second brings up the agent of another machine in the same market.
func (h *house) second() *house {
	h.t.Helper()
	var list []*testRig
	for i := range h.net.order {
		list = append(list, h.rig(i))
	}
	d := &house{t: h.t, net: newTestNet(market.KeyOf(standIn), list...), store: newMemStore(), dir: h.t.TempDir(), key: standIn}
	d.up()
	h.reach(d)
	return d
}

// reach lets this house's agent reach the other's.
func (h *house) reach(d *house) {
	serve := d.agent.ServeDeputy
	h.net.set(func() { h.net.deputies[market.KeyOf(d.key)] = serve })
}

func (h *house) cutOff(d *house) {
	h.net.set(func() { delete(h.net.deputies, market.KeyOf(d.key)) })
}

func (h *house) add(v view.Deputy) {
	h.t.Helper()
	if _, err := h.agent.AddDeputy(h.t.Context(), v); err != nil {
		h.t.Fatal(err)
	}
}

// withDeputy runs a test with an agent, its deputy on another machine, and a lease that names it.
func withDeputy(t *testing.T, change func(*testRig), bid func(*view.BidRequest), test func(t *testing.T, h, d *house, l view.Lease)) {
	t.Helper()
	inHouse(t, oneRig(change), func(t *testing.T, h *house) {
		d := h.second()
		defer d.down()
		h.add(view.Deputy{Key: keyText(201), Name: "attic"})
		d.add(view.Deputy{Key: keyText(200), Serves: true})
		l := h.mustBid(func(r *view.BidRequest) {
			r.Deputies = true
			if bid != nil {
				bid(r)
			}
		})
		h.until(l.ID, "running", running)
		pass(20 * time.Second)
		test(t, h, d, l)
	})
}

// chain returns the hashes of the receipts that a side keeps.
func chain(t *testing.T, sealed [][]byte) []market.Hash {
	t.Helper()
	var list []market.Hash
	for _, raw := range sealed {
		s, err := market.DecodeSealed(raw)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s.Hash())
	}
	return list
}

func (h *house) chain(id string) []market.Hash {
	h.t.Helper()
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	var sealed [][]byte
	for lease, list := range h.store.receipts {
		if lease.String() != id {
			continue
		}
		for _, r := range list {
			sealed = append(sealed, r.Sealed)
		}
	}
	return chain(h.t, sealed)
}

func equal(a, b []market.Hash) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestADeputySignsWhileItsAgentIsAwayAndTheChainsAreEqual(t *testing.T) {
	withDeputy(t, func(r *testRig) { r.run = 30 * time.Minute }, nil, func(t *testing.T, h, d *house, l view.Lease) {
		in := d.lease(l.ID)
		if in.Serves != keyText(200) || in.Renter != keyText(200) || !in.Connected || in.State != "running" {
			t.Fatalf("the deputy has %+v", in)
		}
		list, err := h.agent.Deputies(t.Context())
		if err != nil || len(list) != 1 || list[0].Leases != 1 || !list[0].Connected || list[0].Why != "" {
			t.Errorf("deputies: %+v, %v", list, err)
		}
		h.down()
		pass(15 * time.Minute)
		if r := h.rigLease(0); r.state.Job != market.JobRunning || r.state.Head.Seq < 14 {
			t.Fatalf("while the agent is away: %s with %d receipts", r.state.Job, r.state.Head.Seq)
		}
		h.up()
		pass(10 * time.Second)
		if got := h.lease(l.ID); got.Receipts < 14 {
			t.Errorf("the agent that is back has %d receipts", got.Receipts)
		}
		l = h.until(l.ID, "settled", settled)
		pass(time.Minute)
		if l.BilledMs != 1_800_000 {
			t.Errorf("billed %d ms", l.BilledMs)
		}
		rig := h.rigLease(0)
		if want := chain(t, rig.receipts); !equal(h.chain(l.ID), want) || !equal(d.chain(l.ID), want) || len(want) < 30 {
			t.Errorf("rig %d, agent %d, deputy %d receipts", len(want), len(h.chain(l.ID)), len(d.chain(l.ID)))
		}
		for side, agent := range map[string]*renter.Agent{"agent": h.agent, "deputy": d.agent} {
			file, err := agent.Evidence(t.Context(), l.ID)
			if err != nil {
				t.Fatal(err)
			}
			if j := market.Judge(file); j.Verdict != market.VerdictAgreed {
				t.Errorf("of the %s: verdict %s: %+v", side, j.Verdict, j.Checks)
			}
		}
		if h.agent.OpenLeases() != 0 || d.agent.OpenLeases() != 0 {
			t.Errorf("open: agent %d, deputy %d", h.agent.OpenLeases(), d.agent.OpenLeases())
		}
	})
}

func TestADeputyThatComesLateAndIsRestartedHasTheWholeChain(t *testing.T) {
	withDeputy(t, func(r *testRig) { r.run = 20 * time.Minute }, nil, func(t *testing.T, h, d *house, l view.Lease) {
		h.cutOff(d)
		d.down()
		pass(5 * time.Minute)
		d.up()
		h.reach(d)
		pass(2 * time.Minute)
		h.down() // for good
		l = d.until(l.ID, "settled", settled)
		pass(time.Minute)
		rig := h.rigLease(0)
		if want := chain(t, rig.receipts); !equal(d.chain(l.ID), want) {
			t.Errorf("rig %d, deputy %d receipts", len(want), len(d.chain(l.ID)))
		}
		if l.Serves == "" || l.BilledMs != 1_200_000 {
			t.Errorf("the deputy shows %+v", l)
		}
		h.up()
		h.until(l.ID, "settled", settled)
	})
}

func TestADeputyCollectsIntoAFolderOfItsOwn(t *testing.T) {
	home := t.TempDir()
	withDeputy(t, func(r *testRig) { r.run = 5 * time.Minute }, collecting("out", home), func(t *testing.T, h, d *house, l view.Lease) {
		write(t, h.rigLease(0).work, map[string]string{"out/a": "model"})
		h.down()
		d.until(l.ID, "collected", collected)
		wantFile(t, filepath.Join(d.dir, "collected", l.ID, "out", "a"), "model")
		if entries, err := os.ReadDir(home); err != nil || len(entries) != 0 {
			t.Errorf("the agent's own folder has %v, %v", entries, err)
		}
		d.until(l.ID, "settled", settled)
		h.up()
		h.until(l.ID, "settled", settled)
	})
}

func TestADeputyDoesNotOrder(t *testing.T) {
	withDeputy(t, nil, nil, func(t *testing.T, h, d *house, l view.Lease) {
		_, err := d.agent.Stop(t.Context(), l.ID, true)
		wantCode(t, err, market.CodeNotYours)
		_, err = d.agent.Extend(t.Context(), l.ID, view.ExtendRequest{DurationMs: 60_000})
		wantCode(t, err, market.CodeNotYours)
		if h.rigLease(0).state.Job != market.JobRunning {
			t.Error("the job does not run any more")
		}
	})
}

func TestADeputyThatCannotBelieveAReceiptSignsNothingAndTheAgentDecides(t *testing.T) {
	withDeputy(t, nil, nil, func(t *testing.T, h, d *house, l view.Lease) {
		h.down()
		h.rig(0).set(func() {
			h.rig(0).cheat.receipt = func(r *market.Receipt) { r.BilledMs += 3_600_000 }
		})
		before := len(d.chain(l.ID))
		pass(5 * time.Minute)
		if rig := h.rigLease(0); len(rig.rejects) != 0 || len(d.chain(l.ID)) != before || d.lease(l.ID).Debt != "open" {
			t.Errorf("the deputy: %d refusals, %d receipts, debt %s", len(rig.rejects), len(d.chain(l.ID))-before, d.lease(l.ID).Debt)
		}
		h.up()
		pass(time.Minute)
		if rig := h.rigLease(0); len(rig.rejects) == 0 || h.lease(l.ID).Debt != "disputed" {
			t.Errorf("the agent: %d refusals, debt %s", len(rig.rejects), h.lease(l.ID).Debt)
		}
	})
}

func TestADeputyThatIsRemovedLetsItsLeasesGo(t *testing.T) {
	for side, remove := range map[string]func(h, d *house) error{
		"by the agent":  func(h, _ *house) error { return h.agent.RemoveDeputy(context.Background(), keyText(201)) },
		"by the deputy": func(_, d *house) error { return d.agent.RemoveDeputy(context.Background(), keyText(200)) },
	} {
		t.Run(side, func(t *testing.T) {
			withDeputy(t, nil, nil, func(t *testing.T, h, d *house, l view.Lease) {
				if d.agent.OpenLeases() != 1 {
					t.Fatalf("%d leases in care", d.agent.OpenLeases())
				}
				if err := remove(h, d); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
				if d.agent.OpenLeases() != 0 || h.rigLease(0).deputy != nil {
					t.Errorf("%d leases in care", d.agent.OpenLeases())
				}
				if h.agent.OpenLeases() != 1 || !h.lease(l.ID).Connected {
					t.Error("the agent lost its lease")
				}
				d.down()
				d.up()
				pass(time.Minute)
				if d.agent.OpenLeases() != 0 {
					t.Error("a restart takes it up again")
				}
				wantCode(t, remove(h, d), market.CodeDeputyUnknown)
			})
		})
	}
}

func TestADeputyThatComesLateHasEveryExtensionAndPayment(t *testing.T) {
	withDeputy(t, func(r *testRig) { r.run = 10 * time.Minute }, nil, func(t *testing.T, h, d *house, l view.Lease) {
		h.cutOff(d)
		d.down()
		for range 2 {
			if _, err := h.agent.Extend(t.Context(), l.ID, view.ExtendRequest{DurationMs: 600_000}); err != nil {
				t.Fatal(err)
			}
		}
		rig := h.rig(0)
		rig.set(func() {
			on := h.rigLease2()
			for i := range uint32(3) {
				on.send(market.PaymentMessage{Payment: market.SealPayment(testNetwork, rig.key, market.Payment{
					Lease: on.state.ID, Seq: i + 1, Payee: on.state.Terms.RigOwner, Payer: on.state.Terms.RenterOwner, Currency: "USD",
					Amount: 1000, Total: market.Micro(i+1) * 1000, Method: "hand", Wall: time.Now().UnixMilli(),
				}).Encode()})
			}
		})
		pass(time.Minute)
		d.up()
		h.reach(d)
		pass(2 * time.Minute)
		h.down()
		l = d.until(l.ID, "settled", settled)
		if l.Duration != 3_600_000+1_200_000 {
			t.Errorf("the deputy's lease is for %d ms", l.Duration)
		}
		file, err := d.agent.Evidence(t.Context(), l.ID)
		if err != nil {
			t.Fatal(err)
		}
		j := market.Judge(file)
		if j.Verdict != market.VerdictAgreed || len(j.Payments) != 3 || j.Paid != 3000 {
			t.Errorf("verdict %s, paid %s in %d: %+v", j.Verdict, j.Paid, len(j.Payments), j.Checks)
		}
		h.up()
		h.until(l.ID, "settled", settled)
	})
}

func TestADeputyPaysWhileItsAgentIsAwayAndNotBeyondItsCap(t *testing.T) {
	for name, c := range map[string]struct {
		agents, own int64 // caps, millionths
		want        market.Micro
	}{
		"the agent's cap":     {150_000, 0, 150_000},
		"the deputy's cap":    {0, 150_000, 150_000},
		"the lower one":       {2_000_000, 150_000, 150_000},
		"the lease's budget":  {0, 0, 1_600_000},
		"more than the lease": {5_000_000, 9_000_000, 1_600_000},
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(r *testRig) { r.run = 3 * time.Hour }, func(t *testing.T, h *house, b *bank) {
				d := h.second()
				defer func() { d.down() }()
				d.down()
				d.purse = newBank() // its own purse; the same rig sees both
				h.rig(0).set(func() { h.rig(0).also = d.purse.(*bank) })
				d.up()
				h.reach(d)
				h.add(view.Deputy{Key: keyText(201), CapMicro: c.agents})
				d.add(view.Deputy{Key: keyText(200), Serves: true, CapMicro: c.own})
				l := h.mustBid(func(r *view.BidRequest) { r.Deputies, r.DurationMs = true, 4*3_600_000 })
				h.until(l.ID, "running", running)
				pass(20 * time.Minute)
				own := d.purse.(*bank)
				if own.sum() != 0 || b.sum() == 0 {
					t.Fatalf("while the agent is there it paid %s, its deputy %s", b.sum(), own.sum())
				}
				h.down()
				before := b.sum()
				pass(4 * time.Hour)
				in := d.lease(l.ID)
				if own.sum() == 0 || own.sum() > c.want || market.Micro(in.Pay.Sent.Micro) != own.sum() || b.sum() != before {
					t.Errorf("the deputy paid %s, says %s; the agent paid %s more", own.sum(), in.Pay.Sent.Text, b.sum()-before)
				}
				rig := h.rigLease(0)
				if rig.state.Paid != before+own.sum() {
					t.Errorf("the rig signed for %s of %s", rig.state.Paid, before+own.sum())
				}
				if capped := c.want < 1_000_000; capped != (rig.state.Reason == market.ReasonUnpaid) || capped != asked(in, "held") {
					t.Errorf("the lease is %s: %s; the deputy: %+v", rig.state.Job, rig.state.Reason, in.Pay.Asked)
				}
				h.up()
				pass(10 * time.Second)
				if got := h.lease(l.ID); market.Micro(got.Pay.Paid.Micro) < rig.state.Paid {
					t.Errorf("the agent that is back knows of %s", got.Pay.Paid.Text)
				}
			})
		})
	}
}
