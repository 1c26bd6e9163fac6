//go:build linux

package e2e_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"haggle/internal/view"
	"haggle/market"
)

// oneLine is how every error is told: one line, with a hint.
var oneLine = regexp.MustCompile(`^haggle: [^\n]+ \(hint: [^\n]+\)\n$`)

// wantRefusal wants one line with a hint on stderr, which begins with a sentence, and nothing on stdout.
func wantRefusal(t *testing.T, p *program, sentence string) {
	t.Helper()
	said := p.err.String()
	if !oneLine.MatchString(said) || !strings.HasPrefix(said, "haggle: "+sentence) {
		t.Errorf("%s says %q, want one line that begins %q and has a hint", p.line, said, sentence)
	}
	if p.out.String() != "" {
		t.Errorf("%s writes %q to stdout", p.line, p.out.String())
	}
}

// order is a bid that the lab's first rig would take, with some of it changed.
func order(verb string, change map[string]string, query ...string) []string {
	flags := map[string]string{"--offer": "rig-1", "--image": "lab", "--for": "10m", "--budget": "1.00", "--gpus": "1"}
	for name, value := range change {
		flags[name] = value
	}
	args := append([]string{verb}, query...)
	for _, name := range []string{"--offer", "--image", "--for", "--budget", "--gpus"} {
		if flags[name] != "" {
			args = append(args, name, flags[name])
		}
	}
	return append(args, "--", "train", "--steps", "2")
}

func TestARefusedBidReservesAndBillsNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3)
	gone := l.offerID(1)
	l.haggled(1, "price", "0.37").wants(0)
	await(t, "the new price", func() bool { return l.offered("gpu_name=RTX_4090 dph=0.37") })
	noOffer := map[string]string{"--offer": ""}
	for _, c := range []struct {
		name     string
		args     []string // without the verb
		code     market.Class
		sentence string
	}{
		{
			"more slots than the offer has", order("", map[string]string{"--gpus": "3"}), market.ClassRefused,
			"the offer has 2 slots of this kind, 3 were asked for (hint: ask for fewer with --gpus",
		},
		{
			"more slots than any offer has", order("", map[string]string{"--offer": "", "--gpus": "3"}, "gpu_name=RTX_4090"), market.ClassNotFound,
			"none of 3 offers matches",
		},
		{"an offer that was replaced", order("", map[string]string{"--offer": gone}), market.ClassNotFound, "there is no offer " + gone},
		{"an offer that never was", order("", map[string]string{"--offer": "00000000"}), market.ClassNotFound, "there is no offer 00000000"},
		{
			"an unknown image", order("", map[string]string{"--image": "nosuch"}), market.ClassRefused,
			"the rig does not have image nosuch (hint: its images are: lab)",
		},
		{
			"an unknown image of any rig", order("", map[string]string{"--offer": "", "--image": "nosuch"}, "num_gpus>=1"), market.ClassRefused,
			"the rig does not have image nosuch (hint: its images are: lab)",
		},
		{
			"a budget below the first minute", order("", map[string]string{"--budget": "0.006165"}), market.ClassBudget,
			"a budget of 0.006165 does not pay for the first minute, which costs 0.006166 (hint: raise --budget",
		},
		{
			"a shorter time than the rig takes", order("", map[string]string{"--for": "500ms"}), market.ClassRefused,
			"a lease of 500ms is outside the rig's range 1s to ",
		},
		{"no match", order("", noOffer, "gpu_name=RTX_5090"), market.ClassNotFound, "none of 3 offers matches"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for verb, code := range map[string]int{"bid": int(c.code), "run": 125} {
				c.args[0] = verb
				wantRefusal(t, l.in(t).haggle(c.args...).wants(code), c.sentence)
			}
			l.in(t).wantUntouched()
		})
	}
}

func TestAPausedOrDrainingRigTakesNoBid(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	for _, wish := range []string{"pause", "drain"} {
		l.haggled(1, wish).wants(0)
		// Whether the agent has heard of it already or the rig says it: no lease comes of it.
		for verb, codes := range map[string][]int{"bid": {int(market.ClassRefused), int(market.ClassNotFound)}, "run": {125}} {
			p := l.haggle(order(verb, nil)...)
			<-p.ended
			if got := p.cmd.ProcessState.ExitCode(); !slices.Contains(codes, got) {
				t.Errorf("%s on a rig after %s: exit code %d, want one of %v", p.line, wish, got, codes)
			}
			wantRefusal(t, p, "")
		}
		l.wantUntouched()
		l.haggled(1, "resume").wants(0)
		await(t, "the offer after resume", func() bool { return l.offered("gpu_name=RTX_4090") })
	}
	l.haggle(order("run", nil)...).wants(0)
}

// offered tells whether the agent sees an offer that matches a query.
func (l *lab) offered(query string) bool {
	l.t.Helper()
	list, err := l.agent.Offers(l.t.Context(), view.OfferQuery{Query: query})
	return err == nil && len(list.Offers) > 0
}

// offerID returns the id of a rig's offer as it is now.
func (l *lab) offerID(rig int) string {
	l.t.Helper()
	name := l.rigStatus(rig).Name
	o, err := l.agent.Offer(l.t.Context(), name)
	if err != nil {
		l.t.Fatal(err)
	}
	return o.ID
}

// in returns the lab for use by a subtest.
func (l *lab) in(t *testing.T) *lab {
	t.Helper()
	inner := *l
	inner.t = t
	return &inner
}

// wantUntouched wants a first rig with all slots free that knows of no lease, and an agent that owes nothing to anyone.
func (l *lab) wantUntouched() {
	l.t.Helper()
	s := l.rigStatus(1)
	if s.Free != 2 {
		l.t.Errorf("the rig has %d free slots, want 2", s.Free)
	}
	leases, err := l.rig(1).Leases(l.t.Context(), true)
	if err != nil || len(leases) > 0 {
		l.t.Errorf("the rig keeps leases: %s, %v", states(leases), err)
	}
	mine, err := l.agent.Leases(l.t.Context(), true)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, v := range mine {
		if v.State != "refused" || v.Debt != string(market.DebtFinal) || v.Spent.Micro != 0 || v.Signed.Micro != 0 {
			l.t.Errorf("the agent keeps %+v of a bid that was refused", v)
		}
	}
	if a, err := l.agent.Status(l.t.Context()); err != nil || a.Leases != 0 {
		l.t.Errorf("the agent has %d open leases, %v", a.Leases, err)
	}
}
