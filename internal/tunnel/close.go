package tunnel

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// lingerTime is how long Close waits until the other side has what was written.
const lingerTime = 10 * time.Second

// CloseWrite tells the other side that nothing more is written; reading goes on.
func (c *Channel) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended && c.err != nil {
		return c.err
	}
	c.finish(nil)
	return nil
}

// finish ends the writing side, with a reason or without.
func (c *Channel) finish(why *Error) {
	if c.fin {
		return
	}
	c.fin, c.finWhy = true, why
	c.work.Signal()
	c.writable.Broadcast()
}

// Close ends both ways. It waits up to 10 s until the other side has what was written, reopening a path where it must; a
// dialled channel then gives up, the other side's end goes on for its Patience. What was not read is dropped.
func (c *Channel) Close() error {
	c.shut(nil)
	timer := time.NewTimer(lingerTime)
	defer timer.Stop()
	select {
	case <-c.done:
		return nil
	case <-timer.C:
	}
	if c.lasting {
		return nil
	}
	c.mu.Lock()
	left := c.tx.tail - min(c.acked, c.tx.tail)
	c.mu.Unlock()
	c.end(net.ErrClosed, &Error{Code: CodeGone, Message: "the other side closed the channel"})
	if left == 0 {
		return nil
	}
	return fmt.Errorf("close channel: the other side lacks the last %d bytes", left)
}

// shut starts the end of both ways.
func (c *Channel) shut(why *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.finish(why)
	c.closed, c.stop, c.ackDue = true, true, true
	c.rx.head = c.rx.tail
	c.wake()
	c.settle()
}

// settle ends a closed channel that has nothing left to deliver.
func (c *Channel) settle() {
	if c.closed && (c.peerStop || c.acked == c.tx.tail+2) {
		c.endLocked(nil, nil)
	}
}

// end ends the channel at once; tell goes to the other side where there is a path.
func (c *Channel) end(err error, tell *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(err, tell)
}

func (c *Channel) endLocked(err error, tell *Error) {
	if c.ended {
		return
	}
	if err == nil && !c.closed {
		err = errors.New("the channel ended")
	}
	c.ended, c.err, c.reset = true, err, tell
	c.readDeadline.set(time.Time{}, &c.readable)
	c.writeDeadline.set(time.Time{}, &c.writable)
	c.wake()
	c.cancel()
	close(c.done)
}

func (c *Channel) wake() {
	c.readable.Broadcast()
	c.writable.Broadcast()
	c.work.Broadcast()
}
