package sim

import (
	"strconv"

	"haggle/market"
)

// bank is the payment program of both sides, and the money behind it. An order has a name, and money moves for it once.
type bank struct {
	w      *world
	orders map[string]*order
	moved  int64 // millionths, in all
}

// order is one payment.
type order struct {
	slice  uint32
	amount int64
	lands  int64 // true time at which the payee sees it
}

// paid is what the payer's program says.
type paid string

const (
	paidSent    paid = "sent"
	paidNothing paid = "nothing" // no money moved, for sure
	paidUnknown paid = "unknown" // the program hung, died, or answered nonsense
)

// programMs is how long a payer's program may take.
const programMs = int64(60_000)

// pay runs the payer's program. It answers after a while, or never does and is ended at its limit.
func (b *bank) pay(slice uint32, name string, amount int64, answer func(paid)) {
	w := b.w
	fate, wait := w.rng.IntN(1000), w.between(20, 900)
	life := w.renter.life
	move := func(lands int64) { // a program dies with the one that runs it
		if w.renter.life == life && w.renter.alive {
			b.move(slice, name, amount, lands)
		}
	}
	if w.healed || w.opt.Calm {
		fate = 999
	}
	switch {
	case fate < 60: // it hangs, and may have paid
		if w.rng.IntN(2) == 0 {
			w.after(wait, func() { move(w.between(0, 20_000)) })
		}
		w.note("bank", "the payer's program hangs")
		b.hang(programMs, answer)
	case fate < 120: // it dies, and may have paid
		if w.rng.IntN(2) == 0 {
			move(w.between(0, 5000))
		}
		w.after(wait, func() { answer(paidUnknown) })
	case fate < 160: // it lies: nothing was sent. Later it tells the truth.
		w.note("bank", "the payer's program lies")
		w.after(wait, func() { answer(paidSent) })
	case fate < 260: // slow
		w.after(w.between(5000, 20_000), func() { move(w.between(0, 10_000)); answer(paidSent) })
	case fate < 290: // it refuses
		w.after(wait, func() { answer(paidNothing) })
	default:
		w.after(wait, func() { move(w.between(0, 300)); answer(paidSent) })
	}
}

// hang lets a program hang until its limit, or until the faults end.
func (b *bank) hang(leftMs int64, answer func(paid)) {
	b.w.after(1000, func() {
		if leftMs > 0 && !b.w.healed {
			b.hang(leftMs-1000, answer)
			return
		}
		answer(paidUnknown)
	})
}

// move moves the money of an order that was not paid yet.
func (b *bank) move(slice uint32, name string, amount, lands int64) {
	if b.orders[name] != nil {
		return
	}
	b.orders[name] = &order{slice: slice, amount: amount, lands: b.w.now + lands}
	b.moved += amount
	b.w.note("bank", "money moves: "+strconv.FormatInt(amount, 10)+" for "+name)
	b.w.watch.moves(slice, market.Micro(amount))
}

// sent is what the payer's program says of an order later: its amount, 0 where no money moved.
func (b *bank) sent(name string) int64 {
	if o := b.orders[name]; o != nil {
		return o.amount
	}
	return 0
}

// landed is what the payee's program says of an order: the amount that has arrived, 0 before. Sometimes it does not know yet.
func (b *bank) landed(name string) int64 {
	o := b.orders[name]
	if o == nil || o.lands > b.w.now || b.w.chance(150) {
		return 0
	}
	return o.amount
}
