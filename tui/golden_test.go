package tui_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"haggle/internal/view"
	"haggle/market"
	"haggle/tui"
)

// update reports whether -update was given, which writes the golden screens anew. Package golden, which teatest brings along,
// declares the flag.
func update() bool { return flag.Lookup("update").Value.String() == "true" }

// sizes are those at which every screen is looked at.
var sizes = [][2]int{{40, 10}, {80, 24}, {120, 40}, {200, 50}}

// picture is a screen that is kept as text.
type picture struct {
	name   string
	market func() *fakeMarket
	with   func(*tui.Config)
	do     func(s *screen)
}

func held() *fakeMarket {
	f := full()
	f.hold = make(chan struct{})
	f.status.Network.Ready = false
	return f
}

func noPeers() *fakeMarket {
	f := newFakeMarket()
	f.status.Network = view.Network{Name: "main", Reason: "no bootstrap peer answers"}
	f.offersErr = market.NewError(market.CodeNoPeers, "network", "main", "reason", "no bootstrap peer answers")
	return f
}

func internalFault() *fakeMarket {
	f := newFakeMarket()
	f.askErr = market.NewError(market.CodeInternal)
	return f
}

func slow() *fakeMarket {
	f := full()
	f.slow = true
	return f
}

func off() *fakeMarket {
	f := newFakeMarket()
	f.err = errOff
	return f
}

// busy has leases in every state, receipts, a log and peers.
func busy() *fakeMarket {
	f := withReceipts(full())
	started := time.Now().UnixMilli()
	running := lease(1, "rig-1", "running", 1_000_000)
	running.Spent, running.Signed, running.Receipts, running.BilledMs = view.MoneyOf(420_000, "USD"), view.MoneyOf(415_000, "USD"), 7, 420_000
	preparing := lease(2, "한국-그래픽카드-농장-7호", "preparing", 8_900_000)
	preparing.Model, preparing.Slots, preparing.Simulated = "A100_PCIE_40GB", 4, false
	refused := lease(3, "rig-2", "refused", 2_150_000)
	refused.ID = ""
	problem := view.ProblemOf(market.NewError(market.CodeSlotTaken, "free", "0", "wanted", "1"))
	refused.Error = &problem
	lost := lease(4, "attic-in-the-house-behind-the-railway-station", "ended", 190_000)
	lost.Reason, lost.Debt = "fault", "final"
	failed := lease(5, "rig-1", "ended", 360_000)
	code := int64(137)
	failed.Exit, failed.Reason, failed.Debt, failed.BilledMs = &code, "oom", "final", 95_000
	for i, l := range []*view.Lease{&running, &preparing, &refused, &lost, &failed} {
		l.Created = started - int64(i)*1000
	}
	f.leases = append([]view.Lease{running, preparing, refused, lost, failed}, f.leases...)
	f.logs[running.ID] = newFakeLog("train: 24 GiB card, seed 7", "step 1  loss 2.301", "step 2  loss 1.987", "steps ██████░░░░ 60 %", "学習ステップ 3  損失 1.742")
	for i, p := range []string{"rig-1", "rig-2", "rig-7"} {
		f.peers = append(f.peers, view.Peer{Key: key(p), Agent: "haggled/0.1.0", Addrs: []string{"/ip4/127.0.0.1/tcp/4010" + fmt.Sprint(i)}, LatencyMs: 0.4 + float64(i)*31, Direction: "out"})
	}
	return f
}

// private has an offer for trusted owners only, with all that an owner can say, on a network without simulated cards.
func private() *fakeMarket {
	f := newFakeMarket()
	f.offers = []market.Offer{
		card{rig: "rig-2", model: "H100_SXM5_80GB", reach: "direct", country: "DE", isolation: "runc-userns", count: 8, gib: 80, price: 2_150_000, images: []string{"lab"}}.offer(),
		card{rig: "attic", model: "RTX_4090", reach: "direct", isolation: "runc", count: 2, gib: 24, price: 310_000, disk: 200, images: []string{"lab"}, change: func(o *market.Offer) {
			o.Rules.Bidders, o.Rules.Egress, o.Rules.Content = market.BiddersTrusted, true, "no mining\x1b[2J, please"
			o.Host.Protections, o.Host.Weak = []string{"seccomp", "device-cgroup"}, []string{"user-namespace"}
			o.Host.SlotUp, o.Host.SlotDown = 16_000_000, 112_500_000
		}}.offer(),
	}
	return f
}

// taken has a job that is in its notice, one whose disk is full, and two that are over.
func taken() *fakeMarket {
	f := newFakeMarket()
	now := time.Now().UnixMilli()
	notice := lease(1, "rig-1", "stopping", 1_000_000)
	notice.Reason, notice.EndsBy, notice.Egress, notice.In, notice.Out = "takeback", now+120_000, true, 1_234_567_890, 45_000
	notice.DiskMB, notice.DiskUsed = 50_000, 3_200_000_000
	full := lease(2, "rig-2", "running", 1_000_000)
	full.DiskMB, full.DiskUsed, full.DiskFull = 10_000, 9_990_000_000, true
	wiped := lease(3, "rig-3", "ended", 1_000_000)
	code := int64(0)
	wiped.Exit, wiped.Reason, wiped.Debt = &code, "completed", "final"
	wiped.Outcome = &view.Outcome{At: now, DiskAt: now, Cards: []market.CardWipe{{Index: 0, Bytes: 24 << 30}, {Index: 1, Bytes: 24 << 30}}}
	dirty := lease(4, "rig-4", "ended", 1_000_000)
	dirty.Reason, dirty.Debt = "takeback", "final"
	dirty.Outcome = &view.Outcome{At: now, Cards: []market.CardWipe{{Index: 0, Bytes: 1 << 30, Why: "it fell off\x1b[2J the bus"}, {Index: 1, Why: "it is lost"}}}
	for i, l := range []*view.Lease{&notice, &full, &wiped, &dirty} {
		l.Created = now - int64(i)*1000
	}
	f.leases = []view.Lease{notice, full, wiped, dirty}
	f.logs[notice.ID] = newFakeLog("step 1  loss 2.301", "saved")
	return f
}

func utc(c *tui.Config) { c.Clock = func() time.Time { return time.Now().UTC() } }

func pictures() []picture {
	second := func(keys ...string) func(s *screen) {
		return func(s *screen) { s.press(keys...); s.pass(time.Second) }
	}
	return append([]picture{
		{"start", held, nil, second()},
		{"gone", off, nil, second()},
		{"away", busy, nil, func(s *screen) { s.pass(time.Second); s.market.leave(); s.pass(time.Second) }},
		{"market-empty", newFakeMarket, nil, second()},
		{"market-loading", slow, nil, second()},
		{"market-full", busy, nil, second("down", "down")},
		{"market-error", noPeers, nil, second()},
		{"market-nomatch", busy, nil, func(s *screen) { s.press("/"); s.write("gpu_ram>=48 dph<0.40"); s.press("enter") }},
		{"market-filter", busy, nil, func(s *screen) { s.press("/"); s.write("gpu_ram>=24 geolocat=DE") }},
		{"market-complete", busy, nil, func(s *screen) { s.press("/"); s.write("dph<0.60 gpu_") }},
		{"detail", busy, nil, second("s", "end", "d")},
		{"form", busy, nil, second("s", "end", "enter", "down")},
		{"form-error", busy, nil, func(s *screen) { s.press("s", "home", "down", "enter", "down", "down"); s.write("x") }},
		{"dialog", busy, nil, second("s", "end", "enter", "enter")},
		{"leases-empty", newFakeMarket, nil, second("2")},
		{"leases-loading", slow, nil, second("2")},
		{"leases-full", busy, nil, second("2")},
		{"leases-refused", busy, nil, second("2", "down", "down")},
		{"leases-error", internalFault, nil, second("2")},
		{"log", busy, nil, second("2", "enter")},
		{"receipts-empty", newFakeMarket, nil, second("3")},
		{"receipts-loading", slow, nil, second("3")},
		{"receipts-none", busy, nil, second("3")},
		{"receipts-full", busy, nil, second("3", "right", "right", "right", "right")},
		{"receipts-error", func() *fakeMarket { f := busy(); f.receiptsErr = market.NewError(market.CodeInternal); return f }, nil, second("3")},
		{"peers-empty", newFakeMarket, nil, second("4")},
		{"peers-loading", slow, nil, second("4")},
		{"peers-full", busy, nil, second("4")},
		{"peers-error", internalFault, nil, second("4")},
		{"market-trusted", private, nil, second()},
		{"detail-trusted", private, nil, second("d")},
		{"leases-notice", taken, utc, second("2")},
		{"leases-diskfull", taken, utc, second("2", "down")},
		{"leases-wiped", taken, utc, second("2", "down", "down")},
		{"leases-dirty", taken, utc, second("2", "down", "down", "down")},
		{"leases-inside", inside, utc, second("2")},
		{"leases-paused", inside, utc, second("2", "down")},
		{"leases-sending", inside, utc, second("2", "down", "down")},
		{"leases-collected", inside, utc, second("2", "down", "down", "down")},
		{"prompt-extend", inside, utc, second("2", "e")},
		{"prompt-files", inside, utc, second("2", "f", "down")},
		{"dialog-keep", inside, utc, second("2", "K")},
		{"dialog-remove", inside, utc, second("2", "down", "D")},
		{"help-leases", inside, utc, second("2", "?")},
		{"help", busy, nil, second("?")},
		{"market-ascii", busy, func(c *tui.Config) { c.ASCII = true }, second()},
		{"leases-ascii", busy, func(c *tui.Config) { c.ASCII = true }, second("2")},
	}, append(choicePictures(), moneyPictures()...)...)
}

func TestScreens(t *testing.T) {
	for _, p := range pictures() {
		t.Run(p.name, func(t *testing.T) {
			var b strings.Builder
			for _, size := range sizes {
				open(t, p.market, size[0], size[1], p.with, func(s *screen) {
					p.do(s)
					for i, l := range s.m.Lines() {
						if w := ansi.StringWidth(l); w != size[0] {
							t.Errorf("%dx%d: line %d is %d columns wide: %q", size[0], size[1], i, w, l)
						}
					}
					fmt.Fprintf(&b, "== %dx%d ==\n%s", size[0], size[1], s.text())
				})
			}
			file := filepath.Join("testdata", p.name+".txt")
			if update() {
				if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); diff != "" {
				t.Errorf("the screen changed; -update writes it anew:\n%s", diff)
			}
		})
	}
}

// color finds the sequences that set a colour.
var color = regexp.MustCompile(`\x1b\[([0-9;]*;)?(3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]`)

func TestWithoutColoursTheScreensSayTheSame(t *testing.T) {
	for _, p := range pictures() {
		t.Run(p.name, func(t *testing.T) {
			var colored, bare string
			open(t, p.market, 120, 40, p.with, func(s *screen) { p.do(s); colored = strings.Join(s.m.Lines(), "\n") })
			open(t, p.market, 120, 40, func(c *tui.Config) {
				if p.with != nil {
					p.with(c)
				}
				c.NoColor = true
			}, func(s *screen) { p.do(s); bare = strings.Join(s.m.Lines(), "\n") })
			if color.MatchString(bare) {
				t.Errorf("there is a colour: %q", color.FindString(bare))
			}
			if strings.Contains(colored, "[38;") || strings.Contains(colored, ";38;") {
				t.Error("there is a colour beyond the terminal's sixteen")
			}
			if !color.MatchString(colored) {
				t.Error("there is no colour at all")
			}
			if diff := cmp.Diff(ansi.Strip(colored), ansi.Strip(bare)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAsciiScreensHaveNoOtherCharactersOfOurs(t *testing.T) {
	open(t, func() *fakeMarket {
		f := newFakeMarket()
		f.offers = stock()[:2]
		f.leases = []view.Lease{lease(1, "rig-1", "running", 1_000_000)}
		return f
	}, 200, 50, func(c *tui.Config) { c.ASCII = true }, func(s *screen) {
		for _, keys := range [][]string{{"1"}, {"2"}, {"3"}, {"4"}, {"5"}, {"?"}, {"esc", "1", "enter"}, {"enter"}} {
			s.press(keys...)
			for _, r := range s.text() {
				if r > 0x7e {
					t.Fatalf("after %v there is %q:\n%s", keys, r, s.text())
				}
			}
		}
	})
}
