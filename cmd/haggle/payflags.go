package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

const (
	maxGuarantee = 64 << 10 // bytes, as a frame has them
	perMille     = 10       // of a percent
)

// payFlags are the flags of run and bid about money beyond the budget.
type payFlags struct {
	pay, idle, guarantee string
}

func (f *payFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.pay, "pay", "", "pay ahead by this method, such as lab or hand; none: owe it and settle later (default: on credit where the rig gives it, else the first method that both have)")
	flags.StringVar(&f.idle, "stop-idle", "", "end the job when every card is used below X% for so long, such as 5%/10m")
	flags.StringVar(&f.guarantee, "guarantee", "", "a file in which somebody whom the rig's owner trusts guarantees what you owe")
}

// request fills in what the flags say.
func (f *payFlags) request(b *view.BidRequest) error {
	b.Pay = f.pay
	idle, err := idleStop(f.idle)
	if err != nil {
		return err
	}
	b.StopIdle = idle
	if f.guarantee == "" {
		return nil
	}
	if b.Pay != "" && b.Pay != view.PayNone {
		return cli.Usage("--guarantee and --pay "+b.Pay+" exclude each other", "what is paid ahead needs no guarantee")
	}
	b.Guarantee, err = smallFile(f.guarantee)
	if err != nil {
		return cli.Usage("--guarantee: "+err.Error(), "name the file that `haggle guarantee` has written for you")
	}
	return nil
}

// idleStop reads X%/TIME; nil for "".
func idleStop(text string) (*market.IdleStop, error) {
	stop, err := view.ParseIdleStop(text, config.ParseDuration)
	if err != nil {
		return nil, cli.Usage(fmt.Sprintf("--stop-idle: %q is no rule for idle cards", clean(text)), err.Error())
	}
	return stop, nil
}

// smallFile reads a file that must not be longer than a guarantee.
func smallFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxGuarantee+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxGuarantee:
		return nil, fmt.Errorf("%s is longer than %d bytes", name, maxGuarantee)
	case len(data) == 0:
		return nil, fmt.Errorf("%s is empty", name)
	}
	return data, nil
}
