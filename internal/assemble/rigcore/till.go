package rigcore

import (
	"context"
	"slices"

	"haggle/internal/config"
	"haggle/internal/host"
	"haggle/internal/pay"
	"haggle/market"
)

// till makes what runs the rig's payment programs: those beside this program, and those in the folders of pay.path.
func (r *Rig) till() (host.Till, error) {
	c := r.cfg.Rig
	programs, err := pay.New(pay.Config{
		Folders: pay.Folders(c.Pay.Path, r.log), Settings: c.Pay.Programs, Network: c.Network, Side: pay.Payee, Log: r.log,
	})
	if err != nil {
		return nil, err
	}
	return till{programs, c.Pay.Methods}, nil
}

// till is the payment programs that the owner wants to be used.
type till struct {
	*pay.Programs
	only []string // by name; empty: all
}

// idlePrograms says which of the payment programs that the owner set up take no money.
func idlePrograms(c config.RigPay, pays []market.PayMethod) []string {
	wanted := slices.Clone(c.Methods)
	for name := range c.Programs {
		if len(c.Methods) == 0 {
			wanted = append(wanted, name)
		}
	}
	slices.Sort(wanted)
	var list []string
	for _, name := range slices.Compact(wanted) {
		if !slices.ContainsFunc(pays, func(p market.PayMethod) bool { return p.Name == name }) {
			list = append(list, "nobody can pay by "+name+": haggle-pay-"+name+" is not found, does not work, or does not take the rig's currency; the log says which")
		}
	}
	return list
}

// Methods implements host.Till.
func (t till) Methods(ctx context.Context) []pay.Method {
	list := t.Programs.Methods(ctx)
	if len(t.only) == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(m pay.Method) bool { return !slices.Contains(t.only, m.Name) })
}
