package cli

import (
	"context"

	"github.com/spf13/pflag"

	"haggle/internal/view"
	"haggle/market"
)

// Truster is what trust needs of a rig.
type Truster interface {
	TrustedOwners(ctx context.Context) ([]view.Owner, error)
	Trust(ctx context.Context, owner market.Key, t view.Trust) error
	Distrust(ctx context.Context, owner market.Key) error
}

// Trust is the command that says which owners a rig's owner trusts. Its flags are read by Run.
type Trust struct {
	name, credit           string
	guarantor, noGuarantor bool
	remove, json           bool
}

// TrustHelp says what it means to trust an owner.
const TrustHelp = "An owner whose key you trust may rent this rig's cards on credit: --credit is what it may owe over all of its leases before\n" +
	"it pays; without it the rig's own rule holds (`rules.credit`). What a trusted owner has not paid is your loss. Others must pay\n" +
	"ahead, where the rig has a way to be paid. With --guarantor, what the owner guarantees for others is taken too. A renter finds\n" +
	"the key by `haggle status` and sends it to you. To trust says nothing about what a job may do on this machine: every job is\n" +
	"shut in alike.\n\n" +
	"Without KEY the trusted owners are listed, with what they owe. When a key is removed, no more bids of it are taken on credit;\n" +
	"leases that are signed go on."

// Register adds the command's flags.
func (f *Trust) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.name, "name", "", "the owner, in your own words; nobody else sees it")
	flags.StringVar(&f.credit, "credit", "", "what the owner may owe over all leases, such as 20; `unlimited`, or `default` for the rig's own rule")
	flags.BoolVar(&f.guarantor, "guarantor", false, "take what this owner guarantees for others")
	flags.BoolVar(&f.noGuarantor, "no-guarantor", false, "take it no more")
	flags.BoolVar(&f.remove, "remove", false, "trust this owner no more")
	flags.BoolVar(&f.json, "json", false, "print the list for programs")
}

// Run does what the flags say with the owner of a key, or lists the owners where key is empty. A key that is none is refused
// without asking the rig.
func (f *Trust) Run(ctx context.Context, t Terminal, rig Truster, key string) error {
	changes := f.name != "" || f.credit != "" || f.guarantor || f.noGuarantor
	switch {
	case key == "" && (f.remove || changes):
		return Usage("trust does not know whose key is meant", "`"+t.Program+" trust` lists them; name one: "+t.Program+" trust KEY")
	case f.remove && changes:
		return Usage("--remove excludes the other flags", "leave them out")
	case f.guarantor && f.noGuarantor:
		return Usage("--guarantor and --no-guarantor exclude each other", "leave one of them out")
	}
	if key != "" {
		owner, err := market.ParseKey(key)
		if err != nil {
			return err
		}
		if err := f.change(ctx, rig, owner); err != nil {
			return err
		}
		if !f.json {
			return f.said(ctx, t, rig, owner)
		}
	}
	list, err := rig.TrustedOwners(ctx)
	switch {
	case err != nil:
		return err
	case f.json:
		return t.JSON(list)
	case len(list) == 0:
		t.Say("no owner is trusted (hint: `%s trust KEY` adds one)", t.Program)
		return nil
	}
	return showOwners(t, list)
}

func (f *Trust) change(ctx context.Context, rig Truster, owner market.Key) error {
	if f.remove {
		return rig.Distrust(ctx, owner)
	}
	var trust view.Trust
	if f.name != "" {
		trust.Name = &f.name
	}
	if f.guarantor || f.noGuarantor {
		trust.Guarantor = &f.guarantor
	}
	switch credit := f.credit; credit {
	case "":
	case "default":
		trust.DefaultCredit = true
	case "unlimited":
		none := market.Unlimited
		trust.CreditMicro = &none
	default:
		m, err := market.ParseMicro(credit)
		if err != nil {
			return Usage("--credit "+credit+" is no amount", "such as 20.00, unlimited, or default")
		}
		micro := int64(m)
		trust.CreditMicro = &micro
	}
	return rig.Trust(ctx, owner, trust)
}

// said tells what an owner may do now.
func (f *Trust) said(ctx context.Context, t Terminal, rig Truster, owner market.Key) error {
	if f.remove {
		t.Say("%s is not trusted any more; leases that are signed go on", owner)
		return nil
	}
	list, err := rig.TrustedOwners(ctx)
	if err != nil {
		return err
	}
	for _, o := range list {
		if o.Key == owner.String() {
			t.Say("%s may rent here on credit: %s", owner, creditOf(o))
		}
	}
	return nil
}

func showOwners(t Terminal, list []view.Owner) error {
	rows := make([][]string, 0, len(list))
	for _, o := range list {
		guarantor := ""
		if o.Guarantor {
			guarantor = "guarantor"
		}
		rows = append(rows, []string{o.Key, o.Name, day(o.Since), Amount(o.Owes), creditOf(o), guarantor})
	}
	return t.Table("KEY NAME SINCE OWES CREDIT ALSO", rows)
}

// creditOf says what an owner may owe.
func creditOf(o view.Owner) string {
	if o.Credit.Unlimited {
		return "unlimited"
	}
	if o.Credit.Most.Text == "" {
		return ""
	}
	return "at most " + Amount(o.Credit.Most)
}
