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

// Trust takes bids of an owner from now on; name is this rig's owner's own word for it, at most 64 bytes. To trust again changes
// the name.
func (d *Daemon) Trust(ctx context.Context, owner market.Key, name string) error {
	switch {
	case owner.IsZero():
		return market.NewError(market.CodeBadKey, "value", "an empty key")
	case len(name) > maxOwnerName || market.Printable(name) != name:
		return market.NewError(market.CodeBadRequest, "why", "an owner's name is a text of at most "+strconv.Itoa(maxOwnerName)+" bytes")
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
		for i := range s.Trusted {
			if s.Trusted[i].Owner == owner {
				s.Trusted[i].Name = name
				return
			}
		}
		s.Trusted = append(s.Trusted, Trusted{Owner: owner, Name: name, Since: now})
	})
}

// Distrust takes no more bids of an owner. Leases that are signed go on. The error has code CodeOwnerUnknown where the owner
// was not trusted.
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
		list = append(list, view.Owner{
			Key: t.Owner.String(), Name: market.Printable(t.Name), Since: t.Since, Owes: view.MoneyOf(d.owed(t.Owner, currency), currency),
		})
	}
	return list
}

// admitOwner reports whether the rig takes bids of an owner now.
func (d *Daemon) admitOwner(owner market.Key) error {
	s := d.settings()
	if d.cfg.Rules.Bidders == market.BiddersTrusted && !s.trusts(owner) {
		return market.NewError(market.CodeNotTrusted, "owner", owner.String())
	}
	credit := d.cfg.Rules.Credit
	if credit == market.Unlimited {
		return nil
	}
	if owed := d.owed(owner, d.prices(s).Currency); owed >= market.Micro(credit) {
		return market.NewError(market.CodeNoCredit, "owed", owed.String(), "credit", market.Micro(credit).String())
	}
	return nil
}

// owed returns what an owner has used in a currency over all its leases that are not closed. Nothing is paid in this version.
func (d *Daemon) owed(owner market.Key, currency string) market.Micro {
	var sum market.Micro
	for _, l := range d.all() {
		if s := l.snapshot(); s.Terms.RenterOwner == owner && s.Terms.Prices.Currency == currency {
			sum += s.Total()
		}
	}
	return sum
}

// spent reports whether the owner of a running lease owes as much as the lease lets it, over all its leases.
func (d *Daemon) spent(t market.Terms) bool {
	return t.Limits.Credit != market.Unlimited && d.owed(t.RenterOwner, t.Prices.Currency) >= market.Micro(t.Limits.Credit)
}
