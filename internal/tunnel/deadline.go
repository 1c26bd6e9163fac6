package tunnel

import (
	"sync"
	"time"
)

// deadline is one of a channel's two deadlines; the channel's lock guards it.
type deadline struct {
	timer   *time.Timer
	passed  bool
	version int // tells a timer that fired late that it was replaced
}

// set replaces the deadline and wakes those who wait on cond when it has passed.
func (d *deadline) set(t time.Time, cond *sync.Cond) {
	d.version++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.passed = false
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.passed = true
		cond.Broadcast()
		return
	}
	version := d.version
	d.timer = time.AfterFunc(left, func() {
		cond.L.Lock()
		defer cond.L.Unlock()
		if d.version == version {
			d.passed = true
			cond.Broadcast()
		}
	})
}
