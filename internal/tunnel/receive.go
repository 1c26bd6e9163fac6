package tunnel

import (
	"errors"
)

// receive reads frames from p until it breaks; a peer that breaks the protocol ends the channel.
func (c *Channel) receive(p *path) error {
	for {
		kind, n, err := readHeader(p.in)
		if err == nil {
			p.used = true
			err = c.handle(p, kind, n)
		}
		if err == nil {
			continue
		}
		var broken *Error
		if errors.As(err, &broken) {
			c.end(broken, broken)
		}
		return err
	}
}

func (c *Channel) handle(p *path, kind byte, n int) error {
	switch kind {
	case frameData:
		return c.land(p, n)
	case frameAck:
		received, limit, err := readAck(p.in)
		if err != nil {
			return err
		}
		return c.takeAck(received, limit)
	case frameStop:
		return c.takeStop()
	}
	why, err := readError(p.in, n)
	if err != nil {
		return err
	}
	if kind == frameFin {
		return c.takeFin(why)
	}
	if why == nil {
		why = &Error{Code: CodeFailed, Message: "the other side ended the channel"}
	}
	c.end(why, nil)
	return nil
}

// land reads n bytes of data into the ring, or drops them where the channel is closed. What came before a cut counts.
func (c *Channel) land(p *path, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peerFin {
		return violation("data after the end")
	}
	if c.rx.tail+uint64(n) > c.told {
		return violation("more data than the window takes")
	}
	for n > 0 {
		var k int
		var err error
		if c.closed {
			c.mu.Unlock()
			k, err = p.in.Discard(n)
			c.mu.Lock()
		} else {
			room := c.rx.room(n, c.window)
			c.landing = true
			c.mu.Unlock() // nothing but the one path's receiver touches the bytes after tail
			k, err = p.in.Read(room)
			c.mu.Lock()
			c.landing = false
		}
		n -= k
		c.rx.tail += uint64(k)
		if c.closed {
			c.rx.head = c.rx.tail
		}
		c.readable.Signal()
		c.considerAck()
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Channel) takeAck(received, limit uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if received < c.acked || received > c.next {
		return violation("an ack of what was not sent")
	}
	c.acked, c.limit = received, max(c.limit, limit)
	c.release()
	c.settle()
	if c.sendable() {
		c.work.Signal()
	}
	return nil
}

func (c *Channel) takeFin(why *Error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peerFin {
		return violation("a second end")
	}
	c.peerFin, c.peerWhy, c.ackDue = true, why, true
	c.readable.Broadcast()
	c.work.Signal()
	return nil
}

func (c *Channel) takeStop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.peerFin || c.peerStop {
		return violation("a stop out of turn")
	}
	c.peerStop, c.ackDue = true, true
	c.writable.Broadcast()
	c.work.Signal()
	c.settle()
	return nil
}
