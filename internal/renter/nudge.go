package renter

import (
	"context"
	"sync"
	"time"

	"haggle/market"
)

// nudgeTime is how long a rig whose job runs may be silent before it is spoken to: longer than between two of its words.
const nudgeTime = 7 * time.Second

// nudge speaks to a rig that has fallen silent. A program that was killed does not say goodbye, and over QUIC nobody notices before
// something is sent to it. What is sent is the newest receipt once more: a rig answers it with an ack.
type nudge struct {
	mu      sync.Mutex
	receipt []byte    // the newest with both signatures; nil before there is one
	word    time.Time // when the rig was last heard, zero where its job does not run
}

// heard notes that the rig has said something, and whether its job runs.
func (n *nudge) heard(now time.Time, running bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.word = time.Time{}
	if running {
		n.word = now
	}
}

// signed notes the newest receipt.
func (n *nudge) signed(receipt []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.receipt = receipt
}

// due returns what is to be sent now, or nil.
func (n *nudge) due(now time.Time) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.word.IsZero() || now.Sub(n.word) < nudgeTime {
		return nil
	}
	return n.receipt
}

// keep sends what is due until ctx ends.
func (n *nudge) keep(ctx context.Context, s Stream, clock func() time.Time) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
		receipt := n.due(clock())
		if receipt == nil {
			continue
		}
		n.heard(clock(), true) // the next time after as long again
		if s.Send(ctx, market.ReceiptMessage{Receipt: receipt}) != nil {
			return // who reads the stream hears of it
		}
	}
}
