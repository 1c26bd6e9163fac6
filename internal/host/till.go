package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"haggle/internal/pay"
	"haggle/internal/view"
	"haggle/market"
)

// Till is where a rig's money arrives: its payment programs. *pay.Programs is one. Every method returns soon after its context has
// ended; the same order asked for twice is asked for once.
type Till interface {
	// Methods lists the programs that can take money.
	Methods(ctx context.Context) []pay.Method
	// Request asks for an order's money.
	Request(ctx context.Context, o pay.Order) (pay.Answer, error)
	// Status says whether it has arrived.
	Status(ctx context.Context, o pay.Order) (pay.Answer, error)
}

// Times of asking payment programs, in milliseconds of the monotonic clock, and bounds.
const (
	tillAnswer   = 20 * time.Second // for one call, a wait for its turn in it
	tillOften    = int64(1000)      // between calls in the first time
	tillOftenFor = int64(30_000)
	tillSeldom   = int64(5000) // between calls from then on
	tillCalls    = 8           // programs that run at a time
	tillDues     = 4           // sums of one lease that are waited for at a time, unasked
	tillLate     = 8           // slices of one lease that are waited for and not needed any more

	maxReference = 128 // bytes
)

// firstWish is the least number of a sum that the renter wishes to pay without having been asked.
const firstWish = uint32(1) << 31

var (
	errNoTill   = errors.New("this rig has no payment programs any more")
	errNonsense = errors.New("the payment program asks for it in more text than there may be")
)

// due is a sum that a lease waits for: a slice that the rig asked for, or one that the renter wishes to pay.
type due struct {
	slice  market.Slice
	method string
	told   bool   // the renter says that it has paid
	known  bool   // the program has said what the payer must know
	text   string // that
	answer pay.Answer
	why    string // what went wrong last
	since  int64  // monotonic ms
	asked  int64  // when the program was asked last
	next   int64  // when it is asked again; MaxInt64 waits for its owner's word
}

func (q *due) wish() bool { return q.slice.Seq >= firstWish }

// till is the money that a lease waits for, and its one call of a payment program in flight.
type till struct {
	dues    []*due
	busy    *due
	cancel  context.CancelFunc
	results chan tilled
	running sync.WaitGroup
	pace    time.Duration // of the lease's ticks, as money needs it
}

// tilled is what came of a call.
type tilled struct {
	answer pay.Answer
	err    error
}

// wait ends the call in flight and waits for its end.
func (t *till) wait() {
	if t.busy != nil {
		t.cancel()
	}
	t.running.Wait()
}

// looks reports whether a payment program is to be asked soon whether money has come.
func (t *till) looks(now int64) bool {
	return slices.ContainsFunc(t.dues, func(q *due) bool { return q.next-now <= 2*tillSeldom })
}

// collect looks after the money that the lease waits for. It never waits: programs run beside the lease's goroutine.
func (l *lease) collect(ctx context.Context) {
	l.review()
	if pace := l.pace(); pace != l.till.pace && l.ticker != nil { // the job may be over, and money on its way
		l.till.pace = pace
		l.ticker.Reset(pace)
	}
	if l.till.busy != nil || ctx.Err() != nil {
		return
	}
	now := l.d.cfg.Clock().Mono
	for _, q := range l.till.dues {
		if q.next <= now {
			l.till.dues = append(slices.DeleteFunc(l.till.dues, func(o *due) bool { return o == q }), q) // each in its turn
			l.consult(ctx, q)
			return
		}
	}
}

// review brings the sums that are waited for up to the lease's state.
func (l *lease) review() {
	asked, now := l.state.Slice, l.d.cfg.Clock().Mono
	over := func(q *due) bool { return !q.wish() && (asked == nil || asked.Seq != q.slice.Seq) }
	l.till.dues = slices.DeleteFunc(l.till.dues, func(q *due) bool {
		// Money that was asked for may be on its way, though nobody needs it any more.
		return l.settled[q.slice.Seq] || over(q) && (q.asked == 0 && !q.told || now-q.since > lateMs)
	})
	late := 0
	for _, q := range slices.SortedFunc(slices.Values(l.till.dues), func(a, b *due) int { return cmp.Compare(b.slice.Seq, a.slice.Seq) }) {
		if over(q) {
			late++
		}
		if late > tillLate { // a renter can make each slice a short one; what it pays for the oldest is found by its word
			l.till.dues = slices.DeleteFunc(l.till.dues, func(o *due) bool { return o == q })
			late--
		}
	}
	if asked != nil && !l.settled[asked.Seq] && l.due(asked.Seq) == nil {
		l.wait(*asked, l.state.Terms.Pay)
	}
}

// due returns the sum of a number that is waited for, or nil.
func (l *lease) due(seq uint32) *due {
	for _, q := range l.till.dues {
		if q.slice.Seq == seq {
			return q
		}
	}
	return nil
}

func (l *lease) wait(s market.Slice, method string) *due {
	q := &due{slice: s, method: method, since: l.d.cfg.Clock().Mono}
	l.till.dues = append(l.till.dues, q)
	l.publish()
	return q
}

// payOrder is a sum of a lease as payment programs know it.
func (d *Daemon) payOrder(s market.Lease, slice uint32, method string, amount market.Micro) pay.Order {
	return pay.Order{
		ID: s.ID.String() + "-" + strconv.FormatUint(uint64(slice), 10), Network: d.cfg.Network, Method: method,
		Currency: s.Terms.Prices.Currency, Amount: int64(amount),
	}
}

// consult asks the payment program what to ask for, or whether the money has come.
func (l *lease) consult(ctx context.Context, q *due) {
	t := &l.till
	q.asked = l.d.cfg.Clock().Mono
	q.next = q.asked + tillSeldom
	ctx, cancel := context.WithTimeout(ctx, tillAnswer)
	t.busy, t.cancel = q, cancel
	order, first := l.d.payOrder(l.state, q.slice.Seq, q.method, q.slice.Amount), !q.known
	t.running.Go(func() {
		var r tilled
		r.answer, r.err = l.d.consult(ctx, order, first)
		t.results <- r
	})
}

// consult calls a payment program once it is its turn.
func (d *Daemon) consult(ctx context.Context, o pay.Order, first bool) (pay.Answer, error) {
	if d.cfg.Till == nil {
		return pay.Answer{}, errNoTill
	}
	select {
	case d.tills <- struct{}{}:
		defer func() { <-d.tills }()
	case <-ctx.Done():
		return pay.Answer{}, ctx.Err()
	}
	if !first {
		return d.cfg.Till.Status(ctx, o)
	}
	a, err := d.cfg.Till.Request(ctx, o)
	if err == nil && len(a.Request) > market.MaxPayText {
		err = errNonsense
	}
	return a, err
}

// answered takes what a payment program said.
func (l *lease) answered(ctx context.Context, r tilled) {
	q := l.till.busy
	l.till.cancel()
	l.till.busy = nil
	if ctx.Err() != nil {
		return // the next life asks again
	}
	before := q.why
	if q.why = ""; r.err != nil {
		l.lacks(q, before, r.err.Error())
		return
	}
	q.answer = r.answer
	if !q.known {
		q.known, q.text = true, r.answer.Request
		l.askFor(q, l.payer())
	}
	q.next = l.nextLook(q)
	if r.answer.State == pay.Settled {
		if err := l.moneyCame(ctx, q); err != nil {
			l.lacks(q, before, err.Error())
			return // the program is asked again
		}
	}
	l.publish()
	l.collect(ctx)
}

// lacks notes why money that a lease waits for is not there, and logs it where it is news.
func (l *lease) lacks(q *due, before, why string) {
	if q.why = sentence(why); q.why != before {
		l.d.log.Warn("payment", slog.String("lease", l.id.Short()), slog.String("method", q.method), slog.String("why", q.why))
	}
	l.publish()
}

// nextLook is when a program is asked again. One whose money only its owner sees arrive has nothing to say before.
func (l *lease) nextLook(q *due) int64 {
	now := l.d.cfg.Clock().Mono
	switch {
	case q.answer.State != pay.Settled && l.d.byHand(q.method):
		return math.MaxInt64
	case now-q.since < tillOftenFor:
		return now + tillOften
	case l.state.Job == market.JobEnded: // nothing hangs on it any more; the renter's word brings it forward
		return now + endedTick.Milliseconds()
	}
	return now + tillSeldom
}

// moneyCame takes money of which a payment program says that it has come: once for each sum, and only if it is all of it.
func (l *lease) moneyCame(ctx context.Context, q *due) error {
	amount := market.Micro(q.answer.Amount)
	if amount < q.slice.Amount {
		return fmt.Errorf("the payment program says that %s of %s have come", amount, q.slice.Amount)
	}
	return l.receive(ctx, income{amount, q.method, q.answer.Reference, q.slice.Seq})
}

// askFor sends what the payer must know to pay a sum.
func (l *lease) askFor(q *due, k *link) {
	if k != nil && q.known {
		k.send(market.AskMessage{Slice: q.slice, Method: q.method, Currency: l.state.Terms.Prices.Currency, Text: q.text})
	}
}

// ask sends all that is asked for, but not what was asked for once and is not needed any more.
func (l *lease) ask() {
	for _, q := range l.till.dues {
		if s := l.state.Slice; q.wish() || s != nil && s.Seq == q.slice.Seq {
			l.askFor(q, l.payer())
		}
	}
}

// asking is what people see of the sum that is asked for.
func (l *lease) asking() *view.PayAsked {
	if l.state.Slice == nil {
		return nil
	}
	s := l.state.Slice
	v := &view.PayAsked{
		Slice: s.Seq, Amount: view.MoneyOf(s.Amount, l.state.Terms.Prices.Currency), ForMs: s.ForMs, AskedAt: s.AskedAt, State: "asked",
		Settles: string(market.SettlesInstantly),
	}
	if l.d.byHand(l.state.Terms.Pay) {
		v.Settles = string(market.SettlesByHand)
	}
	if l.unpaid() {
		v.Deadline = l.state.Since + market.FirstPayMs
	}
	q := l.due(s.Seq)
	if q == nil {
		return v
	}
	v.Text, v.QR, v.Why = market.Printable(q.answer.Text), market.Printable(q.answer.QR), q.why
	switch q.answer.State {
	case pay.Pending, pay.Waiting, pay.Failed:
		v.State = string(q.answer.State)
	}
	if v.State == "asked" && q.why != "" {
		v.State = string(pay.Failed)
	}
	return v
}
