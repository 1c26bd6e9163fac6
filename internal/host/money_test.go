package host_test

import (
	"strconv"
	"testing"
	"time"

	"haggle/internal/host"
	"haggle/market"
)

// hearMoney pays what the rig asks for, and checks what it signs.
func (a *renter) hearMoney(stream *pipe, m market.Message) {
	switch m := m.(type) {
	case market.AskMessage:
		a.asks = append(a.asks, m)
		if a.bank != nil {
			a.bank.send(a.id.String()+"-"+strconv.Itoa(int(m.Slice.Seq)), m.Slice.Amount)
			_ = stream.Send(a.t.Context(), market.PaidMessage{Slice: m.Slice.Seq, Amount: m.Slice.Amount})
		}
	case market.PaymentMessage:
		p, _, err := market.OpenPayment(a.rig.config.Network, m.Payment, a.terms)
		if err != nil {
			a.t.Errorf("payment: %v", err)
			return
		}
		if int(p.Seq) <= len(a.payments) {
			if old := a.payments[p.Seq-1]; old != p {
				a.t.Errorf("payment %d was %+v and is %+v", p.Seq, old, p)
			}
			return
		}
		if err := market.CheckPayment(a.id, uint32(len(a.payments)), a.paid, p); err != nil {
			a.t.Errorf("payment: %v", err)
		}
		a.payments, a.paid = append(a.payments, p), p.Total
		a.papers = append(a.papers, market.Paper{Lease: a.id, Kind: market.KindPayment, Seq: p.Seq, Sealed: m.Payment})
	case market.NoticeMessage:
		n, _, err := market.OpenNotice(a.rig.config.Network, m.Notice, a.terms)
		if err != nil {
			a.t.Errorf("notice: %v", err)
		}
		a.notices = append(a.notices, n)
	}
}

// setBank makes the renter pay, or nil stop paying.
func (a *renter) setBank(b *bank) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bank = b
}

// received returns what the rig has signed payments for.
func (a *renter) received() (market.Micro, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.paid, len(a.payments)
}

func (a *renter) asked() []market.AskMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asks
}

// ahead makes an order one that is paid ahead.
func ahead(b *market.Bid, _ *market.BidMessage) { b.Pay, b.Limits.Credit = "lab", 0 }

// rentAhead is a purchase that is paid ahead. It returns with the grant signed.
func (a *renter) rentAhead(change func(*market.Bid, *market.BidMessage), args ...string) {
	a.t.Helper()
	a.order(args, func(b *market.Bid, m *market.BidMessage) {
		ahead(b, m)
		if change != nil {
			change(b, m)
		}
	})
	if err := a.send(); err != nil {
		a.t.Fatal(err)
	}
	a.accept()
	pass(2 * time.Second)
}

// inMarket is a rig that takes money, in its bubble.
func inMarket(t *testing.T, b *bank, test func(t *testing.T, r *rig)) {
	t.Helper()
	inBubbleOf(t, func(r *rig) { r.config.Till = b }, test)
}

func TestALeaseThatIsPaidAheadRunsFromSliceToSlice(t *testing.T) {
	b := newBank()
	inMarket(t, b, func(t *testing.T, r *rig) {
		if o, _, _ := r.offer(); len(o.Pays) != 1 || o.Pays[0].Name != "lab" || o.Pays[0].Settles != market.SettlesInstantly {
			t.Errorf("the offer says %+v", o.Pays)
		}
		a := newRenter(r, "ann")
		a.setBank(b)
		a.rentAhead(func(bid *market.Bid, _ *market.BidMessage) {
			bid.DurationMs = 4 * time.Hour.Milliseconds()
			bid.Budget = 2_000_000
		}, "probe", "polite")
		a.wantState(market.JobRunning, "")
		for range 4 * 60 {
			pass(time.Minute)
			if l := r.lease(); l.Total() > l.Paid {
				t.Fatalf("%s are used and %s are paid", l.Total(), l.Paid)
			}
		}
		pass(time.Minute)
		a.wantState(market.JobEnded, market.ReasonExpired)
		paid, n := a.received()
		if l := r.lease(); paid != b.total() || l.Paid != paid || n < 4 || l.Total() != 1_440_000 || paid != l.Total() {
			t.Errorf("%d payments of %s in all, %s were sent, the lease cost %s of %s", n, paid, b.total(), l.Total(), l.Paid)
		}
		if len(a.receipts()) == 0 || a.receipts()[len(a.receipts())-1].Paid != paid {
			t.Errorf("the last receipt does not say what was paid")
		}
		for i, ask := range a.asked() {
			if ask.Method != "lab" || ask.Text == "" || ask.Currency != "USD" || int(ask.Slice.Seq) != i+1 {
				t.Errorf("request %d is %+v", i+1, ask)
			}
		}
	})
}

func TestWhatIsNotPaidInTimeIsNeitherMadeNorOwed(t *testing.T) {
	b := newBank()
	inMarket(t, b, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.rentAhead(nil, "probe", "polite")
		a.wantState(market.JobPreparing, "")
		list, err := r.Leases(t.Context(), false)
		if err != nil || list[0].Pay == nil || list[0].Pay.Asked == nil || list[0].Pay.Asked.State != "pending" || list[0].Pay.Asked.Deadline == 0 {
			t.Fatalf("lease %+v: %v", list, err)
		}
		pass(4 * time.Minute)
		a.wantState(market.JobEnded, market.ReasonUnpaid)
		if l := r.lease(); l.Total() != 0 || r.free() != 2 {
			t.Errorf("%s are owed, %d slots free", l.Total(), r.free())
		}
		// Late money is not lost: the owner's next lease has it.
		b.send(a.id.String()+"-1", a.asked()[0].Slice.Amount)
		pass(2 * time.Minute)
		if paid, n := a.received(); n != 1 || paid != a.asked()[0].Slice.Amount {
			t.Errorf("%d payments of %s", n, paid)
		}
		c := newRenter(r, "ann")
		c.rentAhead(func(bid *market.Bid, _ *market.BidMessage) { bid.Nonce = market.Nonce{9} }, "probe", "polite")
		c.wantState(market.JobRunning, "")
		if _, n := c.received(); n != 1 || c.payments[0].Method != market.PayBalance {
			t.Errorf("payments %+v", c.payments)
		}
		// And only once.
		d := newRenter(r, "ann")
		d.rentAhead(func(bid *market.Bid, _ *market.BidMessage) { bid.Nonce = market.Nonce{10} }, "probe", "polite")
		d.wantState(market.JobPreparing, "")
	})
}

func TestALeaseThatRunsDryKeepsItsDiskAndGoesOnWhenItIsPaid(t *testing.T) {
	b := newBank()
	inMarket(t, b, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.setBank(b)
		a.rentAhead(nil, "probe", "polite")
		a.wantState(market.JobRunning, "")
		pass(18 * time.Second)
		paid, _ := a.received()
		a.setBank(nil)
		pass(r.runsFor(paid) - 20*time.Second)
		pass(30 * time.Second)
		a.wantState(market.JobRunning, "")
		if s := a.status(); s.Total > s.Paid {
			t.Errorf("%s are used and %s are paid", s.Total, s.Paid)
		}
		pass(35 * time.Second)
		if len(a.notices) != 1 || a.notices[0].Reason != market.ReasonUnpaid {
			t.Errorf("notices %+v", a.notices)
		}
		pass(time.Minute)
		a.wantState(market.JobPaused, market.ReasonUnpaid)
		if l := r.lease(); l.Total() > paid {
			t.Errorf("%s are billed, %s were paid", l.Total(), paid)
		}
		// The money comes late, and the job goes on.
		ask := a.asked()[len(a.asked())-1]
		b.send(a.id.String()+"-"+strconv.Itoa(int(ask.Slice.Seq)), ask.Slice.Amount)
		a.say(market.PaidMessage{Slice: ask.Slice.Seq, Amount: ask.Slice.Amount})
		pass(2 * time.Second)
		a.setBank(b)
		a.say(market.ResumeMessage{})
		pass(3 * time.Second)
		a.wantState(market.JobRunning, "")
	})
}

// runsFor is the time that an amount pays for one card at the rig's price.
func (r *rig) runsFor(m market.Micro) time.Duration {
	return time.Duration(int64(m)*time.Hour.Milliseconds()/int64(r.config.Prices.Slot)) * time.Millisecond
}

var _ host.Till = (*bank)(nil)

func TestAnImageIsNotTakenBeforeTheFirstMoneyHasCome(t *testing.T) {
	data, digest := imageOf(t, "ours", 100_000)
	b := newBank()
	bringing(t, func(r *rig) { r.config.Till = b }, func(t *testing.T, r *rig) {
		a := newRenter(r, "ann")
		a.order(nil, nil)
		a.orderImage(digest, len(data))
		ahead(&a.bid, nil)
		a.sent.Bid = market.SealBid(network, a.key, a.bid).Encode()
		if err := a.send(); err != nil {
			t.Fatal(err)
		}
		a.accept()
		sent := make(chan error, 1)
		go func() { sent <- a.upload(data) }()
		pass(150 * time.Second) // longer than a stalled upload may last
		a.wantState(market.JobPreparing, "")
		if left := r.spooled(); len(left) > 0 {
			t.Errorf("%v bytes were taken", left)
		}
		b.send(a.id.String()+"-1", a.asked()[0].Slice.Amount)
		pass(10 * time.Second)
		if err := <-sent; err != nil {
			t.Error(err)
		}
		a.say(market.BeginMessage{})
		pass(time.Second)
		a.wantState(market.JobRunning, "")
	})
}

func TestMoneyThatIsOnItsWayIsNeverOvertakenByABalance(t *testing.T) {
	for _, restart := range []bool{false, true} {
		b := newBank()
		inMarket(t, b, func(t *testing.T, r *rig) {
			a, c := newRenter(r, "ann"), newRenter(r, "ann")
			a.setBank(b)
			a.rentAhead(nil, "probe", "polite")
			pass(10 * time.Second)
			c.rentAhead(func(bid *market.Bid, _ *market.BidMessage) { bid.Nonce = market.Nonce{9} }, "probe", "polite")
			if len(c.asked()) != 1 {
				t.Fatalf("%d requests", len(c.asked()))
			}
			a.say(market.StopMessage{Kill: true}) // what it has not used is the owner's balance
			pass(2 * time.Second)
			a.wantState(market.JobEnded, market.ReasonRenter)
			if restart {
				r.stop()
				a.hangUp()
				c.hangUp()
				r.start()
				c.connect()
			}
			pass(10 * time.Second)
			c.wantState(market.JobPreparing, "")
			c.setBank(b)
			b.send(c.id.String()+"-1", c.asked()[0].Slice.Amount)
			pass(10 * time.Second)
			c.wantState(market.JobRunning, "")
			first, _ := a.received()
			second, _ := c.received()
			var moved market.Micro
			for _, p := range c.payments {
				if p.Method == market.PayBalance {
					moved += p.Amount
				}
			}
			if first+second-moved != b.total() {
				t.Errorf("%s and %s are signed for, %s of it from a balance; %s were sent", first, second, moved, b.total())
			}
			c.hangUp()
		})
	}
}
