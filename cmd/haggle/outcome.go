package main

import (
	"context"
	"strconv"
	"strings"

	"haggle/internal/api"
	"haggle/internal/view"
	"haggle/market"
)

// printOutcome shows what became of what a lease's job left behind, if the job is over.
func (p *program) printOutcome(ctx context.Context, id string) error {
	l, err := ask(ctx, p, func(c *api.AgentClient) (view.Lease, error) { return c.Lease(ctx, id) })
	if err != nil {
		return err
	}
	switch {
	case l.Outcome != nil:
		p.Show("")
		return p.Facts("outcome", outcome(*l.Outcome))
	case l.State == string(market.JobEnded):
		p.Say("the rig has not said yet what became of the job's disk and of the cards' memory")
	}
	return nil
}

// outcome puts a rig's word on what a job left behind into a line: what was destroyed and overwritten, and what was not.
func outcome(o view.Outcome) string {
	parts := []string{"disk kept"}
	if o.DiskAt > 0 {
		parts[0] = "disk destroyed " + clock(o.DiskAt)
	}
	if len(o.Cards) == 0 {
		parts = append(parts, "no card memory was in use")
	}
	for _, c := range o.Cards {
		card := "card " + strconv.Itoa(int(c.Index))
		switch {
		case c.Bytes > 0 && c.Why != "":
			parts = append(parts, card+" memory scrubbed "+gib(c.Bytes)+", not all of it: "+c.Why)
		case c.Bytes > 0:
			parts = append(parts, card+" memory scrubbed "+gib(c.Bytes))
		case c.Why != "":
			parts = append(parts, card+" memory NOT scrubbed: "+c.Why)
		default:
			parts = append(parts, card+" memory NOT scrubbed")
		}
	}
	return strings.Join(parts, ", ")
}

// gib writes a size of memory as cards are sold: in whole GiB, rounded.
func gib(bytes int64) string {
	if bytes < 1<<30 {
		return strconv.FormatInt((bytes+1<<19)>>20, 10) + " MiB"
	}
	return strconv.FormatInt((bytes+1<<29)>>30, 10) + " GiB"
}
