package host

import (
	"context"
	"regexp"
	"slices"
	"time"

	"haggle/internal/pay"
	"haggle/market"
)

// methodsEvery is the time between questions which payment programs there are.
const methodsEvery = 10 * time.Minute

// methodName is the form of a payment method's name. It is never written to.
var methodName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// keepMethods keeps up with the payment programs that there are. It runs beside everything else: a program may hang.
func (d *Daemon) keepMethods(ctx context.Context) {
	timer := time.NewTicker(methodsEvery)
	defer timer.Stop()
	for {
		list := d.cfg.Till.Methods(ctx)
		if ctx.Err() != nil {
			return
		}
		d.mu.Lock()
		changed := !slices.EqualFunc(d.methods, list, func(a, b pay.Method) bool { return a.Name == b.Name && a.Settles == b.Settles })
		d.methods = list
		d.mu.Unlock()
		if changed {
			d.changed()
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// pays lists the methods by which leases can be paid ahead, as offers say it.
func (d *Daemon) pays() []market.PayMethod {
	currency := d.prices(d.settings()).Currency
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []market.PayMethod
	for _, m := range d.methods {
		p := market.PayMethod{Name: m.Name, Settles: market.SettlesInstantly}
		if m.Settles == pay.ByHand {
			p.Settles = market.SettlesByHand
		}
		takes := len(m.Currencies) == 0 || slices.Contains(m.Currencies, currency)
		if !takes || !methodName.MatchString(m.Name) || m.Name == market.PayBalance || len(list) == market.MaxPayMethods ||
			m.Name == market.PayLab && !market.IsLab(d.cfg.Network) {
			continue
		}
		list = append(list, p)
	}
	return list
}

// byHand reports whether only the rig's owner sees money of a method arrive.
func (d *Daemon) byHand(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.methods, func(m pay.Method) bool {
		return m.Name == name && m.Settles == pay.ByHand
	})
}

// bidders says who may bid: where leases can be paid ahead, anyone, unless the owner wants none but those that it trusts.
func (d *Daemon) bidders() string {
	switch {
	case market.IsLab(d.cfg.Network):
		return market.BiddersAnyone
	case d.cfg.Bidders != market.BiddersTrusted && len(d.pays()) > 0:
		return market.BiddersAnyone
	}
	return market.BiddersTrusted
}

// rules are the rules of offers as things are now.
func (d *Daemon) rules() market.Rules {
	r := d.cfg.Rules
	r.Bidders = d.bidders()
	return r
}
