package tui_test

import (
	"strconv"
	"time"

	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
)

func key(name string) string { return market.KeyOf(markettest.Private(name)).String() }

// card describes an offer of the fake.
type card struct {
	rig, model, reach, country, isolation string
	count, leased                         int
	gib                                   int64
	price, disk, out                      market.Rate
	simulated                             bool
	images                                []string
	change                                func(*market.Offer) // what else is special about it
}

// offer makes the record that a rig would sign.
func (c card) offer() market.Offer {
	o := markettest.Offer()
	now := time.Now().UnixMilli()
	o.Rig = market.KeyOf(markettest.Private(c.rig))
	o.Owner, o.Name, o.Seq, o.Issued, o.Expires, o.Simulated = o.Rig, c.rig, now, now, now+600_000, c.simulated
	o.Prices = market.Prices{Currency: "USD", Slot: c.price, Disk: c.disk, Out: c.out}
	o.Net = market.NetFacts{Reach: c.reach, Country: c.country}
	o.Host = market.HostFacts{
		CPU: "AMD EPYC 7543", SlotThreads: 8, SlotMemory: 32 << 30, DiskFree: 180e9, Kernel: "6.1", Driver: "550.54.15", CUDA: "12.4",
		Isolation: c.isolation,
	}
	for _, i := range c.images {
		o.Host.Images = append(o.Host.Images, market.ImageName{Name: i, Digest: markettest.Image, Size: 1})
	}
	o.Slots = nil
	for i := range c.count {
		s := market.Slot{
			Index: uint8(i), Kind: market.SlotCard, Vendor: "NVIDIA", Model: c.model, RawModel: c.model, Memory: c.gib << 30, Usable: c.gib << 30, Health: "fit",
		}
		if i < c.leased {
			s.LeasedUntil = now + 3_600_000
		}
		o.Slots = append(o.Slots, s)
	}
	if c.change != nil {
		c.change(&o)
	}
	return o
}

// stock is what the full market has: plain names, long ones, wide ones, and one that tries to move the cursor.
func stock() []market.Offer {
	var out []market.Offer
	for _, c := range []card{
		{rig: "rig-1", model: "RTX_4090", reach: "loopback", isolation: "runc", count: 2, gib: 24, price: 360_000, simulated: true, images: []string{"lab"}},
		{rig: "rig-2", model: "H100_SXM5_80GB", reach: "direct", country: "DE", isolation: "runc", count: 8, leased: 3, gib: 80, price: 2_150_000, disk: 200, out: 10_000, images: []string{"pytorch-2.9", "vllm", "lab"}},
		{rig: "東京リグ-深夜割引", model: "RTX_5090", reach: "direct", country: "JP", isolation: "runc", count: 1, gib: 32, price: 540_000, images: []string{"lab", "学習"}},
		{rig: "attic-in-the-house-behind-the-railway-station", model: "RTX_3090", reach: "relayed", country: "NL", isolation: "runc", count: 4, leased: 3, gib: 24, price: 190_000, images: []string{"lab"}},
		{rig: "mac-mini", model: "CPU_SHARE", reach: "loopback", isolation: "none", count: 1, gib: 16, price: 20_000, simulated: true, images: []string{"lab"}},
		{rig: "\x1b[2Jevil\u202erig\x07", model: "RTX_4090", reach: "punched", country: "US", isolation: "runc", count: 2, leased: 1, gib: 24, price: 310_000, images: []string{"lab"}},
		{rig: "한국-그래픽카드-농장-7호", model: "A100_PCIE_40GB", reach: "direct", country: "KR", isolation: "runc", count: 4, gib: 40, price: 890_000, images: []string{"lab"}},
	} {
		out = append(out, c.offer())
	}
	return out
}

func hashOf(o market.Offer) market.Hash {
	return market.HashOf([]byte(o.Name + strconv.FormatInt(o.Seq, 10)))
}

// lease makes a lease as the agent shows it.
func lease(n int, rig, state string, budget int64) view.Lease {
	now := time.Now().UnixMilli()
	return view.Lease{
		ID: market.HashOf([]byte("lease" + strconv.Itoa(n))).String(), Bid: market.HashOf([]byte("bid" + strconv.Itoa(n))).String(),
		Rig: rig, RigKey: key(rig), Renter: key("agent"), Model: "RTX_4090", Slots: 1, Image: "lab", Args: []string{"train", "--steps", "20"},
		State: state, Debt: string(market.DebtOpen), Price: view.MoneyOf(360_000, "USD"), Budget: view.MoneyOf(market.Micro(budget), "USD"),
		Spent: view.MoneyOf(0, "USD"), Signed: view.MoneyOf(0, "USD"), Duration: 3_600_000, Created: now, Since: now, Connected: true, Simulated: true,
	}
}
