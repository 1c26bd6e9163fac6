package host_test

import (
	"context"
	"errors"
	"sync"

	"haggle/internal/pay"
	"haggle/market"
)

// bank is a payment program that keeps its rules: an order is asked for once, and its money is there once it was sent. It outlives
// the daemon that uses it.
type bank struct {
	mu      sync.Mutex
	methods []pay.Method
	orders  map[string]pay.Order
	sent    map[string]int64 // by order; what was sent and not what was asked for
	calls   int

	hangs   bool  // every call lasts until its context ends
	dies    error // what every call returns
	lies    int64 // added to what has come
	premium bool  // says settled before anything was sent
}

func newBank(methods ...pay.Method) *bank {
	if len(methods) == 0 {
		methods = []pay.Method{{Name: "lab", Settles: "instant"}}
	}
	return &bank{methods: methods, orders: map[string]pay.Order{}, sent: map[string]int64{}}
}

func (b *bank) Methods(context.Context) []pay.Method { return b.methods }

func (b *bank) Request(ctx context.Context, o pay.Order) (pay.Answer, error) {
	if err := b.trouble(ctx); err != nil {
		return pay.Answer{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if old, asked := b.orders[o.ID]; asked && old != o {
		return pay.Answer{}, errors.New("another order of this name was asked for")
	}
	b.orders[o.ID] = o
	a := b.state(o)
	a.Request, a.Text = "to account rig for "+o.ID, "wait for it"
	return a, nil
}

func (b *bank) Status(ctx context.Context, o pay.Order) (pay.Answer, error) {
	if err := b.trouble(ctx); err != nil {
		return pay.Answer{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, asked := b.orders[o.ID]; !asked {
		return pay.Answer{State: pay.Unknown}, nil
	}
	return b.state(o), nil
}

func (b *bank) state(o pay.Order) pay.Answer {
	if b.premium {
		return pay.Answer{State: pay.Settled, Amount: b.lies, Reference: "ref"}
	}
	amount, came := b.sent[o.ID]
	if !came {
		return pay.Answer{State: pay.Pending}
	}
	return pay.Answer{State: pay.Settled, Amount: amount + b.lies, Reference: "ref-" + o.ID[len(o.ID)-1:]}
}

func (b *bank) trouble(ctx context.Context) error {
	b.mu.Lock()
	b.calls++
	hangs, dies := b.hangs, b.dies
	b.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return dies
}

// send sends an order's money; once.
func (b *bank) send(id string, amount market.Micro) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, done := b.sent[id]; !done {
		b.sent[id] = int64(amount)
	}
}

// total is all that was sent.
func (b *bank) total() market.Micro {
	b.mu.Lock()
	defer b.mu.Unlock()
	var sum int64
	for _, n := range b.sent {
		sum += n
	}
	return market.Micro(sum)
}

func (b *bank) set(change func(b *bank)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}
