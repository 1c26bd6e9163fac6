package tui_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"haggle/tui"
)

// screen runs a Model in a bubble of virtual time, as Bubble Tea would: commands in goroutines, messages one after another.
// Nothing of it depends on how fast the machine is.
type screen struct {
	t        *testing.T
	m        *tui.Model
	market   *fakeMarket
	msgs     chan tea.Msg
	quit     bool
	messages int // that came from commands
}

// open runs a test with a program that has just begun.
func open(t *testing.T, f func() *fakeMarket, width, height int, with func(*tui.Config), do func(s *screen)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		fake := f()
		c := tui.Config{Market: fake, Demux: demux, Version: "0.1.0", Reports: t.TempDir(), Exports: t.TempDir(), Defaults: tui.Defaults{Image: "lab"}}
		if with != nil {
			with(&c)
		}
		s := &screen{t: t, m: tui.NewWithin(ctx, c), market: fake, msgs: make(chan tea.Msg, 10_000)}
		s.run(s.m.Init())
		s.update(tea.WindowSizeMsg{Width: width, Height: height})
		s.settle()
		do(s)
		cancel()
		synctest.Wait()
	})
}

func (s *screen) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		if msg := cmd(); msg != nil {
			s.msgs <- msg
		}
	}()
}

func (s *screen) update(msg tea.Msg) {
	switch msg := msg.(type) {
	case tea.BatchMsg:
		for _, c := range msg {
			s.run(c)
		}
	case tea.QuitMsg:
		s.quit = true
	default:
		_, cmd := s.m.Update(msg)
		s.run(cmd)
	}
}

// settle handles messages until nothing happens any more without time passing.
func (s *screen) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-s.msgs:
			s.messages++
			s.update(msg)
		default:
			return
		}
	}
}

// pass lets virtual time pass.
func (s *screen) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(10*time.Millisecond, time.Until(end)))
		s.settle()
	}
}

// press presses keys one after another.
func (s *screen) press(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		s.update(keyPress(k))
		s.settle()
	}
}

// write types a text.
func (s *screen) write(text string) {
	for _, r := range text {
		s.update(keyPress(string(r)))
	}
	s.settle()
}

func keyPress(name string) tea.KeyPressMsg {
	named := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
		"right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd,
		"backspace": tea.KeyBackspace,
	}
	if code, ok := named[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	if rest, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: []rune(rest)[0], Mod: tea.ModCtrl}
	}
	if name == "shift+tab" {
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	}
	if name == "space" {
		name = " "
	}
	return tea.KeyPressMsg{Code: []rune(name)[0], Text: name}
}

// to moves down until the cursor stands on a text.
func (s *screen) to(text string) {
	s.t.Helper()
	s.press("home")
	for range 100 {
		for _, l := range strings.Split(s.text(), "\n") {
			if strings.HasPrefix(l, "▌") && strings.Contains(l, text) {
				return
			}
		}
		s.press("down")
	}
	s.t.Fatalf("the cursor never stands on %q:\n%s", text, s.text())
}

// text returns what the user sees, without styles and without blanks at the ends of lines.
func (s *screen) text() string {
	var b strings.Builder
	for _, l := range s.m.Lines() {
		b.WriteString(strings.TrimRight(ansi.Strip(l), " ") + "\n")
	}
	return b.String()
}

// sees fails unless the screen shows every text.
func (s *screen) sees(texts ...string) {
	s.t.Helper()
	for _, want := range texts {
		if !strings.Contains(s.text(), want) {
			s.t.Fatalf("the screen does not show %q:\n%s", want, s.text())
		}
	}
}

// lacks fails if the screen shows a text.
func (s *screen) lacks(texts ...string) {
	s.t.Helper()
	for _, not := range texts {
		if strings.Contains(s.text(), not) {
			s.t.Fatalf("the screen shows %q:\n%s", not, s.text())
		}
	}
}

func resize(width, height int) tea.Msg { return tea.WindowSizeMsg{Width: width, Height: height} }

func paste(text string) tea.Msg { return tea.PasteMsg{Content: text} }
