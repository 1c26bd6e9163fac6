package market_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"haggle/market"
)

func reasonsText(r market.Reasons) string {
	var b strings.Builder
	for _, part := range []struct {
		name  string
		facts []market.Fact
	}{{"checked", r.Checked}, {"claimed", r.Claimed}, {"unknown", r.Unknown}} {
		b.WriteString(part.name + ":\n")
		for _, f := range part.facts {
			b.WriteString("  " + f.Field + ": " + f.Text + "\n")
		}
	}
	return b.String() + r.Worst.Text + "\n"
}

func TestARowSaysWhy(t *testing.T) {
	r := fullRow()
	r.Standing = &market.Standing{
		Checked: true, Leases: 2, FirstSeen: 1, RTT: point(int64(8000)), Reached: "direct", AddressCountry: "DE", Keeps: true,
	}
	r.Now = 9 * day
	r.Job = &market.JobShape{Slots: 1, DurationMs: 3_600_000, Image: "train"}
	want := `checked:
  checked: you measured a card, and its speed was as claimed
  leases: you had 2 leases with its owner
  seen: you have known its owner's key for 9 days
  rtt: a round trip takes 8ms, so it is within 800 km
  reached: you reached it directly
  my_disk: a disk of yours is kept there
  residency_proof: its address is in DE, as it claims, and the round trip fits
claimed:
  pay_auto: it is paid without a person awake
  has_image: it has your image and starts at once
  outcomes: 3 leases ended with both signatures, as it counts them
  weak: not kept apart by quota
  notice: a job that it ends has 1 minute to save its work
unknown:
worst case you lose 0.066832 USD and 10 minutes
`
	if got := reasonsText(market.Why(r)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	o := marketOffer("new", marketSlot(0, "RTX_4090", 24564))
	o.Net.Country, o.Net.Reach = "", ""
	want = `checked:
claimed:
  notice: a job that it ends has 1 minute to save its work
unknown:
  checked: nothing was measured by you
  seen: its owner's key is new to you
  geolocation: it does not say where it stands
  reach: it does not say how it is reached
  pay: it names no way of paying
it cannot be paid, so nothing can be lost
`
	if got := reasonsText(market.Why(market.Row{Offer: &o})); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestTheWorstCaseFollowsFromTheRules(t *testing.T) {
	slow := int64(20_000_000)
	for _, c := range []struct {
		name   string
		change func(*market.Offer)
		job    *market.JobShape
		want   string
	}{
		{"an hour paid ahead", nil, nil, "worst case you lose 0.06 USD and 10 minutes"},
		{"four cards", nil, &market.JobShape{Slots: 4, DurationMs: 3_600_000}, "worst case you lose 0.24 USD and 10 minutes"},
		{"a minute", nil, &market.JobShape{Slots: 1, DurationMs: 60_000}, "worst case you lose 0.006 USD and 8 minutes"},
		{"five hours", nil, &market.JobShape{Slots: 1, DurationMs: 5 * 3_600_000}, "worst case you lose 0.36 USD and 1 hour"},
		{"a large image over a slow link", func(o *market.Offer) { o.Net.Down = &slow }, &market.JobShape{
			Slots: 1, DurationMs: 3_600_000, Image: "mine", ImageBytes: point(int64(3_000_000_000)),
		}, "worst case you lose 0.06 USD and 45 minutes"},
		{"credit", func(o *market.Offer) { o.Rules.Credit = market.Unlimited }, nil, "worst case you lose 0.00 USD and 5 minutes"},
	} {
		r := standingRow("a", 360_000, nil, func(o *market.Offer) {
			o.Prices.Disk = 0
			if c.change != nil {
				c.change(o)
			}
		})
		r.Job = c.job
		if got := market.WorstOf(r); got.Text != c.want || !got.Known {
			t.Errorf("%s: %s, want %s", c.name, got.Text, c.want)
		}
	}
}

// The worst case is a promise: no lease by the same rules may ever have more money ahead of use.
func TestNoSliceIsLargerThanTheWorstCase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hours := rapid.Int64Range(1, 8).Draw(t, "hours")
		r := standingRow("a", market.Rate(rapid.Int64Range(1, 5_000_000).Draw(t, "price")), nil, nil)
		r.Job = &market.JobShape{Slots: 1, DurationMs: hours * 3_600_000}
		worst := market.WorstOf(r)
		disk := r.Offer.DiskMB(1, 0)
		l := market.Lease{
			Terms: market.Terms{
				Slots: make([]market.GrantedSlot, 1), Prices: r.Offer.Prices, Budget: 1e12, DurationMs: r.Job.DurationMs, Pay: "card",
				Resources: market.Resources{DiskMB: disk},
			},
			Job: market.JobRunning, Debt: market.DebtOpen,
		}
		l.Meter.BilledMs = rapid.Int64Range(0, r.Job.DurationMs-1).Draw(t, "billed")
		l.Head.BilledMs = l.Meter.BilledMs
		used, err := r.Offer.Prices.Bill(market.UsageAt(l.Meter.BilledMs, 1, disk, 0, 0))
		if err != nil {
			t.Fatal(err)
		}
		l.Paid = used.Total
		s, due := l.NextSlice()
		if due && s.Amount > worst.Money+4 { // each line of a bill is rounded down
			t.Fatalf("after %d ms of %d hours a slice of %s is asked for, and the worst case is %s", l.Meter.BilledMs, hours, s.Amount, worst.Money)
		}
	})
}
