package renter

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"haggle/internal/pay"
	"haggle/internal/view"
	"haggle/market"
)

// Purse pays. *pay.Programs fulfils it. Its methods may be called concurrently and may take as long as a payment program may;
// what they return is bounded and checked.
type Purse interface {
	Methods(ctx context.Context) []pay.Method
	Pay(ctx context.Context, o pay.Order) (pay.Answer, error)
	Status(ctx context.Context, o pay.Order) (pay.Answer, error)
}

// Times of the list of payment programs: how long it is believed, for asking starts every one of them, and how long a person waits
// for it.
const (
	methodsFor = 30 * time.Second
	methodWait = time.Second
)

// methodList remembers the payment programs that this machine has.
type methodList struct {
	mu   sync.Mutex
	at   time.Time
	list []pay.Method
	busy chan struct{} // closed when the list has been made anew; nil while nobody makes it
}

// methods returns the ways in which this agent can pay, after waiting for a fresh list for as long as ctx. The caller does not write
// into it.
func (a *Agent) methods(ctx context.Context) []pay.Method {
	if a.cfg.Purse == nil {
		return nil
	}
	m := &a.canPay
	m.mu.Lock()
	if now := a.cfg.Clock(); !m.at.IsZero() && now.Sub(m.at) <= methodsFor {
		defer m.mu.Unlock()
		return m.list
	}
	if m.busy == nil {
		m.busy = make(chan struct{})
		go a.listMethods(context.WithoutCancel(ctx)) // others wait for it, too
	}
	busy := m.busy
	m.mu.Unlock()
	select {
	case <-busy:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.list
}

// listMethods makes the list anew. The programs have a time limit of their own.
func (a *Agent) listMethods(ctx context.Context) {
	list := a.cfg.Purse.Methods(ctx)
	m := &a.canPay
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list, m.at = list, a.cfg.Clock()
	close(m.busy)
	m.busy = nil
}

// PayMethods returns the names of the ways in which this agent can pay. Programs that take their time are not waited for.
func (a *Agent) PayMethods(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, methodWait)
	defer cancel()
	return namesOf(a.methods(ctx))
}

func namesOf(list []pay.Method) []string {
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	return names
}

// choosePay returns the method by which a lease of an offer is paid, and its credit. A choice that neither side can keep is an
// error with code CodePayMethod, or CodePayAhead where the rig gives no credit.
func (o order) choosePay(offer market.Offer) (string, int64, error) {
	var names, common []string
	for _, m := range offer.Pays {
		names = append(names, m.Name)
		if o.canPay(m.Name, offer.Prices.Currency) {
			common = append(common, m.Name)
		}
	}
	refuse := func(method string) (string, int64, error) {
		return "", 0, market.NewError(market.CodePayMethod, "who", "this agent or the rig", "method", method, "methods", listed(names))
	}
	switch {
	case o.pay == view.PayNone && offer.Rules.Credit == 0 && o.guaranteed == nil:
		return "", 0, market.NewError(market.CodePayAhead, "methods", listed(names))
	case o.pay == view.PayNone:
		return "", offer.Rules.Credit, nil
	case o.pay != "" && !slices.Contains(common, o.pay):
		return refuse(o.pay)
	case o.pay != "":
		return o.pay, 0, nil
	case offer.Rules.Credit != 0 && !o.ahead || o.guaranteed != nil:
		return "", offer.Rules.Credit, nil
	case len(common) == 0 && len(names) == 0:
		return "", 0, market.NewError(market.CodePayAhead, "methods", listed(names))
	case len(common) == 0:
		return refuse(listed(names))
	}
	return common[0], 0, nil
}

// arrange finds out how an order can be paid, who may sign for it, and whether its guarantee is one.
func (a *Agent) arrange(ctx context.Context, o *order) error {
	o.methods = a.methods(ctx)
	if o.deputized {
		keys, err := a.deputyKeys(ctx)
		if err != nil {
			return err
		}
		o.deputies = keys
	}
	if len(o.guarantee) == 0 {
		o.guarantee = nil
		return nil
	}
	g, s, err := market.OpenGuarantee(a.cfg.Network, o.guarantee)
	if err != nil {
		return err
	}
	o.promised, o.guaranteed = s.Hash(), &g
	if g.Renter != a.self {
		return market.NewError(market.CodeGuarantee, "why", "it stands for another renter")
	}
	return nil
}

// canPay reports whether the agent that the order was given to has a program for a method and a currency.
func (o order) canPay(method, currency string) bool {
	return slices.ContainsFunc(o.methods, func(m pay.Method) bool {
		return m.Name == method && (len(m.Currencies) == 0 || slices.Contains(m.Currencies, currency))
	})
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// orderOf returns a slice's payment as its program knows it. It is the same for ever: what was paid once is not paid again.
func (a *Agent) orderOf(r Record, p Paying) pay.Order {
	return pay.Order{
		ID: r.Lease.String() + "-" + strconv.FormatUint(uint64(p.Slice.Seq), 10), Network: a.cfg.Network, Method: p.Method,
		Currency: r.Terms.Prices.Currency, Amount: int64(p.Amount), Request: p.Text,
	}
}

// payFault turns what went wrong with a payment program into an error for people.
func payFault(method string, err error) error {
	var no *pay.RefusedError
	switch {
	case errors.As(err, &no):
		return market.NewError(market.CodePayFailed, "method", method, "why", no.Why)
	case errors.Is(err, pay.ErrTimeout):
		return market.NewError(market.CodePayTimeout, "method", method, "limit", pay.PayLimit.String())
	case errors.Is(err, pay.ErrMissing), errors.Is(err, pay.ErrNonsense):
		return market.NewError(market.CodePayProgram, "method", method, "why", err.Error())
	}
	return market.NewError(market.CodePayFailed, "method", method, "why", "the payment program could not be run")
}
