package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"haggle/internal/view"
)

// linkState is where the screens stand with the agent.
type linkState uint8

const (
	linkNew  linkState = iota // asked for the first time
	linkUp                    // it answers
	linkAway                  // it does not; it is looked for again
)

// Pauses of the connection with the agent.
const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 8 * time.Second
	pollSoon   = 2 * time.Second        // while offers are missing
	pollLate   = 15 * time.Second       // otherwise
	pace       = 250 * time.Millisecond // between two messages of one stream
)

// link keeps the connection with the agent: its status, the stream of changes, and the search for an agent that is gone.
type link struct {
	*kit
	state  linkState
	epoch  int // grows with every connection and every search; messages of an older one mean nothing any more
	status view.AgentStatus
	fault  error // why the agent is away
	retry  time.Duration
	drop   context.CancelFunc // ends the stream of changes
}

type (
	// statusMsg answers a question for the status.
	statusMsg struct {
		epoch  int
		status view.AgentStatus
		err    error
	}
	// changesMsg brings what changed, the latest of each lease.
	changesMsg struct {
		epoch  int
		stream <-chan view.Lease
		leases []view.Lease
		closed bool
		at     time.Time // when it was sent
	}
	// retryMsg is the end of a pause between two looks for the agent.
	retryMsg struct{ epoch int }
	// pollMsg is the end of a pause between two looks at what no stream tells.
	pollMsg struct{ epoch int }
)

// connect asks for the agent, starting it first where that is wanted.
func (l *link) connect(start bool) tea.Cmd {
	l.epoch++
	return l.probe(start)
}

func (l *link) probe(start bool) tea.Cmd {
	epoch, begin := l.epoch, l.Start
	return l.ask(func(ctx context.Context) tea.Msg {
		status, err := l.Market.Status(ctx)
		if away(err) && start && begin != nil {
			if err = begin(ctx); err == nil {
				status, err = l.Market.Status(ctx)
			}
		}
		return statusMsg{epoch, status, err}
	})
}

// up takes note that the agent answers. It reports whether that is news.
func (l *link) up(status view.AgentStatus) (news bool) {
	l.status, l.fault = status, nil
	if l.state == linkUp {
		return false
	}
	l.state, l.retry = linkUp, 0
	l.epoch++
	return true
}

// watch begins to listen for changes.
func (l *link) watch() tea.Cmd {
	ctx, drop := context.WithCancel(l.ctx)
	l.drop = drop
	epoch := l.epoch
	return l.work(func(context.Context) tea.Msg { return gather(epoch, l.Market.Watch(ctx), time.Time{}) })
}

// next waits for more changes.
func (l *link) next(m changesMsg) tea.Cmd {
	return l.work(func(context.Context) tea.Msg { return gather(m.epoch, m.stream, m.at) })
}

// gather waits for a change, and brings it at once where the last one is a while ago. Otherwise it takes along what follows:
// four messages a second at most, however much happens.
func gather(epoch int, stream <-chan view.Lease, last time.Time) (m changesMsg) {
	m = changesMsg{epoch: epoch, stream: stream}
	defer func() { m.at = time.Now() }()
	latest := map[string]int{}
	take := func(l view.Lease, ok bool) bool {
		if !ok {
			m.closed = true
			return false
		}
		if at, seen := latest[l.Bid]; seen {
			m.leases[at] = l
		} else {
			latest[l.Bid] = len(m.leases)
			m.leases = append(m.leases, l)
		}
		return true
	}
	l, ok := <-stream
	if !take(l, ok) {
		return m
	}
	timer := time.NewTimer(pace - time.Since(last))
	defer timer.Stop()
	for {
		select {
		case l, ok := <-stream:
			if !take(l, ok) {
				return m
			}
		case <-timer.C:
			return m
		}
	}
}

// lost takes note that the agent does not answer, and looks for it after a pause that doubles.
func (l *link) lost(err error) tea.Cmd {
	if l.drop != nil {
		l.drop()
		l.drop = nil
	}
	l.state, l.fault = linkAway, err
	l.retry = min(max(firstRetry, 2*l.retry), lastRetry)
	l.epoch++
	return l.after(l.retry, retryMsg{l.epoch})
}

// poll asks again after a while.
func (l *link) poll(soon bool) tea.Cmd {
	pause := pollLate
	if soon {
		pause = pollSoon
	}
	return l.after(pause, pollMsg{l.epoch})
}

// word names the state for the status bar.
func (l *link) word() string {
	switch l.state {
	case linkUp:
		return l.look.sign.ok + " agent"
	case linkAway:
		return l.look.sign.bad + " agent away"
	}
	return "asking the agent"
}
