package host

import (
	"haggle/market"
)

// account is what an owner and this rig's owner owe each other in one currency.
type account struct {
	owner    market.Key
	currency string
}

func accountOf(s market.Lease) account {
	return account{owner: s.Terms.RenterOwner, currency: s.Terms.Prices.Currency}
}

// money is what a lease, or all of an account, comes to.
type money struct {
	came    market.Micro // in payments that this rig signed, without what came from the owner's balance
	held    market.Micro // that the balance cannot give away: what was used, and of an open lease all that was paid for it
	pledged market.Micro // of what was used and not paid: what a guarantee stands for
}

func (m money) plus(n money) money {
	return money{came: m.came + n.came, held: m.held + n.held, pledged: m.pledged + n.pledged}
}

func (m money) minus(n money) money {
	return money{came: m.came - n.came, held: m.held - n.held, pledged: m.pledged - n.pledged}
}

// left is what an owner has paid and can still use for other leases.
func (m money) left() market.Micro { return max(0, m.came-m.held) }

// owed is what an owner has used and neither paid nor had guaranteed.
func (m money) owed() market.Micro { return max(0, m.held-m.came-m.pledged) }

// moneyOf counts a lease. moved is what of its payments came from the owner's balance, verdict the guarantor's word on its total,
// if it has given one.
func moneyOf(s market.Lease, moved market.Micro, verdict *market.Micro) money {
	used := s.Total()
	if verdict != nil {
		used = min(used, *verdict)
	}
	m := money{came: s.Paid - moved, held: used}
	if s.Job != market.JobEnded {
		m.held = max(used, s.Paid)
	}
	if !s.Terms.Guarantee.IsZero() {
		m.pledged = max(0, used-s.Paid)
	}
	return m
}

func (l *lease) money() money { return moneyOf(l.state, l.moved, l.verdict) }

// account counts all leases of an owner, those that are over too.
func (d *Daemon) account(a account) money {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := d.past[a]
	for _, l := range d.leases {
		if seen := l.seen.Load(); accountOf(seen.lease) == a {
			sum = sum.plus(seen.money)
		}
	}
	return sum
}

// owed returns what an owner has used and not paid over all its leases.
func (d *Daemon) owed(a account) market.Micro { return d.account(a).owed() }

// owedByAll returns what all owners owe in a currency.
func (d *Daemon) owedByAll(currency string) market.Micro {
	d.mu.Lock()
	all := map[account]money{}
	for a, m := range d.past {
		all[a] = m
	}
	for _, l := range d.leases {
		seen := l.seen.Load()
		a := accountOf(seen.lease)
		all[a] = all[a].plus(seen.money)
	}
	d.mu.Unlock()
	var sum market.Micro
	for a, m := range all {
		if a.currency == currency {
			sum += m.owed()
		}
	}
	return sum
}

// spent reports whether the owner of a running lease owes as much as the lease lets it, over all its leases. What is all paid ahead or
// guaranteed is bounded by the lease itself.
func (d *Daemon) spent(s market.Lease) bool {
	t := s.Terms
	if t.Limits.Credit == market.Unlimited || t.Pay != "" && t.Limits.Credit == 0 || !t.Guarantee.IsZero() {
		return false
	}
	return d.owed(accountOf(s)) >= market.Micro(t.Limits.Credit)
}

// lateMs is how long a lease of which nothing else is left waits for money that was asked for. What comes later needs somebody's word.
const lateMs = int64(3_600_000)

// over reports whether nothing is left to do for a lease.
func (d *Daemon) over(s market.Lease) bool {
	return s.Closed() && (s.Slice == nil || d.cfg.Clock().Wall-s.Since >= lateMs)
}

// retire moves a lease that is over to what is only counted. The lock d.mu is held.
func (d *Daemon) retire(s market.Lease, m money) {
	d.past[accountOf(s)] = d.past[accountOf(s)].plus(m)
	if h := s.Terms.Guarantee; !h.IsZero() {
		d.pledges[h] += m.pledged
	}
}

// recount replaces what a lease that is over counts for. The lock d.mu is held.
func (d *Daemon) recount(s market.Lease, before, after money) {
	d.past[accountOf(s)] = d.past[accountOf(s)].minus(before).plus(after)
	if h := s.Terms.Guarantee; !h.IsZero() {
		d.pledges[h] += after.pledged - before.pledged
	}
}
