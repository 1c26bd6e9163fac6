package market

import (
	"cmp"
	"slices"
	"strings"
)

// Settles returns how money of a method arrives where the offer takes the method.
func (o Offer) Settles(method string) (Settling, bool) {
	i := slices.IndexFunc(o.Pays, func(p PayMethod) bool { return p.Name == method })
	if i < 0 {
		return "", false
	}
	return o.Pays[i].Settles, true
}

// PayNames returns the names of the methods that the offer takes.
func (o Offer) PayNames() []string {
	names := make([]string, 0, len(o.Pays))
	for _, p := range o.Pays {
		names = append(names, p.Name)
	}
	return names
}

// admitPay reports whether a bid is paid in a way that the offer takes: ahead by one of its methods, or later on the credit that its
// rules give.
func admitPay(o Offer, b Bid) error {
	methods := cmp.Or(strings.Join(o.PayNames(), ", "), "none")
	if b.Pay != "" {
		if _, takes := o.Settles(b.Pay); !takes {
			return NewError(CodePayMethod, "who", o.Name, "method", b.Pay, "methods", methods)
		}
		return nil
	}
	if o.Rules.Credit == 0 && b.Guarantee == (Hash{}) {
		return NewError(CodePayAhead, "methods", methods)
	}
	return nil
}

// checkPays reports why an offer's payment methods are not fit to be offered on a network; "" where they are.
func checkPays(network string, pays []PayMethod) string {
	if len(pays) > MaxPayMethods {
		return "it takes too many payment methods"
	}
	for i, p := range pays {
		switch {
		case !payName.MatchString(p.Name) || p.Settles != SettlesInstantly && p.Settles != SettlesByHand:
			return "a payment method's name or way of settling is unknown"
		case slices.ContainsFunc(pays[:i], func(q PayMethod) bool { return q.Name == p.Name }):
			return "a payment method stands in it twice"
		case p.Name == PayBalance:
			return "a balance is no payment method of offers"
		case p.Name == PayLab && !IsLab(network):
			return "play money is taken on lab networks only"
		}
	}
	return ""
}

// checkParties reports why what a bid or a lease says of paying, of an idle stop and of those who sign for the renter is out of
// bounds; "" where it is not.
func checkParties(pay string, idle *IdleStop, deputies []Key, renter Key) string {
	switch {
	case pay != "" && (!payName.MatchString(pay) || pay == PayBalance):
		return "its payment method is not a name"
	case idle.outOfRange():
		return "its idle stop is out of range"
	case len(deputies) > MaxDeputies:
		return "it names too many deputies"
	}
	for i, d := range deputies {
		if d == renter || d == (Key{}) || slices.Contains(deputies[:i], d) {
			return "a deputy is the renter itself, or stands in it twice"
		}
	}
	return ""
}
