//go:build linux

package e2e_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/view"
)

// wrapped runs what `make run` runs after building, and then tells how it left the terminal.
const wrapped = `before=$(stty -g); scripts/first-job.sh; echo "ended with $?"; [ "$(stty -g)" = "$before" ] && echo "the terminal is as it was"; exec cat`

func TestMakeRunLeadsByKeysAloneFromTheStartToReceiptsSignedByBoth(t *testing.T) {
	t.Parallel()
	requireLab(t)
	requireTmux(t)
	home := shortDir(t)
	paths, err := config.AgentPaths(home)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, home: home, agent: api.DialAgent(paths.Socket)}
	t.Cleanup(func() { l.down(3) })
	p := newPane(t, 80, 24, append(manyReceipts(), "HAGGLE_HOME="+home, "BIN="+os.Getenv(programsVar)), wrapped)

	p.sees("3 offers", "RTX 3090", "SIM", "enter rent")
	p.press("Enter")
	p.sees("Rent RTX 3090 on rig-2", "whole price", "0.18 USD", "enter review")
	p.press("Enter")
	p.sees("Rent?", "it can cost at most 0.18 USD", "y rent")
	p.press("y")
	p.sees("● running", "step 1/300")
	if p.pressed > 5 {
		t.Errorf("%d keys lead to a running job, 5 would be many", p.pressed)
	}
	p.press("3")
	p.sees("✓ both", "open")
	p.press("2")
	p.sees("x stop")
	p.press("x")
	p.sees("Stop the job?", "y stop")
	p.press("y")
	p.sees("✓ ran", "you stopped it")
	p.press("b")
	p.sees("✓ final", "✓ both")
	l.settled(2, l.newest(2).ID)

	p.press("q")
	p.sees("The lab stays up", "export HAGGLE_HOME="+home, "haggle lab down", "ended with 0", "the terminal is as it was")
	if modes := p.tmux("display-message", "-p", "-t", "0", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"); modes != "0 1 0\n" {
		t.Errorf("alternate screen, cursor and mouse are %q after the end, want 0 1 0", modes)
	}
}

func TestMakeRunWithoutContainersIsTheSameMarketAndSaysNoIsolation(t *testing.T) {
	t.Parallel()
	requireLab(t)
	requireTmux(t)
	home := shortDir(t)
	l := &lab{t: t, home: home}
	t.Cleanup(func() { l.down(3) })
	p := newPane(t, 80, 24, []string{"HAGGLE_HOME=" + home, "BIN=" + os.Getenv(programsVar), "ENGINE=process"}, wrapped)
	p.sees("3 offers", "SIM NO ISO", "enter rent")
	p.press("Enter")
	p.sees("SIM NO ISOLATION", "whole price", "enter review")
	p.press("Enter")
	p.sees("y rent")
	p.press("y")
	p.sees("● running", "step 1/300")
	p.press("q")
	p.sees("The lab stays up", "ended with 0", "the terminal is as it was")
}

func TestTheScreensKeepWhatTheyKnowWhileTheAgentIsGone(t *testing.T) {
	t.Parallel()
	requireTmux(t)
	l := newLab(t, 1, manyReceipts()...)
	p := l.open(80, 24)
	lease := rentWide(l, p)

	l.killAgent()
	p.sees("agent away", "this is what it said last", lease.ID[:8], "● running", "step ")
	p.press("x")
	p.sees("nothing can be changed now")
	p.press("r")
	p.lacks("agent away")
	before := l.rigLease(1, lease.ID).Receipts
	await(t, "receipts after the agent came back", func() bool { return l.rigLease(1, lease.ID).Receipts > before+1 })
	p.sees("● running", "step ")
	p.press("x")
	p.sees("y stop")
	p.press("y")
	p.sees("you stopped it")
	l.settled(1, lease.ID)
}

// rentWide rents by keys alone and runs a job whose log has wide characters.
func rentWide(l *lab, p *pane) view.Lease {
	l.t.Helper()
	p.sees("enter rent", "RTX 4090")
	p.press("Enter")
	p.sees("whole price")
	p.press("Down", "Down", "Down", "Down", "C-u")
	p.sees("what the image runs")
	p.write("train --steps 600 --checkpoint 学習済みモデル.json")
	p.sees("学習済みモデル.json")
	p.press("Enter")
	p.sees("y rent")
	p.press("y")
	p.sees("● running", "saved 学習済みモデル.json at step 10")
	return l.newest(1)
}

func TestTheScreensFitEverySizeWithWideCharactersInThem(t *testing.T) {
	t.Parallel()
	requireTmux(t)
	l := newLab(t, 1, manyReceipts()...)
	p := l.open(80, 24)
	lease := rentWide(l, p)
	p.press("2") // what happened last gives its place to the status bar
	for _, size := range [][2]int{{80, 24}, {200, 50}, {40, 10}, {80, 24}} {
		p.resize(size[0], size[1])
		whole := []string{"[2 Leases]", "● running", "enter log"}
		if size[1] > 10 {
			whole = append(whole, lease.ID[:8], "saved 学習済みモデル.json", "── log ──")
		}
		p.sees(whole...)
		await(t, "a frame of the terminal's size", func() bool { return fits(p.lines(), size[0], size[1]) })
	}
	for _, page := range []struct{ key, shows string }{{"1", "enter rent"}, {"3", "✓ both"}, {"4", "haggled"}, {"?", "Keys of this page"}} {
		p.press(page.key)
		p.sees(page.shows)
		if lines := p.lines(); !fits(lines, 80, 24) {
			t.Errorf("after %s the frame does not fit:\n%s", page.key, strings.Join(lines, "\n"))
		}
	}
}

// fits tells whether a frame has a terminal's lines, the keys in the last of them, and none that is wider.
func fits(lines []string, width, height int) bool {
	if len(lines) != height || !strings.HasPrefix(lines[height-1], " ") || strings.TrimSpace(lines[height-1]) == "" {
		return false
	}
	for _, l := range lines {
		if ansi.StringWidth(l) > width {
			return false
		}
		// A text that follows wide characters stands where the program put it: nothing of an older frame is left behind it.
		if _, rest, wide := strings.Cut(l, "saved 学習済みモデル.json at step "); wide && strings.Trim(rest, "0123456789") != "" {
			return false
		}
	}
	return true
}

// colored finds the sequences that set a colour.
var colored = regexp.MustCompile(`\x1b\[([0-9;]*;)?(3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]`)

func TestWithNoColorThereIsNone(t *testing.T) {
	t.Parallel()
	requireTmux(t)
	l := newLab(t, 1)
	l.haggle(trainJob("run", 2)...).wants(0)
	plain, bright := l.open(80, 24, "NO_COLOR=1"), l.open(80, 24)
	for _, page := range []struct{ key, shows string }{{"1", "enter rent"}, {"2", "✓ done"}, {"3", "✓ final"}, {"4", "✓ ready"}, {"?", "Everywhere"}} {
		for _, p := range []*pane{plain, bright} {
			p.sees("1 Market")
			p.press(page.key)
			p.sees(page.shows)
			found := colored.FindString(p.tmux("capture-pane", "-e", "-p", "-t", "0"))
			if (found == "") != (p == plain) {
				t.Errorf("page %s: the colour is %q", page.key, found)
			}
		}
	}
}
