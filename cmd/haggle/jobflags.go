package main

import (
	"github.com/spf13/cobra"

	"haggle/internal/cli"
	"haggle/internal/config"
	"haggle/internal/view"
)

// jobFlags describe the user's job, for which offers are priced and timed. Nothing is ordered by them.
type jobFlags struct {
	gpus                           int
	duration, disk, in, out, image string
}

// register adds the flags; lasting is what --for is without a word.
func (f *jobFlags) register(c *cobra.Command, lasting string) {
	flags := c.Flags()
	flags.IntVar(&f.gpus, "gpus", 1, "cards of my job, all in one rig")
	flags.StringVar(&f.duration, "for", "", "running time of my job, such as 90s, 2h or 7d (default: "+lasting+")")
	flags.StringVar(&f.disk, "disk", "", "disk of my job, such as 50GB (default: what comes with the card)")
	flags.StringVar(&f.in, "traffic-in", "", "what my job receives, such as 20GB")
	flags.StringVar(&f.out, "traffic-out", "", "what my job sends, such as 20GB")
	flags.StringVar(&f.image, "image", "", "image of my job: rigs that hold it start at once")
}

// shape is the job of a command line. Zero is the default.
func (f *jobFlags) shape() (view.JobShape, error) {
	j := view.JobShape{GPUs: f.gpus, Image: f.image}
	if f.gpus < 1 {
		return j, cli.Usage("--gpus must be at least 1", "leave it out for one card")
	}
	if f.duration != "" {
		d, err := config.ParseDuration(f.duration)
		if err != nil || d.Milliseconds() == 0 {
			return j, cli.Usage("--for "+f.duration+" is no time", "write a time such as 90s, 2h or 7d")
		}
		j.DurationMs = d.Milliseconds()
	}
	for _, s := range []struct {
		flag, text string
		into       *int64
	}{{"--disk", f.disk, &j.DiskMB}, {"--traffic-in", f.in, &j.InMB}, {"--traffic-out", f.out, &j.OutMB}} {
		if s.text == "" {
			continue
		}
		n, err := config.ParseSize(s.text)
		if err != nil {
			return j, cli.Usage(s.flag+": "+err.Error(), "write a size such as 50GB")
		}
		*s.into = wholeMB(n)
	}
	return j, nil
}

// wholeMB is a number of bytes in millions, rounded up.
func wholeMB(bytes int64) int64 {
	const mb = 1_000_000
	n := bytes / mb
	if bytes%mb > 0 {
		n++
	}
	return n
}
