package host

import (
	"context"
	"slices"
	"strings"

	"haggle/market"
)

// wished takes a renter's wish to pay a sum that nobody asked for: a debt, or time ahead. The answer is what its payment program
// must know, as for a slice.
func (d *Daemon) wished(l *lease, m market.AskMessage) error {
	return l.call(func(context.Context) error {
		if err := d.checkWish(l.state, m); err != nil {
			if l.renter != nil {
				l.renter.send(market.DeclineMessage{What: "pay", Err: *market.Public(err)})
			}
			return nil
		}
		q := l.due(m.Slice.Seq)
		if q == nil && !l.settled[m.Slice.Seq] {
			q = l.wish(m.Slice, m.Method)
		}
		if q != nil {
			l.askFor(q, l.payer()) // a repetition, where the program has answered already
		}
		return nil
	})
}

// wish begins to wait for a sum that the renter wishes to pay; nil where it has too many wishes. A tick asks the program.
func (l *lease) wish(s market.Slice, method string) *due {
	unasked := 0
	for _, q := range l.till.dues {
		if q.wish() || q.told {
			unasked++
		}
	}
	if s.Amount <= 0 || method == "" || unasked >= tillDues {
		return nil
	}
	return l.wait(s, method)
}

func (d *Daemon) checkWish(s market.Lease, m market.AskMessage) error {
	bad := func(why string) error { return market.NewError(market.CodeBadRequest, "why", why) }
	switch {
	case s.Job == market.JobGranted:
		return bad("a lease that is not signed costs nothing")
	case m.Slice.Seq < firstWish || m.Slice.Amount <= 0:
		return bad("a wish to pay has a number above those of slices, and an amount")
	case !asksFor(s, m.Slice.Seq):
		return market.NewError(market.CodeTooMany)
	case m.Currency != s.Terms.Prices.Currency:
		return bad("the lease is in another currency")
	}
	return d.checkMethod(m.Method)
}

// checkMethod reports whether the rig has a program for a payment method.
func (d *Daemon) checkMethod(name string) error {
	pays := d.pays()
	if slices.ContainsFunc(pays, func(p market.PayMethod) bool { return p.Name == name }) {
		return nil
	}
	return market.NewError(market.CodePayMethod, "who", "the rig", "method", market.Printable(name), "methods", names(pays))
}

// names lists payment methods for people.
func names(pays []market.PayMethod) string {
	if len(pays) == 0 {
		return "none"
	}
	var list []string
	for _, p := range pays {
		list = append(list, p.Name)
	}
	return strings.Join(list, ", ")
}

// usualMethod is the method by which a lease is paid where nobody says: its own, or the rig's first.
func (d *Daemon) usualMethod(t market.Terms) string {
	if t.Pay != "" {
		return t.Pay
	}
	if pays := d.pays(); len(pays) > 0 {
		return pays[0].Name
	}
	return ""
}
