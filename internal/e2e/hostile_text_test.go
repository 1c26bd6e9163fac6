//go:build linux

package e2e_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"haggle/market"
	"haggle/market/markettest"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

// steer is a text that would retitle, clear and colour a terminal, ring its bell, hide what follows and reorder it.
const steer = "\x1b]0;owned\a\x1b[2J\x1b[31m\u009b2J\u202e"

// wantPlain wants a text without control characters but for ends of lines, and without those that reorder.
func wantPlain(t *testing.T, what, text string) {
	t.Helper()
	for i, r := range text {
		if r < 0x20 && r != '\n' || r >= 0x7f && r < 0xa0 || r == '\u202e' {
			t.Errorf("%s lets %U through at %d: %q", what, r, i, text)
			return
		}
	}
}

// steeringOffer is an offer with steering texts wherever an offer has texts that are free.
func steeringOffer(node market.Key, id string) market.Offer {
	now := time.Now().UnixMilli()
	o := markettest.Offer()
	o.Rig, o.Owner, o.Name, o.ID, o.Seq, o.Issued, o.Expires = node, node, "hostile", id, now, now, now+market.MaxOfferLife.Milliseconds()
	o.Host.CPU, o.Host.Kernel, o.Host.Driver, o.Host.CUDA, o.Host.Isolation = "cpu"+steer, steer, steer, steer, steer
	o.Host.Images = append(o.Host.Images, market.ImageName{Name: "other", Digest: steer, Size: 1})
	o.Net.Reach = steer
	for i := range o.Slots {
		o.Slots[i].RawModel, o.Slots[i].Health = "card"+steer, "fit\x1b[2J"
	}
	return o
}

func TestTextsOfAHostileRigNeverSteerATerminal(t *testing.T) {
	t.Parallel()
	l := newProcessLab(t, 1)
	network := l.rigStatus(1).Network
	key := p2ptest.Key(t)
	good := steeringOffer(market.KeyOf(key), "good")
	named := steeringOffer(market.KeyOf(key), "named")
	named.Name = "rig" + steer
	offers := [][]byte{market.SealOffer(network.Name, key, good).Encode(), market.SealOffer(network.Name, key, named).Encode()}
	node := p2ptest.Start(t, p2p.Config{
		Key: key, Network: network.Name, Mode: p2p.ModeServer, Bootstrap: network.Addrs,
		Handlers: map[p2p.Protocol]p2p.Handler{
			p2p.OffersProtocol: p2p.OffersHandler(func() [][]byte { return offers }),
			p2p.LeaseProtocol: func(context.Context, *p2p.Stream) error {
				return market.NewError(market.CodeStartFailed, "reason", "no"+steer)
			},
		},
	})
	node.Announce(market.Buckets(good))
	awaitOffer(t, []string{"HAGGLE_HOME=" + l.home}, "hostile")

	list := l.haggle("offers", "--explain").wants(0)
	if n := strings.Count(list.out.String(), "hostile"); n != 1 {
		t.Errorf("of two offers %d are listed, want the one with a name that can be shown:\n%s", n, list.out.String())
	}
	wantPlain(t, "offers", list.out.String())
	show := l.haggle("show", "hostile").wants(0)
	wantPlain(t, "show", show.out.String())
	if !strings.Contains(show.out.String(), "card]0;owned[2J[31m2J") {
		t.Errorf("show hides the card's name:\n%s", show.out.String())
	}
	for _, args := range [][]string{{"offers", "--json"}, {"show", "hostile", "--json"}} {
		wantPlain(t, strings.Join(args, " "), l.haggle(args...).wants(0).out.String())
	}
	bid := l.haggle("bid", "--offer", "hostile", "--image", "lab", "--for", "10m", "--budget", "1.00", "--", "train").wants(4)
	wantPlain(t, "a refused bid", bid.err.String())
	wantRefusal(t, bid, "the rig could not start the job: no]0;owned[2J[31m2J")
	for _, args := range [][]string{{"leases", "--all"}, {"leases", "--all", "--json"}, {"peers"}, {"status"}} {
		p := l.haggle(args...).wants(0)
		wantPlain(t, p.line, p.out.String()+p.err.String())
	}
}

// onTerminal runs a command of the lab's renter on a terminal of its own and returns what it showed there.
func (l *lab) onTerminal(args ...string) string {
	l.t.Helper()
	if _, err := exec.LookPath("script"); err != nil {
		if os.Getenv("CI") == "true" {
			l.t.Fatal("script is missing; Debian's package bsdutils has it")
		}
		l.t.Skip("a terminal needs script")
	}
	line := "HAGGLE_HOME=" + l.home + " " + programPath("haggle") + " " + strings.Join(args, " ")
	cmd := exec.CommandContext(l.t.Context(), "script", "--quiet", "--return", "--command", line, "/dev/null")
	cmd.Env = append(cleanEnv(), "TERM=xterm")
	out, err := cmd.Output()
	if err != nil {
		l.t.Fatalf("%s on a terminal: %v\n%s", line, err, out)
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

func TestAJobsOutputReachesPipesRawAndTerminalsPlain(t *testing.T) {
	t.Parallel()
	l := newProcessLab(t, 1)
	// The trainer names its checkpoint, in a line on stderr.
	name := "\x1b]0;owned\a\x1b[2Jckpt.json"
	run := l.haggle("run", "--offer", "rig-1", "--image", "lab", "--for", "10m", "--budget", "1.00", "--", "train", "--steps", "2", "--checkpoint", name).wants(0)
	raw := fmt.Sprintf("saved %s at step 2", name)
	if !strings.Contains(run.err.String(), raw) {
		t.Errorf("a pipe does not get the job's bytes as they are: %q", run.err.String())
	}
	lease := l.newest(1).ID
	if logs := l.haggle("logs", lease).wants(0); !strings.Contains(logs.err.String(), raw) {
		t.Errorf("logs does not give a pipe the job's bytes as they are: %q", logs.err.String())
	}
	shown := l.onTerminal("logs", lease)
	if !strings.Contains(shown, "saved ckpt.json at step 2") || !strings.Contains(shown, "step 2/2") {
		t.Errorf("a terminal does not get the job's text: %q", shown)
	}
	wantPlain(t, "logs on a terminal", shown)
	wantPlain(t, "leases on a terminal", l.onTerminal("leases", "--all"))
}
