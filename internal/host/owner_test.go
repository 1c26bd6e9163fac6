package host_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"haggle/internal/host"
	"haggle/market"
	"haggle/runtime"
)

func TestAnOfferIsRenewedBeforeItExpiresAndNeverGoesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		first, _, _ := r.offer()
		if first.Host.SlotThreads != 8 || first.Host.SlotMemory != 16<<30 || len(first.Slots) != 2 || !first.Simulated ||
			first.Host.Images[0].Name != "lab" || first.Host.Isolation != "none" {
			t.Errorf("offer %+v", first)
		}
		if !slices.Contains(r.Buckets(), "model/RTX_4090") || !slices.Contains(r.Buckets(), "any") {
			t.Errorf("buckets %v", r.Buckets())
		}
		pass(market.OfferRenewal + time.Second)
		second, _, _ := r.offer()
		if second.Seq <= first.Seq || second.Expires <= first.Expires {
			t.Errorf("seq %d after %d", second.Seq, first.Seq)
		}
		r.store.settings.OfferSeq += 1e9 // the clock was once ahead
		r.stop()
		r.start()
		if third, _, _ := r.offer(); third.Seq <= second.Seq+1e9-1 {
			t.Errorf("seq %d after %d", third.Seq, second.Seq)
		}
	})
}

func TestTheOwnersChoicesAreOfferedAtOnceAndOutliveARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ctx := t.Context()
		if err := r.SetPrices(ctx, market.Prices{Currency: "EUR", Slot: 1}); err != nil {
			t.Fatal(err)
		}
		if o, _, _ := r.offer(); o.Prices.Currency != "EUR" || o.State != market.OfferOpen {
			t.Errorf("offer %+v", o)
		}
		wantCode(t, r.SetPrices(ctx, market.Prices{Currency: "e"}), market.CodeBadRecord)
		if err := r.Pause(ctx); err != nil {
			t.Fatal(err)
		}
		r.stop()
		r.start()
		if o, _, _ := r.offer(); o.Prices.Currency != "EUR" || o.State != market.OfferWithdrawn || len(r.Buckets()) != 0 {
			t.Errorf("offer %+v in %v", o, r.Buckets())
		}
		if err := r.Resume(ctx); err != nil {
			t.Fatal(err)
		}
		if o, _, _ := r.offer(); o.State != market.OfferOpen {
			t.Errorf("offer is %s", o.State)
		}
	})
}

func TestADrainedRigIsEmptyAndSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rent("probe", "polite")
		pass(30 * time.Second)
		if err := r.Drain(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		pass(30 * time.Second)
		s, err := r.Status(t.Context())
		if err != nil || !s.Draining || len(s.Leases) != 1 || s.Leases[0].State != "running" || !s.Leases[0].Connected {
			t.Fatalf("status %+v: %v", s, err)
		}
		if s.Cards != 2 || s.Free != 1 || s.Engine != "fake 1" || !slices.Equal(s.Images, []string{"lab"}) || s.Name != "rig-1" {
			t.Errorf("status %+v", s)
		}
		if err := r.Drain(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		a.wantState(market.JobEnded, market.ReasonRig)
		if s, err := r.Status(t.Context()); err != nil || !s.Draining || len(s.Leases) != 0 {
			t.Errorf("status %+v: %v", s, err)
		}
		list, err := r.Leases(t.Context(), true)
		if err != nil || len(list) != 1 || list[0].Spent.Text != "0.006" || list[0].Signed != list[0].Spent || *list[0].Exit != 143 {
			t.Errorf("leases %+v: %v", list, err)
		}
	})
}

func TestAConfigurationThatCannotWorkIsRefused(t *testing.T) {
	r := newRig(t)
	r.config.Clock = func() market.Instant { return market.Instant{} }
	for name, spoil := range map[string]func(*host.Config){
		"no key":                          func(c *host.Config) { c.Key = nil },
		"no store":                        func(c *host.Config) { c.Store = nil },
		"no clock":                        func(c *host.Config) { c.Clock = nil },
		"a bad network":                   func(c *host.Config) { c.Network = "a/b" },
		"a bad name":                      func(c *host.Config) { c.Name = "a b" },
		"a bad price":                     func(c *host.Config) { c.Prices.Slot = -1 },
		"bad rules":                       func(c *host.Config) { c.Rules.MinMs = c.Rules.MaxMs + 1 },
		"a power limit that nothing sets": func(c *host.Config) { c.PowerLimitMW = 1000 },
		"a rule that is no pattern":       func(c *host.Config) { c.Images.Deny = []string{"["} },
		"too long rules for content":      func(c *host.Config) { c.Content = strings.Repeat("x", 501) },
		"an unknown network for jobs":     func(c *host.Config) { c.Egress = "house" },
		"a negative credit":               func(c *host.Config) { c.Credit = -2 },
		"too narrow a line":               func(c *host.Config) { c.Egress, c.Machine.SlotUp = runtime.NetworkInternet, 7999 },
		"too slow a tick":                 func(c *host.Config) { c.Tick = 2 * time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			c := r.config
			spoil(&c)
			if _, err := host.New(c); err == nil {
				t.Error("it is taken")
			}
		})
	}
	if _, err := host.New(r.config); err != nil {
		t.Error(err)
	}
}
