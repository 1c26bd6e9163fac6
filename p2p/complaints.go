package p2p

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"haggle/market"
)

// Bounds of what hostile peers can make the log say.
const (
	maxComplaints  = 1024             // kinds of faults and peers that are remembered
	complainAgain  = time.Hour        // about the same peer for the same fault
	complainEvery  = 10 * time.Second // between lines about peers, once there were complainAtOnce of them
	complainAtOnce = 32
)

// complaints decides what is logged of streams that ended badly: each kind of fault once for each peer, and not many lines
// in all, because a hostile peer has as many keys as it likes.
type complaints struct {
	pace *rate.Limiter

	mu     sync.Mutex
	known  map[complaint]*list.Element // values are *told
	recent *list.List                  // the newest first
}

type complaint struct {
	peer     market.Key
	protocol Protocol
	code     market.Code
}

type told struct {
	complaint
	at time.Time
}

func newComplaints() *complaints {
	return &complaints{
		pace: rate.NewLimiter(rate.Every(complainEvery), complainAtOnce), known: map[complaint]*list.Element{}, recent: list.New(),
	}
}

// news reports whether a complaint is to be logged.
func (c *complaints) news(of complaint, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.known[of]; ok {
		if now.Sub(e.Value.(*told).at) < complainAgain {
			return false
		}
		c.forget(e)
	}
	if !c.pace.AllowN(now, 1) {
		return false // it may be told later
	}
	c.known[of] = c.recent.PushFront(&told{of, now})
	if c.recent.Len() > maxComplaints {
		c.forget(c.recent.Back())
	}
	return true
}

func (c *complaints) forget(e *list.Element) {
	delete(c.known, c.recent.Remove(e).(*told).complaint)
}

// ours reports whether a fault is this program's own, and not the peer's.
func ours(code market.Code) bool {
	return code == market.CodeInternal || code == market.CodeDiskFull || code == market.CodeEngineDown
}

// hostile reports whether only a broken or hostile program, or one that is overloaded, makes such a fault.
func hostile(code market.Code) bool {
	switch code {
	case market.CodeBadEncoding, market.CodeBadRecord, market.CodeBadSignature, market.CodeWrongNetwork, market.CodeTooLarge,
		market.CodeTooSlow, market.CodeTooMany, market.CodeUnexpected, market.CodeNotYours:
		return true
	}
	return false
}

// demerits is how much worse a peer is thought of for a fault of its own. What honest programs do on poor lines or beside newer ones
// weighs little.
func demerits(code market.Code) float64 {
	switch code {
	case market.CodeBadSignature:
		return 20
	case market.CodeBadEncoding, market.CodeTooLarge:
		return 10
	case market.CodeBadRecord, market.CodeWrongNetwork, market.CodeUnexpected:
		return 5
	case market.CodeNotYours:
		return 2
	case market.CodeTooSlow:
		return 0.5
	}
	return 0
}

// floods is the demerit of a stream beyond the peer's own limits. Whoever waits as long as it is told never gets one again.
const floods = 0.25
