package tui

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"haggle/market"
)

// Bounds of what is kept of a log: its end.
const (
	maxLogLines = 2000
	maxLogLine  = 4 << 10 // bytes
)

// logBuffer takes a job's output in its own time and holds its end until the screen asks. It is what a command that reads
// and one that waits share; the model sees copies only.
type logBuffer struct {
	more chan struct{} // holds a token when there is something new

	mu    sync.Mutex
	lines []string
	part  []byte // a line that is not over
	ended bool
	err   error
}

func newLogBuffer() *logBuffer { return &logBuffer{more: make(chan struct{}, 1)} }

// Write takes output of either stream.
func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	for _, c := range p {
		switch {
		case c == '\n':
			b.flush()
		case c == '\r': // a progress bar goes back to the beginning of its line; \r\n ends it
			if len(b.part) > 0 && b.part[len(b.part)-1] != '\r' {
				b.part = append(b.part, c)
			}
		default:
			if n := len(b.part); n > 0 && b.part[n-1] == '\r' {
				b.part = b.part[:0]
			}
			if len(b.part) < maxLogLine {
				b.part = append(b.part, c)
			}
		}
	}
	b.mu.Unlock()
	b.tell()
	return len(p), nil
}

func (b *logBuffer) flush() {
	b.lines = append(b.lines, strings.ReplaceAll(string(b.part), "\t", "    "))
	b.part = b.part[:0]
	if len(b.lines) > 2*maxLogLines {
		b.lines = append(b.lines[:0], b.lines[len(b.lines)-maxLogLines:]...)
	}
}

func (b *logBuffer) tell() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}

func (b *logBuffer) end(err error) {
	b.mu.Lock()
	b.ended, b.err = true, err
	b.mu.Unlock()
	b.tell()
}

// read returns the lines so far and whether and how the log ended.
func (b *logBuffer) read() (lines []string, ended bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines = append(lines, b.lines[max(0, len(b.lines)-maxLogLines):]...)
	if len(b.part) > 0 {
		lines = append(lines, string(b.part))
	}
	return lines, b.ended, b.err
}

// logMsg brings a log as it is now.
type logMsg struct {
	turn  int
	from  *logBuffer
	lines []string
	ended bool
	err   error
	at    time.Time // when it was sent
}

// followMsg is the end of the pause after which a chosen lease's log is opened.
type followMsg struct{ turn int }

// tail follows the log of one lease.
type tail struct {
	*kit
	lease  string          // whose log it is
	start  int             // which start of its job: a job that starts again has a new log
	turn   int             // grows with every lease; messages of an older turn mean nothing any more
	within context.Context // of the log that is open
	stop   context.CancelFunc
	lines  []string
	open   bool // it was asked for
	ended  bool
	err    error
	shown  int // lines that were visible last
	back   int // lines above the end that are shown; 0 follows
}

// settle is how long a lease must stay chosen before its log is opened: scrolling through leases opens none.
const settle = 150 * time.Millisecond

// follow turns to one start of a lease's job. Nothing happens while it is the same.
func (t *tail) follow(id string, start int) tea.Cmd {
	if id == t.lease && start == t.start {
		return nil
	}
	t.forget()
	t.lease, t.start = id, start
	if id == "" {
		return nil
	}
	return t.after(settle, followMsg{t.turn})
}

// forget turns away from the log.
func (t *tail) forget() {
	if t.stop != nil {
		t.stop()
	}
	*t = tail{kit: t.kit, turn: t.turn + 1}
}

// begin opens the log: one command copies, another waits for what came.
func (t *tail) begin(turn int) tea.Cmd {
	if turn != t.turn || t.open {
		return nil
	}
	ctx, stop := context.WithCancel(t.ctx)
	t.within, t.stop, t.open, t.ended, t.err = ctx, stop, true, false, nil
	buffer, id, demux := newLogBuffer(), t.lease, t.Demux
	read := t.work(func(context.Context) tea.Msg {
		log, err := t.Market.Log(ctx, id, 0, true)
		if err == nil {
			_, _, err = demux(log, buffer, buffer)
			_ = log.Close() // its end was seen, or its error
		}
		buffer.end(err)
		return nil
	})
	return tea.Batch(read, t.wait(ctx, turn, buffer, time.Time{}))
}

// wait waits for output, and brings it at once where the last is a while ago. Otherwise it takes along what follows.
func (t *tail) wait(ctx context.Context, turn int, buffer *logBuffer, last time.Time) tea.Cmd {
	return t.work(func(context.Context) tea.Msg {
		select {
		case <-buffer.more:
		case <-ctx.Done():
			return nil
		}
		timer := time.NewTimer(pace - time.Since(last))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
		lines, ended, err := buffer.read()
		return logMsg{turn, buffer, lines, ended, err, time.Now()}
	})
}

// take shows what came and waits for more.
func (t *tail) take(m logMsg) tea.Cmd {
	if m.turn != t.turn {
		return nil
	}
	if t.back > 0 { // what is read stays where it is
		t.back += max(0, len(m.lines)-len(t.lines))
	}
	t.lines, t.ended, t.err = m.lines, m.ended, m.err
	if m.ended {
		t.open = false
		return nil
	}
	return t.wait(t.within, m.turn, m.from, m.at)
}

// scroll moves in the log; by is down.
func (t *tail) scroll(by, height int) {
	t.back = max(0, min(t.back-by, len(t.lines)-height))
}

// render shows the end of the log, or what was scrolled to.
func (t *tail) render(width, height int) []string {
	if height < 1 {
		return nil
	}
	t.shown = height
	t.back = max(0, min(t.back, len(t.lines)-height))
	to := len(t.lines) - t.back
	var out []string
	for _, l := range t.lines[max(0, to-height):to] {
		out = append(out, " "+strings.TrimRight(fit(l, min(width-2, max(1, span(clean(l)))), false, t.look.sign.more), " "))
	}
	if len(out) == 0 {
		out = append(out, " "+t.look.faint.on(fit(t.silence(), width-2, false, t.look.sign.more)))
	}
	return block(out, width, height)
}

// silence says why there is no output.
func (t *tail) silence() string {
	switch {
	case t.lease == "":
		return "no job, no output"
	case away(t.err):
		return "the agent is away; the log comes with it"
	case t.err != nil && !errors.Is(t.err, market.NewError(market.CodeNotRunning)):
		message, _ := explain(t.err)
		return message
	case t.ended:
		return "the job wrote nothing"
	}
	return "no output yet"
}
