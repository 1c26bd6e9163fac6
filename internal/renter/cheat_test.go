package renter_test

import (
	"testing"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// rebill prices a changed receipt by the rules, so that only what was changed is wrong with it.
func rebill(r *market.Receipt, t market.Terms) {
	r.Usage = t.UsageAt(r.BilledMs, r.Usage.InBytes, r.Usage.OutBytes)
	r.Bill, _ = t.Prices.Bill(r.Usage)
}

type receiptCheat struct {
	name  string
	cheat cheat
	code  market.Code
	after uint32 // receipts signed before
}

func receiptCheats() []receiptCheat {
	terms := market.Terms{Slots: make([]market.GrantedSlot, 1), Resources: market.Resources{DiskMB: market.DefaultDiskMB}, Prices: market.Prices{Currency: "USD", Slot: 400_000}}
	return []receiptCheat{
		{"more time than has passed", cheat{receipt: func(r *market.Receipt) {
			if r.Seq == 2 {
				r.BilledMs += 15_000
				rebill(r, terms)
			}
		}}, market.CodeReceiptTime, 1},
		{"a sum that is wrong", cheat{receipt: func(r *market.Receipt) { r.Bill.Total++ }}, market.CodeReceiptMath, 0},
		{"slots that are not leased", cheat{receipt: func(r *market.Receipt) { r.Usage.SlotMs *= 2 }}, market.CodeReceiptMath, 0},
		{"a chain that is broken", cheat{receipt: func(r *market.Receipt) {
			if r.Seq == 3 {
				r.Prev = market.Hash{1}
			}
		}}, market.CodeReceiptChain, 2},
		{"a number that is left out", cheat{receipt: func(r *market.Receipt) {
			if r.Seq == 2 {
				r.Seq = 3
			}
		}}, market.CodeReceiptChain, 1},
		{"a receipt of another lease", cheat{receipt: func(r *market.Receipt) { r.Lease = market.LeaseID{9} }}, market.CodeReceiptChain, 0},
		{"a second receipt of one number", cheat{agreed: func(l *rigLease, seq uint32) []byte {
			if seq != 2 {
				return nil
			}
			r, _, _ := market.OpenReceipt(testNetwork, l.receipts[1], l.state.Terms)
			r.WallMs++
			return market.SealReceipt(testNetwork, l.rig.key, r).Encode()
		}}, market.CodeReceiptChain, 2},
	}
}

func TestRefusesACheatingReceipt(t *testing.T) {
	for _, c := range receiptCheats() {
		t.Run(c.name, func(t *testing.T) {
			inHouse(t, oneRig(func(r *testRig) { r.cheat = c.cheat }), func(t *testing.T, h *house) {
				l := h.mustBid(nil)
				pass(10 * time.Minute)
				got := h.lease(l.ID)
				if got.Debt != "disputed" || got.Receipts != c.after {
					t.Fatalf("debt %s, %d receipts signed, want disputed and %d", got.Debt, got.Receipts, c.after)
				}
				kept := h.store.rejects
				for _, rejects := range kept {
					if len(rejects) != 1 {
						t.Errorf("%d refusals are stored, want 1", len(rejects))
					}
				}
				rig := h.rigLease(0)
				if len(rig.rejects) == 0 || rig.rejects[0].Code != c.code {
					t.Errorf("the rig got refusals %+v, want code %s", rig.rejects, c.code)
				}
				if len(rig.receipts) != int(c.after) {
					t.Errorf("the rig holds %d signed receipts, want %d", len(rig.receipts), c.after)
				}
				file, err := h.agent.Evidence(t.Context(), l.ID)
				if err != nil {
					t.Fatal(err)
				}
				want := market.VerdictOpen
				if c.name == "a second receipt of one number" {
					want = market.VerdictFraud
				}
				if j := market.Judge(file); j.Verdict != want || want == market.VerdictFraud && j.Guilty != rig.rig.self {
					t.Errorf("verdict %s of %s: %+v", j.Verdict, j.Guilty, j.Checks)
				}
				if h.agent.OpenLeases() != 0 && got.State == "ended" {
					t.Errorf("the agent still waits for a lease that is disputed and has ended")
				}
			})
		})
	}
}

func TestAnOldReceiptGetsTheOldAnswer(t *testing.T) {
	replay := cheat{agreed: func(l *rigLease, seq uint32) []byte {
		if seq == 1 {
			return nil
		}
		old, _ := market.DecodeSealed(l.receipts[0])
		old.Sigs = old.Sigs[:1]
		return old.Encode()
	}}
	inHouse(t, oneRig(func(r *testRig) { r.cheat, r.run = replay, 5*time.Minute }), func(t *testing.T, h *house) {
		l := h.mustBid(nil)
		l = h.until(l.ID, "settled", settled)
		if l.Debt != "final" || l.BilledMs != 300_000 {
			t.Errorf("%+v", l)
		}
	})
}

func TestRefusesAGrantThatDoesNotEchoTheBid(t *testing.T) {
	cases := map[string]func(*market.Terms){
		"a higher price":       func(t *market.Terms) { t.Prices.Slot++ },
		"a higher budget":      func(t *market.Terms) { t.Budget *= 2 },
		"fewer slots":          func(t *market.Terms) { t.Slots = t.Slots[:1] },
		"another card":         func(t *market.Terms) { t.Slots[0].Card = market.Hash{7} },
		"another job":          func(t *market.Terms) { t.Job = market.Hash{7} },
		"another renter":       func(t *market.Terms) { t.Renter = market.Key{7} },
		"less memory":          func(t *market.Terms) { t.Resources.Memory-- },
		"a shorter notice":     func(t *market.Terms) { t.NoticeMs = 0 },
		"an unsigned limit":    func(t *market.Terms) { t.Limits.UnsignedMs++ },
		"more disk, for money": func(t *market.Terms) { t.Resources.DiskMB *= 10 },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			spoiled := oneRig(func(r *testRig) {
				r.offer.Prices.Disk = 100
				r.sign()
				r.cheat.grant = change
			})
			inHouse(t, spoiled, func(t *testing.T, h *house) {
				_, err := h.bid(func(r *view.BidRequest) { r.GPUs = 2 })
				wantCode(t, err, market.CodeGrantMismatch)
				if got := h.rigLease(0).state.Job; got != market.JobGranted {
					t.Errorf("on the rig the lease is %s", got)
				}
				for _, r := range h.store.records {
					if len(r.Sealed) != 0 || r.State.Refused == nil || len(r.Env) != 0 {
						t.Errorf("stored: %+v", r)
					}
				}
			})
		})
	}
}

func TestARigThatNeverAnswersIsTooSlow(t *testing.T) {
	inHouse(t, oneRig(func(r *testRig) { r.cheat.mute = true }), func(t *testing.T, h *house) {
		began := time.Now()
		_, err := h.bid(nil)
		wantCode(t, err, market.CodeTooSlow)
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
