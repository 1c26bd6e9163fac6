package host

import (
	"context"
	"slices"
	"strconv"

	"haggle/internal/view"
	"haggle/market"
)

// Bounds of what an owner keeps of other owners.
const (
	maxTrusted   = 1024
	maxOwnerName = 64 // bytes
)

// Trust takes bids of an owner from now on, and changes what else the rig's owner lets it do: see view.Trust. A name is this rig's
// owner's own word for it, at most 64 bytes.
func (d *Daemon) Trust(ctx context.Context, owner market.Key, t view.Trust) error {
	switch {
	case owner.IsZero():
		return market.NewError(market.CodeBadKey, "value", "an empty key")
	case t.Name != nil && (len(*t.Name) > maxOwnerName || market.Printable(*t.Name) != *t.Name):
		return market.NewError(market.CodeBadRequest, "why", "an owner's name is a text of at most "+strconv.Itoa(maxOwnerName)+" bytes")
	case t.CreditMicro != nil && *t.CreditMicro < market.Unlimited:
		return market.NewError(market.CodeBadRequest, "why", "a credit is an amount of at least nothing, or -1: no limit")
	case t.CreditMicro != nil && t.DefaultCredit:
		return market.NewError(market.CodeBadRequest, "why", "an owner has a credit of its own or the rig's rule, not both")
	}
	if err := d.await(ctx); err != nil {
		return err
	}
	if s := d.settings(); !s.trusts(owner) && len(s.Trusted) >= maxTrusted {
		return market.NewError(market.CodeBadRequest, "why", "more than "+strconv.Itoa(maxTrusted)+" owners are trusted: distrust one first")
	}
	now := d.cfg.Clock().Wall
	return d.decide(ctx, func(s *Settings) {
		s.Trusted = slices.Clone(s.Trusted)
		i := slices.IndexFunc(s.Trusted, func(t Trusted) bool { return t.Owner == owner })
		if i < 0 {
			i = len(s.Trusted)
			s.Trusted = append(s.Trusted, Trusted{Owner: owner, Since: now})
		}
		s.Trusted[i].change(t)
	})
}

func (o *Trusted) change(t view.Trust) {
	if t.Name != nil {
		o.Name = *t.Name
	}
	if t.Guarantor != nil {
		o.Guarantor = *t.Guarantor
	}
	switch {
	case t.DefaultCredit:
		o.Credit = nil
	case t.CreditMicro != nil:
		credit := *t.CreditMicro
		o.Credit = &credit
	}
}

// Distrust takes no more bids of an owner that are on credit, and where strangers may not bid none at all. Leases that are signed
// go on. The error has code CodeOwnerUnknown where the owner was not trusted.
func (d *Daemon) Distrust(ctx context.Context, owner market.Key) error {
	if err := d.await(ctx); err != nil {
		return err
	}
	if !d.settings().trusts(owner) {
		return market.NewError(market.CodeOwnerUnknown, "owner", owner.String())
	}
	return d.decide(ctx, func(s *Settings) {
		s.Trusted = slices.DeleteFunc(slices.Clone(s.Trusted), func(t Trusted) bool { return t.Owner == owner })
	})
}

// TrustedOwners returns the owners whose bids are taken, with what they owe, in the order in which they were added.
func (d *Daemon) TrustedOwners(ctx context.Context) ([]view.Owner, error) {
	if err := d.await(ctx); err != nil {
		return nil, err
	}
	return d.owners(d.settings()), nil
}

func (d *Daemon) owners(s Settings) []view.Owner {
	list := []view.Owner{}
	currency := d.prices(s).Currency
	for _, t := range s.Trusted {
		owed := d.owed(account{t.Owner, currency})
		list = append(list, view.Owner{
			Key: t.Owner.String(), Name: market.Printable(t.Name), Since: t.Since, Owes: view.MoneyOf(owed, currency),
			Credit: limit(owed, d.creditOf(s, t.Owner), currency), Guarantor: t.Guarantor,
		})
	}
	return list
}

// limit is a limit in money as people see it.
func limit(now market.Micro, most int64, currency string) view.MoneyLimit {
	v := view.MoneyLimit{Now: view.MoneyOf(now, currency), Unlimited: most == market.Unlimited}
	v.Most = view.MoneyOf(max(0, market.Micro(most)), currency)
	return v
}

// creditOf is what an owner may owe over all its leases: what the rig's owner set for it, the rig's rule for those that it trusts
// and in labs for all, and nothing for strangers.
func (d *Daemon) creditOf(s Settings, owner market.Key) int64 {
	t, trusted := s.trusted(owner)
	switch {
	case trusted && t.Credit != nil:
		return *t.Credit
	case trusted || market.IsLab(d.cfg.Network):
		return d.cfg.Rules.Credit
	}
	return 0
}

// admitOwner reports whether the rig takes a bid of its owner now, and for as much credit as it asks for. A guarantee stands for its
// own credit.
func (d *Daemon) admitOwner(bid market.Bid) error {
	s := d.settings()
	stranger := !s.trusts(bid.Owner) && !market.IsLab(d.cfg.Network)
	ahead := bid.Pay != "" || !bid.Guarantee.IsZero()
	switch {
	case stranger && d.bidders() == market.BiddersTrusted:
		return market.NewError(market.CodeNotTrusted, "owner", bid.Owner.String())
	case stranger && !ahead:
		return market.NewError(market.CodePayAhead, "methods", names(d.pays()))
	case !bid.Guarantee.IsZero():
		return nil
	}
	credit := d.creditOf(s, bid.Owner)
	if credit == market.Unlimited {
		return nil
	}
	if bid.Pay == "" || credit > 0 && bid.Limits.Credit > 0 {
		if owed := d.owed(account{bid.Owner, d.prices(s).Currency}); owed >= market.Micro(credit) {
			return market.NewError(market.CodeNoCredit, "owed", owed.String(), "credit", market.Micro(credit).String())
		}
	}
	if asked := bid.Limits.Credit; asked == market.Unlimited || asked > credit {
		limit := "no limit of credit"
		if asked != market.Unlimited {
			limit = "a credit of " + market.Micro(asked).String()
		}
		return market.NewError(market.CodeBadLimits, "limit", limit, "most", market.Micro(credit).String())
	}
	return nil
}

// ownOffer returns the offer with what it grants one owner: its credit may be more than the rig's rule.
func (d *Daemon) ownOffer(o market.Offer, owner market.Key) market.Offer {
	if credit := d.creditOf(d.settings(), owner); credit == market.Unlimited || o.Rules.Credit != market.Unlimited && credit > o.Rules.Credit {
		o.Rules.Credit = credit
	}
	return o
}
