package renter_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"haggle/internal/pay"
	"haggle/market"
)

// Faults of a payment program.
const (
	hangs   = "hang"   // no answer in time, and nothing is taken
	late    = "late"   // no answer in time, and the money is taken all the same
	dies    = "die"    // no answer at all
	refuses = "refuse" // its own no
	fails   = "fail"   // a no for good
	waits   = "wait"   // a person must act
	lies    = "lie"    // it says that the money was sent, and it was not
)

// bank is the money of a test: a payment program on the renter's side, and what the rig's program sees.
type bank struct {
	mu    sync.Mutex
	fault string
	taken map[string]int64 // by order: it has left the renter and come to the rig
	tries map[string]int
	after func() // is called once when money was taken, before the answer
}

func newBank() *bank { return &bank{taken: map[string]int64{}, tries: map[string]int{}} }

func (b *bank) set(fault string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

func (b *bank) Methods(context.Context) []pay.Method {
	return []pay.Method{{Name: "lab", Settles: pay.Instantly}, {Name: "euro", Settles: pay.ByHand, Currencies: []string{"EUR"}}}
}

func (b *bank) Pay(ctx context.Context, o pay.Order) (pay.Answer, error) {
	b.mu.Lock()
	b.tries[o.ID]++
	fault, after := b.fault, b.after
	if fault == "" || fault == late {
		b.take(o)
		b.after = nil
	} else {
		after = nil
	}
	b.mu.Unlock()
	if after != nil {
		after()
	}
	return b.answer(ctx, o, fault)
}

// take moves the money of an order, once.
func (b *bank) take(o pay.Order) {
	if old, paid := b.taken[o.ID]; paid && old != o.Amount {
		panic(fmt.Sprintf("order %s is for %d and for %d", o.ID, old, o.Amount))
	}
	b.taken[o.ID] = o.Amount
}

func (b *bank) Status(ctx context.Context, o pay.Order) (pay.Answer, error) {
	b.mu.Lock()
	fault := b.fault
	_, paid := b.taken[o.ID]
	b.mu.Unlock()
	if fault == "" && !paid {
		return pay.Answer{State: pay.Unknown}, nil
	}
	return b.answer(ctx, o, fault)
}

func (b *bank) answer(ctx context.Context, o pay.Order, fault string) (pay.Answer, error) {
	switch fault {
	case hangs, late:
		select {
		case <-time.After(pay.PayLimit):
			return pay.Answer{}, pay.ErrTimeout
		case <-ctx.Done():
			return pay.Answer{}, ctx.Err()
		}
	case dies:
		return pay.Answer{}, pay.ErrNonsense
	case refuses:
		return pay.Answer{}, &pay.RefusedError{Why: "the wallet is empty"}
	case fails:
		return pay.Answer{State: pay.Failed, Text: "the account is closed"}, nil
	case waits:
		return pay.Answer{State: pay.Waiting, Text: "send it to the rig", QR: "pay:" + o.ID}, nil
	}
	return pay.Answer{State: pay.Settled, Amount: o.Amount, Reference: "ref-" + o.ID[60:]}, nil
}

// sum returns all money that has moved.
func (b *bank) sum() (sum market.Micro) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.taken {
		sum += market.Micro(m)
	}
	return sum
}

// arrived returns what has come for an order.
func (b *bank) arrived(id string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken[id]
}

// paidAhead makes a rig want its money ahead.
func paidAhead(r *testRig) *testRig {
	r.till = newBank()
	r.update(func(o *market.Offer) {
		o.Pays = []market.PayMethod{{Name: "lab", Settles: market.SettlesInstantly}, {Name: "gold", Settles: market.SettlesByHand}}
		o.Rules.Credit = 0
	})
	return r
}

// askPay asks for a slice: the agent where it is there, else its deputy. The caller holds the lock, as of all that follows.
func (l *rigLease) askPay(s market.Slice) {
	if s.Seq == l.rig.fromBalance && l.state.Slice != nil {
		l.sign(s, s.Amount, market.PayBalance) // the request follows all the same
	}
	m := market.AskMessage{Slice: s, Method: "lab", Currency: "USD", Text: "to the rig"}
	if l.rig.cheat.ask != nil {
		l.rig.cheat.ask(&m)
	}
	to := l.wire
	if to == nil {
		to = l.deputy
	}
	if to != nil && !l.rig.cheat.mute {
		_ = to.Send(l.rig.ctx, m)
	}
}

// collect looks whether money has come, and signs for it.
func (l *rigLease) collect() {
	if l.rig.till == nil || l.rig.deaf {
		return
	}
	var due []market.Slice
	if s := l.state.Slice; s != nil {
		due = append(due, *s)
	}
	due = append(due, l.wishes...)
	for _, s := range due {
		id := fmt.Sprintf("%s-%d", l.state.ID, s.Seq)
		came := market.Micro(l.rig.till.arrived(id))
		if l.rig.also != nil {
			came += market.Micro(l.rig.also.arrived(id))
		}
		if came < s.Amount || l.signed[s.Seq] {
			continue
		}
		l.sign(s, came, "lab")
	}
}

// sign signs for money of a slice.
func (l *rigLease) sign(s market.Slice, came market.Micro, method string) {
	t := l.state.Terms
	p := market.Payment{
		Lease: l.state.ID, Seq: l.state.PaidSeq + 1, Payee: t.RigOwner, Payer: t.RenterOwner, Currency: "USD", Amount: came,
		Total: l.state.Paid + came, Method: method, Wall: time.Now().UnixMilli(), Slice: s.Seq,
	}
	raw := market.SealPayment(testNetwork, l.rig.key, p).Encode()
	if l.signed == nil {
		l.signed = map[uint32]bool{}
	}
	l.signed[s.Seq] = true
	l.payments = append(l.payments, raw)
	l.send(market.PaymentMessage{Payment: raw})
	_ = l.event(market.Paid{Payment: p})
}

// handleMoney takes what belongs to paying.
func (l *rigLease) handleMoney(m market.Message) bool {
	switch m := m.(type) {
	case market.PaidMessage:
		l.told = append(l.told, m)
		l.collect()
	case market.AskMessage:
		if l.rig.decline != nil {
			l.send(market.DeclineMessage{What: "pay", Err: *market.Public(l.rig.decline)})
			break
		}
		l.wishes = append(l.wishes, m.Slice)
		l.send(market.AskMessage{Slice: m.Slice, Method: m.Method, Currency: m.Currency, Text: "to the rig"})
	case market.OutcomeMessage:
		l.accepted = m.Outcome
	case market.DisputeMessage:
		l.disputes = append(l.disputes, m.Dispute)
		if !l.rig.quiet {
			l.send(m) // it has come
		}
	case market.PaymentMessage:
		l.reminded++
	default:
		return false
	}
	return true
}
