package cli

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"haggle/internal/view"
	"haggle/market"
)

// Confirmer is what confirm needs of a rig.
type Confirmer interface {
	Confirm(ctx context.Context, lease string, c view.Confirm) (view.Lease, error)
}

// Confirm is the command by which a rig's owner says that money has come. Its flags are read by Run.
type Confirm struct {
	slice             uint32
	amount, reference string
	json              bool
}

// ConfirmHelp says what it means to confirm money.
const ConfirmHelp = "Say that money for a lease has come, where it is paid by hand: the rig signs for it, and the renter keeps that. It cannot be\n" +
	"taken back. Without --amount it is what the rig has asked for, or else what the lease owes. What comes beyond that stays the\n" +
	"renter's balance."

// Register adds the command's flags.
func (f *Confirm) Register(flags *pflag.FlagSet) {
	flags.Uint32Var(&f.slice, "slice", 0, "the slice that the money is for (default: the one that is asked for)")
	flags.StringVar(&f.amount, "amount", "", "what has come, such as 2.50 (default: what was asked for)")
	flags.StringVar(&f.reference, "reference", "", "the bank's or the renter's own reference, at most 128 bytes")
	flags.BoolVar(&f.json, "json", false, "print the lease for programs")
}

// Run confirms money of a lease.
func (f *Confirm) Run(ctx context.Context, t Terminal, rig Confirmer, lease string) error {
	c := view.Confirm{Slice: f.slice, Reference: f.reference}
	if f.amount != "" {
		m, err := market.ParseMicro(f.amount)
		if err != nil || m <= 0 {
			return Usage("--amount "+f.amount+" is no amount that can come", "such as 2.50, in the lease's currency")
		}
		c.AmountMicro = int64(m)
	}
	l, err := rig.Confirm(ctx, strings.TrimPrefix(lease, "lease-"), c)
	switch {
	case err != nil:
		return err
	case f.json:
		return t.JSON(l)
	case l.Pay == nil:
		t.Show("lease %s: confirmed", short(l.ID))
	default:
		t.Show("lease %s: %s paid in all, %s used", short(l.ID), Amount(l.Pay.Paid), Amount(l.Spent))
	}
	return nil
}
