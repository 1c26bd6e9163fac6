package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"haggle/internal/cli"
	"haggle/internal/view"
)

// Pauses between two lines of progress.
const (
	progressLive  = 100 * time.Millisecond // on a terminal, where a line is written over
	progressPlain = 5 * time.Second        // elsewhere
)

// meter shows how far transfers are: one line that changes on a terminal, and a line now and then elsewhere. It is used by one
// goroutine.
type meter struct {
	program  *program
	name     string // of what is transferred, before the figures
	live     bool
	json     bool // lines of JSON on stderr
	began    time.Time
	first    int64 // bytes done at the beginning
	last     time.Time
	showing  bool
	previous string
}

func (p *program) meter(name string, asJSON bool) *meter {
	return &meter{program: p, name: name, live: isTTY(p.Err) && !asJSON, json: asJSON}
}

// show takes where the transfer is now.
func (m *meter) show(v view.Progress) {
	now := time.Now()
	if m.began.IsZero() {
		m.began, m.first = now, v.BytesDone
		if !m.live && !m.json && v.What == "" {
			m.last = now // a short copy needs no line
			return
		}
	}
	every := progressPlain
	if m.live {
		every = progressLive
	}
	if m.json {
		every = time.Second
	}
	if now.Sub(m.last) < every && v.What == m.previous {
		return
	}
	m.last, m.previous = now, v.What
	if m.json {
		_ = printLine(m.program.Err, v) // where stderr is closed nobody listens
		return
	}
	text := m.text(v, now)
	if !m.live {
		m.program.Say("%s", text)
		return
	}
	m.showing = true
	_, _ = fmt.Fprintf(m.program.Err, "\r\x1b[K%s: %s", m.program.Program, text)
}

// clear takes the line away, so that others can be written.
func (m *meter) clear() {
	if m.showing {
		m.showing = false
		_, _ = fmt.Fprint(m.program.Err, "\r\x1b[K")
	}
}

// text says how far a transfer is, how fast, and for how long it goes on.
func (m *meter) text(v view.Progress, now time.Time) string {
	name := m.name
	if v.What != "" {
		name = "sending " + clean(v.What)
	}
	if v.Scanning {
		return fmt.Sprintf("%s: counting, %d files, %s", name, v.Files, cli.Bytes(v.Bytes))
	}
	parts := []string{fmt.Sprintf("%s of %s", cli.Bytes(v.BytesDone), cli.Bytes(v.Bytes))}
	if v.Bytes > 0 {
		parts = append(parts, strconv.FormatInt(int64(float64(v.BytesDone)/float64(v.Bytes)*100), 10)+" %")
	}
	if v.Files > 1 {
		parts = append(parts, fmt.Sprintf("%d of %d files", v.FilesDone, v.Files))
	}
	if took, done := now.Sub(m.began), v.BytesDone-m.first; took > time.Second && done > 0 {
		speed := float64(done) / took.Seconds()
		parts = append(parts, cli.Bytes(int64(speed))+"/s")
		if left := float64(v.Bytes-v.BytesDone) / speed; left >= 1 {
			parts = append(parts, lasting(int64(left)*1000)+" left")
		}
	}
	return name + ": " + strings.Join(parts, ", ")
}
