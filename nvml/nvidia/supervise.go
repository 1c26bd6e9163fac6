package nvidia

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"haggle/nvml"
)

const (
	firstDelay = 100 * time.Millisecond // before the second of two starts that fail
	maxDelay   = 30 * time.Second
	settled    = 30 * time.Second // a child that lived so long makes up for failures before it
	firstTries = 3                // starts that may fail before Open gives up
	maxUndead  = 4                // children that were killed and did not end
	statusGate = 127              // of a process that called a function which its library lacks
)

// supervise keeps a child running until the driver is closed. It tells first how the first one did.
func (d *Driver) supervise(first chan<- error) {
	var undead []*link
	failures := 0
	told := false
	for d.life.Err() == nil {
		undead = slices.DeleteFunc(undead, func(l *link) bool { return over(l) })
		began := time.Now()
		l, err := d.startUnless(len(undead) >= maxUndead)
		if err == nil {
			if !told {
				first <- nil
				told = true
			}
			err = d.watch(l)
			if time.Since(began) > settled {
				failures = 0
			}
		}
		if l != nil && !d.bury(l) {
			undead = append(undead, l)
		}
		if d.life.Err() != nil {
			return
		}
		if symbol := missing(l); symbol != "" && d.deny(symbol) {
			d.cfg.Log.Warn("driver's library lacks a function", slog.String("symbol", symbol))
			continue
		}
		failures++
		if !told && hopeless(err, failures) {
			first <- err
			return
		}
		d.rest(err, failures)
	}
}

// hopeless reports whether Open need not wait for another try.
func hopeless(err error, failures int) bool {
	return errors.Is(err, nvml.ErrNoDriver) || errors.Is(err, nvml.ErrTimeout) || failures == firstTries
}

// over reports whether the process is no more.
func over(l *link) bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// rest waits before the next start: not at all after the first failure, then longer and longer.
func (d *Driver) rest(err error, failures int) {
	var delay time.Duration
	if failures > 1 {
		delay = min(firstDelay<<min(failures-2, 16), maxDelay)
	}
	d.cfg.Log.Warn("nvml child ended", slog.Any("err", err), slog.Duration("again_in", delay))
	none := errors.Is(err, nvml.ErrNoDriver)
	if !none && !errors.Is(err, nvml.ErrTimeout) {
		err = fmt.Errorf("%w: %w", nvml.ErrTimeout, err)
	}
	if none || delay > d.cfg.Timeout/2 { // else a call may wait for the next child
		d.set(nil, err)
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.life.Done():
	}
}

// set says which child answers, or why none does.
func (d *Driver) set(l *link, down error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.link, d.down = l, down
	d.wake()
}

func (d *Driver) startUnless(tooMany bool) (*link, error) {
	if tooMany {
		return nil, fmt.Errorf("%d children hang in the kernel and cannot be ended", maxUndead)
	}
	return d.startChild()
}

// startChild starts a child and waits for its first answer. With an error it may still return a link, to be buried.
func (d *Driver) startChild() (*link, error) {
	l := &link{
		write: make(chan []byte, maxPending), stderr: new(tail), closing: d.life.Done(), take: d.take, late: d.late,
		dead: make(chan struct{}), gone: make(chan struct{}), pending: make(map[uint64]*question),
	}
	d.mu.Lock()
	d.starts++
	open := opening{
		Version: protocolVersion, Library: d.cfg.Library, Deny: slices.Clone(d.denied),
		Beat: min(d.cfg.Timeout/beatsPer, minBeat), Grace: d.cfg.Timeout,
	}
	if d.starts > 1 {
		// Calls are waiting, and the cards are awake. One that hangs must not make the others late.
		open.Grace /= 4
	}
	d.mu.Unlock()
	if err := spawn(context.WithoutCancel(d.life), d.cfg.Command, l); err != nil {
		return nil, fmt.Errorf("start the child process: %w", err)
	}
	r, err := l.ask(d.life, request{Op: opOpen, Open: &open}, d.cfg.StartTimeout)
	switch {
	case errors.Is(err, errLate):
		err = fmt.Errorf("%s did not start within %s: %w", d.cfg.Library, d.cfg.StartTimeout, nvml.ErrTimeout)
	case err != nil:
	case r.Code == codeNoDriver:
		err = fmt.Errorf("%s: %w", printable(r.Text, maxText), nvml.ErrNoDriver)
	case r.Code != "" || r.Info == nil || r.List == nil:
		err = fmt.Errorf("the child process began with %.32q", r.Code)
	}
	if err != nil {
		return l, err
	}
	d.cfg.Log.Debug("nvml child answers", slog.Int("pid", l.pid), slog.Int("cards", len(r.List.UUIDs)))
	d.enrol(r.List)
	d.mu.Lock()
	d.info = *r.Info
	d.info.Version, d.info.Library = printable(d.info.Version, maxText), printable(d.info.Library, maxText)
	d.mu.Unlock()
	d.set(l, nil)
	for _, uuid := range r.List.UUIDs {
		d.look(uuid) // what happened while nobody was looking
	}
	d.limitAgain(r.List.UUIDs)
	return l, nil
}

// watch waits for the child's end and returns its reason.
func (d *Driver) watch(l *link) error {
	select {
	case <-l.dead:
		d.set(nil, nil)
		return l.why()
	case <-d.life.Done():
		return d.life.Err()
	}
}

// bury ends a child, gently at first, and reports whether it is gone.
func (d *Driver) bury(l *link) bool {
	_ = l.stdin.Close() // that is what ends a sound child
	if wait(l.gone, endGrace) {
		return true
	}
	l.stop(errors.New("the child process did not end by itself"))
	return wait(l.gone, endGrace)
}

func wait(c <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}

// missing returns the function whose absence ended the child, or "".
func missing(l *link) string {
	if l == nil || !over(l) {
		return ""
	}
	return lookupFailure(l.exit, l.stderr.String())
}

// lookupFailure returns the function whose absence ended a process, from its end and its last words, or "".
func lookupFailure(end error, last string) string {
	var exit *exec.ExitError
	if !errors.As(end, &exit) || exit.ExitCode() != statusGate || !strings.Contains(last, "symbol lookup error") {
		return ""
	}
	if found := regexp.MustCompile(`undefined symbol: (\w{1,128})`).FindStringSubmatch(last); found != nil {
		return found[1]
	}
	return ""
}

// deny has later children not call a function. It returns false when that is no help.
func (d *Driver) deny(symbol string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.denied) == maxDenied || slices.Contains(d.denied, symbol) {
		return false
	}
	d.denied = append(d.denied, symbol)
	return true
}

// poll reads the cards that nobody else reads, until the driver is closed.
func (d *Driver) poll() {
	ticker := time.NewTicker(d.cfg.Poll)
	defer ticker.Stop()
	for {
		select {
		case <-d.life.Done():
			return
		case <-ticker.C:
		}
		var due []string
		d.mu.Lock()
		for uuid, p := range d.patients {
			if !p.lost && time.Since(p.asked) >= d.cfg.Poll {
				p.asked = time.Now()
				due = append(due, uuid)
			}
		}
		d.mu.Unlock()
		for _, uuid := range due {
			d.look(uuid)
		}
	}
}

// look reads a card for what the reading tells about its health. It does not wait.
func (d *Driver) look(uuid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.loops.Go(func() {
		_, err := d.askCard(d.life, request{Op: opSample, UUID: uuid}) // the driver notes what the answer means
		if err != nil {
			d.cfg.Log.Debug("card is not read", slog.String("gpu", uuid), slog.Any("err", err))
		}
	})
}
