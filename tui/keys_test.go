package tui_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"haggle/internal/view"
	"haggle/market"
	"haggle/tui"
)

func TestEveryKeyThatAFooterOrTheHelpNamesIsHandled(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range pictures() {
		var keys []tui.Named
		open(t, p.market, 120, 40, p.with, func(s *screen) { p.do(s); keys = s.m.NamedKeys() })
		if seen[fmt.Sprint(keys)] {
			continue
		}
		seen[fmt.Sprint(keys)] = true
		for _, k := range keys {
			if got := keyPress(k.Key).String(); got != k.Key {
				t.Errorf("%s: Bubble Tea calls the key %q %q", p.name, k.Key, got)
			}
			open(t, p.market, 120, 40, p.with, func(s *screen) {
				p.do(s)
				cmd, handled := s.m.Try(k.Key)
				s.run(cmd)
				s.settle()
				if !handled {
					t.Errorf("%s: nothing handles %q", p.name, k.Key)
				}
			})
		}
	}
	if len(seen) < 11 {
		t.Errorf("only %d places of the program were looked at", len(seen))
	}
}

func TestFootersAlwaysSayHowToLeave(t *testing.T) {
	for _, p := range pictures() {
		for _, size := range sizes {
			open(t, p.market, size[0], size[1], p.with, func(s *screen) {
				p.do(s)
				footer := s.m.Footer()
				for _, k := range s.m.NamedKeys() {
					if k.Verb == "quit" && !strings.Contains(footer, "q quit") && !strings.Contains(footer, "!") {
						t.Errorf("%s at %v: the footer does not say how to leave: %q", p.name, size, footer)
					}
				}
			})
		}
	}
}

// keysOfAll are keys that a user may press, meant or not.
var keysOfAll = []string{
	"enter", "esc", "tab", "shift+tab", "up", "down", "left", "right", "pgup", "pgdown", "home", "end", "backspace", "ctrl+d", "ctrl+u", "ctrl+r",
	"ctrl+k", "ctrl+w", "ctrl+a", "1", "2", "3", "4", "5", "p", "?", "r", "/", "d", "s", "S", "x", "X", "y", "n", "b", "e", "l", "j", "k", "g", "G", "space",
	"a", "f", "P", "J", "N", "w", "0", "9", ".", "=", ">", "<", "(", "'", "\"", "学", "é", "👍", "\u0301",
}

func TestNoRowOfKeysBreaksTheScreens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom(keysOfAll),
			rapid.Custom(func(t *rapid.T) string {
				return fmt.Sprintf("size %d %d", rapid.IntRange(1, 220).Draw(t, "w"), rapid.IntRange(1, 60).Draw(t, "h"))
			}),
			rapid.SampledFrom([]string{"pass", "leave", "back", "change", "renew", "gone", "paste"}),
		), 1, 40).Draw(rt, "steps")
		if why := walk(t, steps); why != "" {
			rt.Fatal(why)
		}
	})
}

// walk takes steps and says what broke.
func walk(t *testing.T, steps []string) (why string) {
	open(t, moneyed, 80, 24, nil, func(s *screen) {
		width, height := 80, 24
		for i, step := range steps {
			if n, _ := fmt.Sscanf(step, "size %d %d", &width, &height); n == 2 {
				s.update(resize(width, height))
			} else {
				s.step(step)
			}
			s.settle()
			lines := s.m.Lines()
			if p := s.m.Crashed(); p != nil {
				why = fmt.Sprintf("after %v: %v", steps[:i+1], p)
				return
			}
			if s.quit {
				why = fmt.Sprintf("%v left the program", steps[:i+1])
				return
			}
			if len(lines) != height {
				why = fmt.Sprintf("after %v: %d lines in a terminal of %d", steps[:i+1], len(lines), height)
				return
			}
			for _, l := range lines {
				if w := ansi.StringWidth(l); w != width || strings.ContainsAny(ansi.Strip(l), "\x1b\a\n\r\t") {
					why = fmt.Sprintf("after %v: a line of %d columns in a terminal of %d: %q", steps[:i+1], w, width, l)
					return
				}
			}
		}
	})
	return why
}

// step does what is not a size.
func (s *screen) step(what string) {
	f := s.market
	switch what {
	case "pass":
		s.pass(700 * time.Millisecond)
	case "leave":
		f.leave()
	case "back":
		f.back()
		s.pass(9 * time.Second)
	case "change":
		f.change(f.leases[0].ID, func(l *view.Lease) {
			l.State = map[string]string{"running": "stopping", "stopping": "ended"}[l.State]
			l.Spent = view.MoneyOf(market.Micro(l.Spent.Micro+1), "USD")
			if l.State == "" {
				l.State = "ended"
			}
		})
	case "renew":
		f.mu.Lock()
		for i := range f.offers {
			f.offers[i].Seq++
			f.offers[i].Prices.Slot++
		}
		f.mu.Unlock()
	case "gone":
		f.mu.Lock()
		f.offers = f.offers[:len(f.offers)/2]
		f.mu.Unlock()
	case "paste":
		s.update(paste("gpu_ram>=24\n\x1b[2J'學 "))
	default:
		s.update(keyPress(what))
	}
}
