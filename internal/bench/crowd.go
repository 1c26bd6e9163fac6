package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"haggle/internal/view"
	"haggle/market"
	"haggle/market/markettest"
	"haggle/tui"
)

// crowd is an agent in memory with many offers and one running job. Where it is busy, the job changes and writes a line a
// hundred times a second.
type crowd struct {
	tui.Market // the rest, which nobody asks for
	offers     view.OfferList
	lease      view.Lease
	busy       bool
}

// busyTick is the time between two changes.
const busyTick = 10 * time.Millisecond

var _ tui.Market = (*crowd)(nil)

func newCrowd(offers int, busy bool) *crowd {
	now := time.Now()
	c := &crowd{busy: busy, offers: view.OfferList{Known: offers, Rigs: offers}}
	o := markettest.Offer()
	for i := range offers {
		v := view.OfferOf(o, market.HashOf([]byte(fmt.Sprint("offer", i))), o.Free(), now, false)
		v.Rig, v.RigKey = fmt.Sprint("rig-", i), fmt.Sprint("key-", i)
		v.Price = view.MoneyOf(market.Micro(100_000+i), "USD")
		c.offers.Offers = append(c.offers.Offers, v)
	}
	nothing := view.MoneyOf(0, "USD")
	c.lease = view.Lease{
		ID: market.HashOf([]byte("lease")).String(), Bid: market.HashOf([]byte("bid")).String(), Rig: "rig-0", RigKey: "key-0",
		Model: "RTX_4090", Slots: 1, Image: "lab", Args: []string{"train"}, State: string(market.JobRunning), Debt: string(market.DebtOpen),
		Price: view.MoneyOf(360_000, "USD"), Budget: view.MoneyOf(1_000_000, "USD"), Spent: nothing, Signed: nothing,
		Duration: 3_600_000, Created: now.UnixMilli(), Since: now.UnixMilli(), Connected: true, Simulated: true,
		Risk: &view.Risk{Unsigned: view.TimeLimit{MostMs: 180_000}, Unattended: view.TimeLimit{MostMs: 600_000}, Credit: view.MoneyLimit{Now: nothing, Most: nothing}, Lose: nothing},
		Pay:  &view.Pay{Method: "lab", Paid: nothing, Sent: nothing, Balance: nothing},
	}
	return c
}

func (c *crowd) Status(context.Context) (view.AgentStatus, error) {
	return view.AgentStatus{Version: "bench", Uptime: 60, Offers: len(c.offers.Offers), Network: view.Network{Name: "lab-bench", Ready: true, Peers: 3}}, nil
}

func (c *crowd) Peers(context.Context) ([]view.Peer, error) { return nil, nil }

func (c *crowd) Offers(context.Context, view.OfferQuery) (view.OfferList, error) {
	return c.offers, nil
}

func (c *crowd) LookAt(_ context.Context, id string, _ view.JobShape) (view.Offer, error) {
	for _, o := range c.offers.Offers[:min(100, len(c.offers.Offers))] {
		if o.Hash == id {
			return o, nil
		}
	}
	return view.Offer{}, market.NewError(market.CodeOfferUnknown, "offer", id)
}

func (c *crowd) Bid(context.Context, view.BidRequest) (view.Lease, error) {
	return view.Lease{}, market.NewError(market.CodeSlotTaken)
}

func (c *crowd) Leases(context.Context, bool) ([]view.Lease, error) {
	return []view.Lease{c.lease}, nil
}

func (c *crowd) Stop(context.Context, string, bool) (view.Lease, error) { return c.lease, nil }

func (c *crowd) Receipts(context.Context, string) ([]view.Receipt, error) { return nil, nil }

func (c *crowd) Evidence(context.Context, string) ([]byte, error) { return nil, nil }

// History has no answer: what was lived through with an owner is not measured here.
func (c *crowd) History(context.Context, string) (view.History, error) {
	return view.History{}, market.NewError(market.CodeOwnerUnknown)
}

// Watch tells of the job as often as it changes.
func (c *crowd) Watch(ctx context.Context) <-chan view.Lease {
	out := make(chan view.Lease)
	go func() {
		defer close(out)
		c.every(ctx, func(n int) bool {
			l := c.lease
			l.Spent, l.BilledMs = view.MoneyOf(market.Micro(n), "USD"), int64(n)*busyTick.Milliseconds()
			select {
			case out <- l:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	return out
}

// Log writes the job's lines as they come, without frames.
func (c *crowd) Log(ctx context.Context, _ string, _ int64, _ bool) (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() {
		c.every(ctx, func(n int) bool {
			_, err := fmt.Fprintf(w, "step %d/100000 loss %.4f acc %.2f\n", n, 1/float64(n+1), 1-1/float64(n+1))
			return err == nil
		})
		_ = w.CloseWithError(ctx.Err())
	}()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	return r, nil
}

// every calls do for each change until ctx ends. Nothing changes where the crowd is not busy.
func (c *crowd) every(ctx context.Context, do func(n int) bool) {
	if !c.busy {
		<-ctx.Done()
		return
	}
	tick := time.NewTicker(busyTick)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if !do(n) {
			return
		}
	}
}

// copyLog reads what Log writes.
func copyLog(r io.Reader, stdout, _ io.Writer) (int64, bool, error) {
	n, err := io.Copy(stdout, r)
	return n, err == nil, err
}
