package host

import (
	"time"

	"haggle/market"
)

// A lease that waits for what its renter sends before the start holds cards that nobody pays. It ends when so little has come in so
// long a time.
const (
	uploadPatience = 2 * time.Minute
	uploadLeast    = int64(64 << 10) // bytes: more than what keeps a connection alive
)

// idleness is how an upload goes.
type idleness struct {
	since int64 // monotonic ms, 0 while nothing is waited for
	sent  int64 // bytes that had come then
}

// stalled reports whether the lease waits for its renter's bytes, and hardly any come.
func (l *lease) stalled() bool {
	waits := l.state.Job == market.JobPreparing && l.state.Funded() && (l.state.Ready && l.state.Awaits() || l.awaitsArchive())
	if !waits {
		l.idle = idleness{}
		return false
	}
	now, sent := l.d.cfg.Clock().Mono, l.sent.Load()
	if l.idle.since == 0 || sent-l.idle.sent >= uploadLeast {
		l.idle = idleness{since: now, sent: sent}
	}
	return now-l.idle.since >= uploadPatience.Milliseconds()
}
