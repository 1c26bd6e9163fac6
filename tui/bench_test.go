package tui_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
	"haggle/market"
	"haggle/tui"
)

// crowd is a market with many offers, made once.
type crowd struct {
	*fakeMarket
	list view.OfferList
}

func (c *crowd) Offers(context.Context, view.OfferQuery) (view.OfferList, error) { return c.list, nil }

func newCrowd(n int) *crowd {
	c := &crowd{fakeMarket: full(), list: view.OfferList{Known: n, Rigs: n}}
	base := stock()
	for i := range n {
		o := base[i%len(base)]
		v := view.OfferOf(o, market.HashOf([]byte(fmt.Sprint(i))), o.Free(), time.Now(), false)
		v.RigKey = fmt.Sprint("rig", i)
		v.Price = view.MoneyOf(market.Micro(100_000+i), "USD")
		c.list.Offers = append(c.list.Offers, v)
	}
	return c
}

// crowded makes a program that shows many offers.
func crowded(b *testing.B, n, width, height int) *tui.Model {
	m := tui.NewWithin(b.Context(), tui.Config{Market: newCrowd(n), Demux: demux})
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	m.Update(m.Init()())
	m.Update(m.Reload()())
	return m
}

// BenchmarkFrame measures one update and the frame that follows it: an answer of the agent with the whole list, and a key.
// What an answer costs in its command, beside Update, is not in it. Beside the mean it reports the median and the 99th
// percentile, of wall time.
func BenchmarkFrame(b *testing.B) {
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		for _, n := range []int{100, 100_000} {
			m := crowded(b, n, size[0], size[1])
			name := func(what string) string { return fmt.Sprintf("%s/%dx%d/%d", what, size[0], size[1], n) }
			b.Run(name("refresh"), func(b *testing.B) {
				fresh := m.Reload()()
				measure(b, func(int) { m.Reload(); m.Update(fresh); _ = m.View() })
			})
			b.Run(name("move"), func(b *testing.B) {
				keys := []tea.KeyPressMsg{keyPress("down"), keyPress("pgdown"), keyPress("up"), keyPress("end"), keyPress("home")}
				measure(b, func(i int) { m.Update(keys[i%len(keys)]); _ = m.View() })
			})
		}
	}
}

// BenchmarkAccounts measures the page of money with many accounts: an answer of the agent, and a key.
func BenchmarkAccounts(b *testing.B) {
	const width, height = 200, 50
	for _, n := range []int{100, 100_000} {
		f := newFakeMarket()
		f.fakePurse = purse(time.Now().UnixMilli(), "", "")
		one := f.ledger.Entries
		for i := range n {
			e := one[i%len(one)]
			e.Owner = fmt.Sprint("owner", i)
			f.ledger.Entries = append(f.ledger.Entries, e)
		}
		m := tui.NewWithin(b.Context(), tui.Config{Market: f, Demux: demux})
		m.Update(tea.WindowSizeMsg{Width: width, Height: height})
		m.Update(m.Init()())
		m.Update(keyPress("5"))
		m.Update(m.Books()())
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			keys := []tea.KeyPressMsg{keyPress("down"), keyPress("pgdown"), keyPress("up"), keyPress("end"), keyPress("home")}
			measure(b, func(i int) { m.Update(keys[i%len(keys)]); _ = m.View() })
		})
	}
}

func measure(b *testing.B, step func(i int)) {
	took := make([]time.Duration, 0, 1<<16)
	for i := 0; b.Loop(); i++ {
		begin := time.Now()
		step(i)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
}
