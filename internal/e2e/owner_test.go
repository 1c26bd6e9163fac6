//go:build linux

package e2e_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"haggle/internal/view"
	"haggle/market"
)

func TestRentersSeeWhatOwnersDecide(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3)
	if got := l.listed(); got != "rig-1 0.36, rig-2 0.18, rig-3 2.40" {
		t.Errorf("the lab offers %s", got)
	}
	l.haggled(1, "pause").wants(0)
	l.haggled(2, "price", "0.21").wants(0)
	l.haggled(3, "drain").wants(0)
	l.awaitListed("rig-2 0.21")
	if s := l.rigStatus(1); !s.Paused || s.Draining {
		t.Errorf("a paused rig says %+v", s)
	}
	if s := l.rigStatus(3); !s.Draining {
		t.Errorf("a draining rig says %+v", s)
	}
	l.haggled(1, "resume").wants(0)
	l.haggled(3, "resume").wants(0)
	l.awaitListed("rig-1 0.36, rig-2 0.21, rig-3 2.40")
}

func TestAnOwnersPriceAndPauseOutliveTheDaemon(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	l.haggled(1, "price", "0.50").wants(0)
	l.haggled(1, "pause").wants(0)
	l.killRig(1)
	l.restartRig(1)
	if s := l.rigStatus(1); !s.Paused || s.Prices.Slot != 500_000 {
		t.Errorf("after its daemon's death the rig says %+v", s)
	}
	l.haggled(1, "resume").wants(0)
	l.awaitListed("rig-1 0.50")
}

func TestDrainNowEndsJobsAfterTheirNotice(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1)
	run, lease := l.endless()
	l.haggled(1, "drain", "--now").wants(0)
	run.wants(143)
	wantExit(t, l.settled(1, lease), market.ReasonRig, 143)
	l.awaitFree(1, 2)
}

// listed is what `haggle offers` lists: rigs and prices, by name.
func (l *lab) listed() string {
	l.t.Helper()
	p := l.haggle("offers", "--json")
	<-p.ended
	var offers []view.Offer
	if err := json.Unmarshal([]byte(p.out.String()), &offers); err != nil {
		l.t.Fatalf("%s: %v\n%s%s", p.line, err, p.out.String(), p.err.String())
	}
	var rows []string
	for _, o := range offers {
		rows = append(rows, o.Rig+" "+o.Price.Text)
	}
	slices.Sort(rows)
	return strings.Join(rows, ", ")
}

// awaitListed waits until the agent knows of the offers that a list names, and wants the command to list them.
func (l *lab) awaitListed(want string) {
	l.t.Helper()
	await(l.t, "the offers "+want, func() bool {
		list, err := l.agent.Offers(l.t.Context(), view.OfferQuery{})
		var rows []string
		for _, o := range list.Offers {
			rows = append(rows, o.Rig+" "+o.Price.Text)
		}
		slices.Sort(rows)
		return err == nil && strings.Join(rows, ", ") == want
	})
	if got := l.listed(); got != want {
		l.t.Errorf("`haggle offers` lists %s, want %s", got, want)
	}
}
