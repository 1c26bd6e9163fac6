package tui_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/exp/teatest/v2"
	"github.com/charmbracelet/x/vt"

	"haggle/internal/view"
	"haggle/tui"
)

// panicky is a market that breaks a command.
type panicky struct{ *fakeMarket }

func (panicky) Offers(context.Context, view.OfferQuery) (view.OfferList, error) { panic("no offers") }

func TestAPanicInACommandLeavesAUsableTerminalAndAReport(t *testing.T) {
	keys, hold := io.Pipe()
	defer hold.Close()
	var out bytes.Buffer
	err := tui.Run(t.Context(), tui.Config{Market: panicky{full()}, Demux: demux, Reports: t.TempDir(), Version: "0.1.0"}, keys, &out)
	var broke *tui.PanicError
	if !errors.As(err, &broke) || broke.Report == "" || !strings.Contains(err.Error(), broke.Report) {
		t.Fatalf("the error is %v", err)
	}
	report, err := os.ReadFile(broke.Report)
	if err != nil || !strings.Contains(string(report), "no offers") || !strings.Contains(string(report), "goroutine") || !strings.Contains(string(report), "haggle 0.1.0") {
		t.Fatalf("%v, the report says:\n%s", err, report)
	}
	for _, mode := range []string{"\x1b[?1049", "\x1b[?25"} { // alternate screen and cursor
		if on, off := strings.LastIndex(out.String(), mode+"h"), strings.LastIndex(out.String(), mode+"l"); mode == "\x1b[?1049" && off < on || mode == "\x1b[?25" && on < off {
			t.Errorf("mode %q is not restored: %q", mode, out.String())
		}
	}
}

func TestAPanicInAnUpdateOrAFrameEndsTheProgram(t *testing.T) {
	t.Run("update", func(t *testing.T) {
		open(t, full, 80, 24, nil, func(s *screen) {
			s.m.Trap()
			s.press("y")
			if s.m.Crashed() != "trapped" || !s.quit {
				t.Fatalf("crash %v, quit %v", s.m.Crashed(), s.quit)
			}
		})
	})
	t.Run("frame", func(t *testing.T) {
		broken := false
		open(t, busy, 80, 24, func(c *tui.Config) {
			c.Clock = func() time.Time {
				if broken {
					panic("no clock")
				}
				return time.Now()
			}
		}, func(s *screen) {
			s.press("2")
			broken = true
			_ = s.m.View()
			if s.m.Crashed() != "no clock" {
				t.Fatalf("crash %v", s.m.Crashed())
			}
			broken = false
		})
	})
}

func TestTheEndOfTheContextEndsTheProgram(t *testing.T) {
	keys, hold := io.Pipe()
	defer hold.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("told to end")
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	if err := tui.Run(ctx, tui.Config{Market: full(), Demux: demux}, keys, io.Discard); !errors.Is(err, why) {
		t.Fatalf("it ended with %v", err)
	}
}

// terminal shows what the user of a whole program sees.
type terminal struct {
	t   *testing.T
	tm  *teatest.TestModel
	all bytes.Buffer
}

// waits until the screen shows a text.
func (x *terminal) waits(want string) {
	x.t.Helper()
	teatest.WaitFor(x.t, io.TeeReader(x.tm.Output(), &x.all), func([]byte) bool {
		return strings.Contains(x.screen(), want)
	}, teatest.WithDuration(20*time.Second), teatest.WithCheckInterval(10*time.Millisecond))
}

func (x *terminal) screen() string {
	emu := vt.NewEmulator(80, 24)
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(io.Discard, emu) }() // what the program asks the terminal
	_, _ = emu.Write(bytes.ReplaceAll(x.all.Bytes(), []byte("\n"), []byte("\r\n")))
	text := emu.String()
	// Not emu.Close, which writes what Read reads without a lock.
	if pipe, ok := emu.InputPipe().(io.Closer); ok {
		_ = pipe.Close()
	}
	<-done
	return text
}

func TestAWholeProgramGoesFromTheStartToARunningJob(t *testing.T) {
	fake := full()
	m := tui.New(t.Context(), tui.Config{Market: fake, Demux: demux, Defaults: tui.Defaults{Image: "lab"}})
	x := &terminal{t: t, tm: teatest.NewTestModel(t, m, teatest.WithInitialTermSize(80, 24))}
	x.waits("rig-1")
	x.tm.Send(tea.KeyPressMsg{Code: tea.KeyEnter})
	x.waits("whole price")
	x.tm.Send(tea.KeyPressMsg{Code: tea.KeyEnter})
	x.waits("y rent")
	x.tm.Send(tea.KeyPressMsg{Code: 'y', Text: "y"})
	x.waits("granted")
	fake.mu.Lock()
	id := fake.leases[0].ID
	fake.logs[id] = newFakeLog("hello from the job")
	fake.mu.Unlock()
	fake.change(id, func(l *view.Lease) { l.State = "running" })
	x.waits("● running")
	x.tm.Send(tea.KeyPressMsg{Code: 'q', Text: "q"})
	x.tm.WaitFinished(t, teatest.WithFinalTimeout(20*time.Second))
}
