package index

import (
	"context"
	"sync"
	"time"

	"haggle/market"
)

// asks are the questions to rigs that run. A rig that keeps silent costs its own question: after a moment another takes its place.
type asks struct {
	quick chan struct{} // one token for each question that may still be answered soon
	slow  chan struct{} // one for each that was not

	mu     sync.Mutex
	flying map[market.Key]chan struct{} // closed at their end
}

func newAsks() asks {
	return asks{quick: make(chan struct{}, asksAtOnce), slow: make(chan struct{}, slowAsks), flying: map[market.Key]chan struct{}{}}
}

// may notes that a rig is being asked and reports whether it should be: not if it was within the time given, nor if there are too
// many rigs already.
//
// Where there is no room a rig at which somebody looks takes the place of one that is only talked about; one that a lookup found does not,
// for a lookup finds whoever has made a key.
func (x *Index) may(key market.Key, now time.Time, within time.Duration) bool {
	if key == x.cfg.Self {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	find := x.rig
	if within == 0 {
		find = x.asked
	}
	r := find(key, now)
	if r == nil || !r.asked.IsZero() && now.Sub(r.asked) < within {
		return false
	}
	r.asked = now
	return true
}

// begun asks a rig, or joins a question that runs: another round may have the same rig. The channel is closed when it has
// answered; it is nil where the rig need not be asked. It reports whether ctx still runs.
func (x *Index) begun(ctx context.Context, key market.Key, within time.Duration) (<-chan struct{}, bool) {
	a := &x.asks
	a.mu.Lock()
	if done := a.flying[key]; done != nil {
		a.mu.Unlock()
		return done, true
	}
	if !x.may(key, x.cfg.Clock(), within) {
		a.mu.Unlock()
		return nil, true
	}
	done := make(chan struct{})
	a.flying[key] = done
	a.mu.Unlock()
	end := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.flying, key)
		close(done)
	}
	select {
	case a.quick <- struct{}{}:
	case <-ctx.Done():
		end()
		return done, false
	}
	err := x.spawn(ctx, func(ctx context.Context) {
		defer end()
		defer a.hold()()
		x.ask(ctx, key)
	})
	if err != nil {
		<-a.quick
		end()
	}
	return done, err == nil
}

// hold keeps a quick question's token until the returned function is called, or exchanges it for a slow one's in the meantime.
func (a *asks) hold() (release func()) {
	var mu sync.Mutex
	over, exchanged := false, false
	timer := time.AfterFunc(slowAsk, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		select {
		case a.slow <- struct{}{}:
			<-a.quick
			exchanged = true
		default: // there are too many slow ones already
		}
	})
	return func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
		if exchanged {
			<-a.slow
		} else {
			<-a.quick
		}
	}
}

// ask asks a rig for its offers.
func (x *Index) ask(ctx context.Context, key market.Key) {
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	raws, err := x.cfg.Net.FetchOffers(asking, key)
	switch {
	case err == nil:
		x.answered(key, raws, x.cfg.Clock())
	case ctx.Err() == nil:
		x.log.Debug("rig does not answer", "peer", key.String(), "err", err)
		x.failed(key)
	}
}

// Look asks a rig for its offers unless it answered within the last seconds: a row that somebody looks at is to be its owner's word.
// It waits for the answer, 3 seconds at most, and reports whether the rig has answered lately.
func (x *Index) Look(ctx context.Context, key market.Key) bool {
	if x.answeredSince(key, lookedAt) {
		return true
	}
	done, _ := x.begun(ctx, key, 0)
	if done == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, freshWait)
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
	}
	return x.answeredSince(key, lookedAt)
}

// Ask asks a rig for its offers now, however lately it answered, and waits for the answer.
func (x *Index) Ask(ctx context.Context, key market.Key) { x.ask(ctx, key) }

func (x *Index) answeredSince(key market.Key, within time.Duration) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.rigs[key]
	return r != nil && !r.heard.IsZero() && r.failures == 0 && x.cfg.Clock().Sub(r.heard) < within
}
