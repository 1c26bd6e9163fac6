package main

import (
	"cmp"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/view"
	"haggle/market"
)

// orderFlags are the flags of run and bid.
type orderFlags struct {
	offer, image, duration, budget, currency, unattended, disk string
	residency                                                  string
	gpus                                                       int
	env                                                        []string
	bring                                                      bringFlags
	pays                                                       payFlags
	deputies, json                                             bool
}

func (f *orderFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.offer, "offer", "", "rent from this offer, in place of a query")
	flags.StringVar(&f.image, "image", "", "image that the rig lists by this name, or an OCI archive of this machine (./FILE, FILE.tar), which is sent")
	flags.IntVar(&f.gpus, "gpus", 1, "number of cards, all in one rig")
	flags.StringVar(&f.duration, "for", "1h", "running time at most, such as 90s, 2h or 7d")
	flags.StringVar(&f.budget, "budget", "", "spend at most this, such as 3.00 (default: what the whole time costs)")
	flags.StringVar(&f.currency, "currency", "", "currency of the budget (default: the configured one, USD)")
	flags.StringVar(&f.unattended, "unattended", "10m", "how long the job may go on while this machine is off: where the lease is paid ahead, that much is paid ahead, and lost if the rig vanishes")
	flags.BoolVar(&f.deputies, "deputies", false, "your deputies may sign, pay and collect for this lease while this machine is away: see `haggle deputy`")
	flags.StringVar(&f.disk, "disk", "", "the job's disk, such as 50GB or 50GiB (default: 10GB, or the card's part of it where that is less)")
	flags.StringVar(&f.residency, "residency", "", "countries in which the job may run, such as DE,NL, with what must speak for it: :claimed (default), :address or :round-trip")
	flags.StringArrayVar(&f.env, "env", nil, "NAME=VALUE for the job, or NAME to pass this shell's value on; may be repeated")
	f.bring.register(flags)
	f.pays.register(flags)
}

// request makes the bid of a command line. Words before -- are the query, those after it the job's command.
func (f *orderFlags) request(c *cobra.Command, args []string, currency string) (view.BidRequest, error) {
	command := []string{}
	if dash := c.ArgsLenAtDash(); dash >= 0 {
		args, command = args[:dash], args[dash:]
	}
	b := view.BidRequest{
		Query: strings.Join(args, " "), Offer: f.offer, Image: f.image, Args: command, GPUs: f.gpus, Currency: cmp.Or(f.currency, currency),
		Deputies: f.deputies,
	}
	switch {
	case f.image == "":
		return b, cli.Usage(c.Name()+" needs --image NAME", "`haggle offers` lists the images of each rig")
	case f.offer != "" && b.Query != "":
		return b, cli.Usage("a query and --offer exclude each other", "leave one of them out; the job's command goes behind --")
	case f.gpus < 1:
		return b, cli.Usage("--gpus must be at least 1", "leave it out for one card")
	}
	if err := checkQuery(b.Query); err != nil {
		return b, err // said at once, with no agent and no network
	}
	var err error
	if b.Residency, err = parseResidency(f.residency); err != nil {
		return b, err
	}
	if err := f.limits(&b); err != nil {
		return b, err
	}
	for _, part := range []func(*view.BidRequest) error{f.bring.request, f.pays.request} {
		if err := part(&b); err != nil {
			return b, err
		}
	}
	file, err := imageFile(f.image)
	if err != nil {
		return b, err
	}
	if file != "" {
		b.Image, b.ImageFile = "", file
	}
	for _, e := range f.env {
		name, _, given := strings.Cut(e, "=")
		if !given {
			e = name + "=" + os.Getenv(name)
		}
		if name == "" {
			return b, cli.Usage("--env "+e+" has no name", "write --env NAME=VALUE")
		}
		b.Env = append(b.Env, e)
	}
	return b, nil
}

// limits fills in times and money.
func (f *orderFlags) limits(b *view.BidRequest) error {
	for _, t := range []struct {
		flag, text string
		into       *int64
	}{{"--for", f.duration, &b.DurationMs}, {"--unattended", f.unattended, &b.UnattendedMs}} {
		d, err := config.ParseDuration(t.text)
		if err != nil {
			return cli.Usage(t.flag+": "+err.Error(), "write a time such as 90s, 2h or 7d")
		}
		if d.Milliseconds() == 0 {
			return cli.Usage(t.flag+" must be longer than nothing", "write a time such as 90s, 2h or 7d")
		}
		*t.into = d.Milliseconds()
	}
	if err := f.disks(b); err != nil {
		return err
	}
	if f.budget == "" {
		return nil
	}
	m, err := market.ParseMicro(f.budget)
	if err != nil {
		return err
	}
	if m == 0 {
		return cli.Usage("--budget must be more than nothing", "leave it out for what the whole time costs")
	}
	b.BudgetMicro = int64(m)
	return nil
}

// disks fills in the job's disk, in whole millions of bytes, rounded up.
func (f *orderFlags) disks(b *view.BidRequest) error {
	if f.disk == "" {
		return nil
	}
	const mb = 1_000_000
	n, err := config.ParseSize(f.disk)
	switch {
	case err != nil:
		return cli.Usage("--disk: "+err.Error(), "write a size such as 50GB")
	case n < mb:
		return cli.Usage("--disk must be at least 1MB", "leave it out for what comes with the card")
	}
	b.DiskMB = wholeMB(n)
	return nil
}

const orderExample = "  haggle %[1]s 'gpu_name=RTX_4090' --image lab --for 10m --budget 1.00 -- train --steps 20\n" +
	"  haggle %[1]s --offer 3f9a12c4 --image lab --gpus 2 --for 2h --unattended 2h --env SEED=7 -- train\n" +
	"  haggle %[1]s 'gpu_ram>=24 pay_auto=true' --image lab --for 8h --unattended 8h --stop-idle 5%%/10m -- train   # go to bed\n" +
	"  haggle %[1]s 'gpu_ram>=24 disk_free>=200GB' --image lab --disk 200GB --for 1d -- train\n" +
	"  haggle %[1]s @cheap --image lab --residency DE,NL:address -- train   # not elsewhere, and its address must say so, too\n" +
	"  haggle %[1]s 'gpu_ram>=24' --image pytorch --src . --collect out --name cats -- python train.py\n" +
	"  haggle %[1]s 'gpu_ram>=24' --image pytorch --port jupyter=8888 --secret HF_TOKEN --checkpoint 10m -- jupyter lab"

const orderHelp = "With a query, the best offer that matches is taken, and if its rig refuses the next one. The rig ends the job at the\n" +
	"budget, at the end of its time, when its cards were idle for as long as --stop-idle says, and when this machine was away for\n" +
	"longer than --unattended. A lease that is paid ahead is paid in slices as it runs, by the agent, within `haggle budget`; what\n" +
	"is not used stays your balance with that owner. You can lose what is paid and not used: one slice, or with --unattended 8h\n" +
	"what eight hours cost."
