package config

import "fmt"

// Who may bid on a rig where strangers could pay ahead.
const (
	BiddersAnyone  = "anyone"
	BiddersTrusted = "trusted"
)

// RigPay is how a rig takes money.
type RigPay struct {
	Methods  []string // payment programs that are used, by name; empty: all that work
	Path     []string // folders that are searched for them after the rig's own
	Programs Programs // their settings
}

// payTable has the knobs of taking money. It comes last: its tables are of any number.
func payTable() []spec[Rig] {
	return []spec[Rig]{
		{
			Knob: Knob{
				Name: "rules.bidders", Kind: KindText, Default: BiddersAnyone,
				Doc: "Who may rent the rig's own cards: anyone, where strangers can pay ahead, or trusted, only owners whom you trust. Labs take anyone.",
			},
			field: func(r *Rig) any { return &r.Rules.Bidders }, check: oneOf(BiddersAnyone, BiddersTrusted),
		},
		{
			Knob: Knob{
				Name: "pay.methods", Kind: KindList,
				Doc: "The ways in which renters can pay ahead, such as hand: names of payment programs. None: every program that is found and works.",
			},
			field: func(r *Rig) any { return &r.Pay.Methods }, check: checkMethod,
		},
		{
			Knob: Knob{
				Name: "pay.path", Kind: KindList,
				Doc: "Folders that are searched for payment programs, haggle-pay-NAME, after the one that haggled lies in.",
			},
			field: func(r *Rig) any { return &r.Pay.Path }, check: checkAbsolute,
		},
		{
			Knob: Knob{
				Name: "pay" + anyProgram, Kind: KindPrograms,
				Doc: "Settings of payment programs, a table for each: [pay.hand] holds those of haggle-pay-hand. They can only receive.",
			},
			field: func(r *Rig) any { return &r.Pay.Programs },
		},
	}
}

func checkMethod(s string) error {
	if !programForm.MatchString(s) {
		return fmt.Errorf("holds %.40q, which is not the name of a payment program", s)
	}
	return nil
}
