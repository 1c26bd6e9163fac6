package main

import (
	"context"
	"io"
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"

	"haggle/tui"
)

// Sizes and times of the figures of the screens.
const (
	few, many = 100, 100_000 // offers
	warmUp    = 2 * time.Second
	watched   = 10 * time.Second
)

// theBound is the peer of a figure that is held against a number that was promised.
const theBound = "the bound"

func screenFigures() []figure {
	return []figure{
		{name: "tui-frame", unit: "µs CPU", peer: theBound, aim: 1, measure: func(ctx context.Context) (float64, float64, error) {
			s, err := watch(ctx, load{offers: many, width: 200, height: 50, keys: true})
			return s.quantile(0.5), 1000, err
		}},
		{name: "tui-frame-p99", unit: "µs CPU", peer: theBound, aim: 1, measure: func(ctx context.Context) (float64, float64, error) {
			s, err := watch(ctx, load{offers: many, width: 200, height: 50, keys: true})
			return s.quantile(0.99), 5000, err
		}},
		{name: "tui-rows", unit: "µs CPU", peer: "a hundred rows", aim: 1.2, measure: func(ctx context.Context) (float64, float64, error) {
			crowded, err := watch(ctx, load{offers: many, width: 200, height: 50, keys: true})
			if err != nil {
				return 0, 0, err
			}
			calm, err := watch(ctx, load{offers: few, width: 200, height: 50, keys: true})
			return crowded.quantile(0.5), calm.quantile(0.5), err
		}},
		{name: "tui-bytes", unit: "kB/s", peer: theBound, aim: 1, measure: func(ctx context.Context) (float64, float64, error) {
			s, err := watch(ctx, load{offers: many, width: 80, height: 24, busy: true, page: '2'})
			return float64(s.bytes) / 1000 / watched.Seconds(), 8, err
		}},
		{name: "tui-messages", unit: "messages/s", peer: theBound, aim: 1, measure: func(ctx context.Context) (float64, float64, error) {
			s, err := watch(ctx, load{offers: many, width: 80, height: 24, busy: true, page: '2'})
			return float64(len(s.costs)) / watched.Seconds(), 10, err
		}},
		{name: "tui-idle", unit: "bytes in 10 s", peer: "one byte", aim: 0, measure: func(ctx context.Context) (float64, float64, error) {
			s, err := watch(ctx, load{offers: many, width: 80, height: 24})
			return float64(s.bytes), 1, err
		}},
		{name: "tui-first-paint", unit: "ms CPU", peer: theBound, aim: 1, measure: firstPaint},
	}
}

// load is what the screens are put under.
type load struct {
	offers, width, height int
	busy                  bool // a job changes and writes a line a hundred times a second
	keys                  bool // a hundred keys a second move about, and the whole list is loaded anew every second
	page                  rune // that is shown, where it is not the market
}

// seen is what the screens did while they were watched.
type seen struct {
	costs []time.Duration // CPU of each update with the frame after it
	bytes int64           // written to the terminal
}

// quantile returns a quantile of the costs in microseconds.
func (s seen) quantile(q float64) float64 {
	if len(s.costs) == 0 {
		return 0
	}
	slices.Sort(s.costs)
	return float64(s.costs[int(q*float64(len(s.costs)-1))].Nanoseconds()) / 1000
}

// watch runs the screens as Bubble Tea does, under a load.
func watch(ctx context.Context, l load) (seen, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := &timed{Model: tui.New(ctx, tui.Config{Market: newCrowd(l.offers, l.busy), Demux: copyLog})}
	keys, hold := io.Pipe()
	defer func() { _ = hold.Close() }()
	out := &counter{}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(keys), tea.WithOutput(out), tea.WithWindowSize(l.width, l.height),
		tea.WithoutSignals(), tea.WithEnvironment([]string{"TERM=xterm-256color", "CLICOLOR_FORCE=1"}))
	bytes := make(chan int64, 1)
	go func() {
		pause(ctx, warmUp)
		if l.page != 0 {
			p.Send(tea.KeyPressMsg{Code: l.page, Text: string(l.page)})
			pause(ctx, warmUp)
		}
		goruntime.GC() // of what making so many offers left behind
		before := out.n.Load()
		m.on.Store(true)
		if l.keys {
			press(ctx, p)
		} else {
			pause(ctx, watched)
		}
		m.on.Store(false)
		bytes <- out.n.Load() - before
		p.Quit()
	}()
	if _, err := p.Run(); err != nil {
		return seen{}, err
	}
	return seen{m.costs, <-bytes}, nil
}

// press moves about in the list.
func press(ctx context.Context, p *tea.Program) {
	moves := []tea.KeyPressMsg{{Code: tea.KeyDown}, {Code: tea.KeyPgDown}, {Code: tea.KeyUp}, {Code: tea.KeyEnd}, {Code: tea.KeyHome}}
	tick := time.NewTicker(busyTick)
	defer tick.Stop()
	for n := range int(watched / busyTick) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if n%100 == 0 {
			p.Send(tea.KeyPressMsg{Code: 'r', Text: "r"})
			continue
		}
		p.Send(moves[n%len(moves)])
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// timed measures the CPU time that the screens take for each message and the frame after it. Bubble Tea calls it from one
// goroutine.
type timed struct {
	*tui.Model
	on    atomic.Bool
	costs []time.Duration
}

func (t *timed) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	took := cpu(func() { _, cmd = t.Model.Update(msg) })
	if t.on.Load() {
		t.costs = append(t.costs, took)
	}
	return t, cmd
}

func (t *timed) View() tea.View {
	var v tea.View
	took := cpu(func() { v = t.Model.View() })
	if n := len(t.costs); n > 0 && t.on.Load() {
		t.costs[n-1] += took
	}
	return v
}

// cpu returns the CPU time of a piece of work on its own thread: a busy machine does not change it.
func cpu(work func()) time.Duration {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	var before, after unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &before) != nil {
		return 0
	}
	work()
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &after) != nil {
		return 0
	}
	return time.Duration(after.Nano() - before.Nano())
}

// counter counts what is written to the terminal.
type counter struct{ n atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
