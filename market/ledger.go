package market

import (
	"cmp"
	"math"
	"slices"
)

// LeaseFacts is what one side knows of one lease's money and end, from records whose signatures it has checked.
type LeaseFacts struct {
	Lease       LeaseID
	Terms       Terms     // with the extensions that both signed
	Job         JobState  // ended: nothing more is used
	Debt        DebtState //
	Reason      Reason    // once ended
	BilledMs    int64     // running time so far
	Begun       int64     // wall time of the grant
	Ended       int64     // wall time of the end; 0 before
	StartMs     int64     // from both signatures to the first running second; 0 where it is not known
	Used        Micro     // so far, as the rig says
	Signed      Micro     // of that, in the newest receipt that both signed
	Paid        Micro     // total of the payments that the rig signed
	FromBalance Micro     // of that, by the method PayBalance: it has been counted once already
	Decided     *Micro    // total by the guarantor's word; nil without one
}

// Due returns what the lease has cost as far as it stands: what the guarantor decided, what both signed where it is disputed,
// and else what was used.
func (f LeaseFacts) Due() Micro {
	switch {
	case f.Decided != nil:
		return *f.Decided
	case f.Debt == DebtDisputed:
		return f.Signed
	default:
		return f.Used
	}
}

// Unpaid returns what of the lease is due and not paid.
func (f LeaseFacts) Unpaid() Micro { return max(0, f.Due()-f.Paid) }

// reserved returns what of the paid money is the lease's own: all of it while it is open, and then what it cost.
func (f LeaseFacts) reserved() Micro {
	if f.Job == JobEnded {
		return f.Due()
	}
	return max(f.Due(), f.Paid)
}

// Ages of a debt by which Account.Ageing divides it, in milliseconds; the last part is older than all.
const (
	AgeWeek    = 7 * day
	AgeMonth   = 30 * day
	AgeQuarter = 90 * day

	day = int64(24 * msPerHour)
)

// Account is what the owners of two programs owe each other in one currency. Owed and Balance exclude each other.
type Account struct {
	Owner    Key // the other one
	Currency string
	Used     Micro
	Signed   Micro
	Paid     Micro // that came from outside: what was moved from a balance is not counted again
	Unspent  Micro // paid for leases that are open, and not used yet
	Owed     Micro // due, and neither paid nor covered by a balance
	Balance  Micro // paid, not used, and of no open lease: it can be moved to another
	Disputed Micro // used in leases that are disputed, and not signed
	Ageing   [4]Micro
	Oldest   int64 // wall time at which the oldest lease ended of which something is owed; 0 for none
	Leases   []LeaseFacts
}

// Ledger collects leases into accounts: one for each owner and currency. Currencies are never added. It is not safe for use by
// several goroutines.
type Ledger struct {
	side     Role
	now      int64
	accounts map[accountKey]*Account
	seen     map[LeaseID]bool
}

type accountKey struct {
	owner    Key
	currency string
}

// NewLedger returns an empty ledger of a rig or of a renter, at a wall time.
func NewLedger(side Role, now int64) *Ledger {
	return &Ledger{side: side, now: now, accounts: map[accountKey]*Account{}, seen: map[LeaseID]bool{}}
}

// Add takes one lease into its account. The error has code CodeOverflow where a sum is too large to be counted, and
// CodeBadRecord where the lease is there already; the ledger is then as it was.
func (l *Ledger) Add(f LeaseFacts) error {
	owner := f.Terms.RigOwner
	if l.side == RoleRig {
		owner = f.Terms.RenterOwner
	}
	if l.seen[f.Lease] {
		return NewError(CodeBadRecord, "kind", string(KindLease), "why", "it is in the ledger already")
	}
	k := accountKey{owner, f.Terms.Prices.Currency}
	a := Account{Owner: owner, Currency: k.currency}
	if have := l.accounts[k]; have != nil {
		a = *have
	}
	sums := []struct {
		sum *Micro
		add Micro
	}{
		{&a.Used, f.Used}, {&a.Signed, f.Signed}, {&a.Paid, f.Paid - f.FromBalance}, {&a.Unspent, f.reserved() - f.Due()},
	}
	for _, s := range sums {
		if s.add < 0 || *s.sum > math.MaxInt64/4-s.add {
			return NewError(CodeOverflow, "value", "of an account")
		}
		*s.sum += s.add
	}
	if f.Debt == DebtDisputed && f.Decided == nil {
		a.Disputed += max(0, f.Used-f.Signed)
	}
	a.Leases = append(slices.Clone(a.Leases), f)
	l.accounts[k], l.seen[f.Lease] = &a, true
	return nil
}

// Accounts returns all accounts, by owner and currency, each with its leases from the newest to the oldest.
func (l *Ledger) Accounts() []Account {
	list := make([]Account, 0, len(l.accounts))
	for _, a := range l.accounts {
		list = append(list, a.closed(l.now))
	}
	slices.SortFunc(list, func(a, b Account) int {
		return cmp.Or(slices.Compare(a.Owner[:], b.Owner[:]), cmp.Compare(a.Currency, b.Currency))
	})
	return list
}

// Account returns the account with an owner in a currency; an empty one where there is none.
func (l *Ledger) Account(owner Key, currency string) Account {
	if a := l.accounts[accountKey{owner, currency}]; a != nil {
		return a.closed(l.now)
	}
	return Account{Owner: owner, Currency: currency}
}

// closed returns the account with what follows from its leases.
func (a Account) closed(now int64) Account {
	var needed, unpaid Micro
	for _, f := range a.Leases {
		needed += f.reserved()
		unpaid += f.Unpaid()
	}
	a.Owed, a.Balance = max(0, needed-a.Paid), max(0, a.Paid-needed)
	a.Leases = slices.SortedFunc(slices.Values(a.Leases), func(x, y LeaseFacts) int {
		return cmp.Or(cmp.Compare(y.Begun, x.Begun), slices.Compare(x.Lease[:], y.Lease[:]))
	})
	debts := slices.SortedFunc(slices.Values(a.Leases), func(x, y LeaseFacts) int {
		return cmp.Or(cmp.Compare(ended(x, now), ended(y, now)), slices.Compare(x.Lease[:], y.Lease[:]))
	})
	covered := unpaid - a.Owed // by what is left of other leases: it goes to the oldest debts first
	for _, f := range debts {
		open := f.Unpaid()
		by := min(open, covered)
		covered, open = covered-by, open-by
		if open == 0 {
			continue
		}
		if a.Oldest == 0 && f.Ended > 0 {
			a.Oldest = f.Ended
		}
		a.Ageing[age(now-ended(f, now))] += open
	}
	return a
}

// ended returns when a lease ended; one that is open ends now.
func ended(f LeaseFacts, now int64) int64 {
	if f.Ended == 0 {
		return now
	}
	return f.Ended
}

func age(ms int64) int {
	switch {
	case ms <= AgeWeek:
		return 0
	case ms <= AgeMonth:
		return 1
	case ms <= AgeQuarter:
		return 2
	default:
		return 3
	}
}
