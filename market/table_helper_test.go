package market_test

import (
	"strings"

	"pgregory.net/rapid"

	"haggle/market"
	"haggle/market/markettest"
)

// tableNow is the time at which the tests ask.
const tableNow = markettest.Now + 60_000

// drawWide draws an offer that says much or little, over few values, so that clauses about any field often hold.
func drawWide(t *rapid.T, rig, id int) market.Offer {
	o := drawOffer(t)
	pick := func(words ...string) string { return rapid.SampledFrom(words).Draw(t, "word") }
	some := func(numbers ...int64) int64 { return rapid.SampledFrom(numbers).Draw(t, "number") }
	yes := func() bool { return rapid.Bool().Draw(t, "yes") }
	private := markettest.Private("rig" + string(rune('a'+rig)))
	o.Rig = market.KeyOf(private)
	o.Owner = market.KeyOf(markettest.Private("rig" + string(rune('a'+rig/2))))
	o.Name, o.ID = "attic-"+pick("1", "2", "3"), "main"+string(rune('a'+id))
	o.Issued = markettest.Now + some(0, 1000, 50_000, 200_000)
	o.Seq, o.Expires = o.Issued, o.Issued+some(1000, 300_000, 600_000)
	o.State = market.OfferState(pick("open", "open", "open", "listed", "withdrawn"))
	for i := range o.Slots {
		s := &o.Slots[i]
		s.RawModel, s.Health = pick("NVIDIA X", "NVIDIA Y"), pick("fit", "watch")
		if yes() {
			s.PCIeGen, s.PowerLimit, s.PCIeWidth = point(some(3, 4)), point(some(300_000, 450_000)), nil
		}
	}
	o.Host.Driver, o.Host.CUDA, o.Host.Kernel = pick("550.54.15", "", "535-open", "x"), pick("12.4", "13.0"), pick("6.1.0-13", "6.12")
	o.Host.SlotThreads, o.Host.SlotMemory, o.Host.DiskFree = some(4, 8), some(8, 32)<<30, some(0, 1_000_001, 500_000_000_000)
	o.Host.SlotDown, o.Host.SlotUp = some(0, 100_000_000), some(0, 50_000_000)
	if yes() {
		o.Host.Protections, o.Host.Weak = []string{"seccomp", pick("network", "pids")}, []string{pick("network", "quota")}
	}
	o.Host.Images = rapid.SliceOfN(rapid.SampledFrom([]market.ImageName{
		{Name: "train", Digest: "sha256:00", Size: 5}, {Name: "train", Digest: "sha256:01", Size: 5}, {Name: "bench", Digest: "sha256:00", Size: 7},
	}), 0, 3).Draw(t, "images")
	o.Net.Reach = pick("direct", "punched", "relayed", "loopback")
	if yes() {
		o.Net.Down, o.Net.Up = point(some(1_000_000, 100_000_000)), point(some(0, 1_000_000))
	}
	o.Prices = market.Prices{
		Currency: pick("USD", "EUR"), Slot: market.Rate(some(390_000, 400_000, 1_000_000)), Disk: market.Rate(some(0, 100)),
		In: market.Rate(some(0, 10_000)), Out: market.Rate(some(0, 10_000)),
	}
	o.Rules.Credit, o.Rules.MaxUnattended = some(market.Unlimited, 0, 1_000_000), some(market.Unlimited, 0, 3_600_000)
	o.Rules.Brings, o.Rules.Egress, o.Rules.Bidders = yes(), yes(), pick(market.BiddersAnyone, market.BiddersTrusted)
	o.Rules.Content = pick("", "no mining")
	if yes() {
		o.Pays = []market.PayMethod{{Name: pick("lab", "hand"), Settles: market.Settling(pick(string(market.SettlesInstantly), string(market.SettlesByHand)))}}
	}
	if yes() {
		o.History = &market.ChainEnd{Count: some(1, 12)}
	}
	o.Claims = drawClaims(t)
	return o
}

// drawClaims draws registered claims and others, in the order of their names.
func drawClaims(t *rapid.T) []market.Claim {
	var claims []market.Claim
	for _, c := range []struct {
		name   string
		values []string
	}{{"datacenter", []string{"true", "false"}}, {"disk_kind", []string{"nvme", "hdd"}}, {"power_feed", []string{"2", "3", "green", "true"}}, {"tflops_fp32", []string{"80", "40"}}} {
		if !rapid.Bool().Draw(t, "claims") {
			continue
		}
		claim, err := market.NewClaim(c.name, rapid.SampledFrom(c.values).Draw(t, "claim"))
		if err != nil {
			t.Fatal(err)
		}
		claims = append(claims, claim)
	}
	return claims
}

func drawStanding(t *rapid.T) market.Standing {
	some := func(numbers ...int64) int64 { return rapid.SampledFrom(numbers).Draw(t, "number") }
	pick := func(words ...string) string { return rapid.SampledFrom(words).Draw(t, "word") }
	s := market.Standing{
		Checked: rapid.Bool().Draw(t, "checked"), Leases: some(0, 1, 3),
		FirstSeen: some(0, tableNow-1000, tableNow-7_200_000, tableNow-8*86_400_000), Heard: some(0, tableNow-1000, tableNow-100_000),
		Source: pick("owner", "snapshot"), Sources: some(0, 1, 2), Name: pick("", "anna"), Reached: pick("", "direct", "relayed"),
		AddressCountry: pick("", "DE", "US"), Keeps: rapid.Bool().Draw(t, "keeps"),
	}
	if rapid.Bool().Draw(t, "measured") {
		s.RTT, s.Link = point(some(5000, 40_000)), point(some(1_000_000, 50_000_000))
	}
	return s
}

func drawJob(t *rapid.T) *market.JobShape {
	some := func(numbers ...int64) int64 { return rapid.SampledFrom(numbers).Draw(t, "number") }
	if rapid.Bool().Draw(t, "no job") {
		return nil
	}
	j := &market.JobShape{
		Slots: int(some(0, 1, 2)), DurationMs: some(0, 600_000, 7_200_000), DiskMB: some(0, 10_000), InMB: some(0, 5000), OutMB: some(0, 5000),
		KeptMB: some(0, 100), Image: rapid.SampledFrom([]string{"", "train", "sha256:00", "mine"}).Draw(t, "image"), Upload: some(0, 1_000_000),
	}
	if rapid.Bool().Draw(t, "known image") {
		j.ImageBytes = point(some(1_000_000, 20_000_000))
	}
	return j
}

// drawAnyClause draws a clause about any field, with any operator and value that it takes.
func drawAnyClause(t *rapid.T) string {
	pick := func(words ...string) string { return rapid.SampledFrom(words).Draw(t, "word") }
	f := rapid.SampledFrom(append(market.Fields(), market.Field{Name: "claim.power_feed", Type: "claim"})).Draw(t, "field")
	values := map[string][]string{
		"word":          {"train", "bench", "RTX_*", "direct", "DE", "attic-1", "owner", "*a*", "fit", "lab", "none", "USD", "maina", "nvme", "sha256:00", "seccomp"},
		"true or false": {"true", "false"},
		"version":       {"550", "12.4", "6.1", "550.54.15"},
		"key":           {market.KeyOf(markettest.Private("riga")).String(), market.KeyOf(markettest.Private("rigb")).String()},
		"time":          {"10s", "1m", "1h", "7d", "5m", "1d"},
		"power":         {"300W", "450W"},
		"money":         {"0.4", "0.39", "1", "0.005", "0.8"},
		"memory":        {"8", "24", "12GB", "32"},
		"disk":          {"0.001", "500", "100"},
		"claim":         {"2", "3", "true", "green", "g*"},
	}[f.Type]
	if values == nil {
		values = []string{"1", "2", "4", "8", "40", "80"}
	}
	if f.Name == "residency_proof" {
		values = []string{"claimed", "address", "round-trip", "refuted"}
	}
	if pick("one", "list") == "list" && f.Type != "true or false" {
		return f.Name + " " + pick("in", "notin") + " [" + pick(values...) + "," + pick(values...) + "]"
	}
	return f.Name + pick("=", "!=", "<", "<=", ">", ">=", "=") + pick(values...)
}

// drawAnyQuery draws a query of up to four clauses, some joined by OR, and perhaps a count of slots.
func drawAnyQuery(t *rapid.T) market.Query {
	for {
		var b strings.Builder
		for i := range rapid.IntRange(0, 4).Draw(t, "clauses") {
			if i > 0 {
				b.WriteString(rapid.SampledFrom([]string{" ", " ", " OR "}).Draw(t, "joint"))
			}
			if rapid.IntRange(0, 3).Draw(t, "group") == 0 {
				b.WriteString("(" + drawAnyClause(t) + " OR " + drawAnyClause(t) + " " + drawAnyClause(t) + ")")
			} else {
				b.WriteString(drawAnyClause(t))
			}
		}
		text := b.String()
		if text != "" && rapid.Bool().Draw(t, "counted") {
			text = "(" + text + ") num_gpus" + rapid.SampledFrom([]string{">=2", "=1", "!=1"}).Draw(t, "count")
		}
		if q, err := market.ParseQuery(text); err == nil {
			return q
		}
	}
}
