package tunnel

import (
	"bufio"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// A path that brings nothing for silentTicks of the keepalive is dead: every side sends at least an ack each keepalive.
const (
	keepalive   = 5 * time.Second
	silentTicks = 3
	drainTime   = 2 * time.Second // how long a path that is done waits for the other side's end
)

const smallWrite = 4 << 10 // up to it copying costs less than a second slice

// path is one connection below a channel.
type path struct {
	conn    Conn
	in      *bufio.Reader
	heard   atomic.Bool // something came since the last tick
	used    bool        // a frame came; written by the receiver, read after its end
	gone    chan struct{}
	first   []byte // goes out before all else
	dead    bool   // guarded by the channel's lock
	scratch []byte
	pair    [2][]byte
	vector  net.Buffers
}

func newPath(conn Conn) *path {
	p := &path{conn: conn, gone: make(chan struct{})}
	p.in = bufio.NewReaderSize(p, 4<<10)
	return p
}

// Read reads from the connection and notes the sign of life.
func (p *path) Read(b []byte) (int, error) {
	n, err := p.conn.Read(b)
	if n > 0 {
		p.heard.Store(true)
	}
	return n, err
}

// errSilent ends a path that nothing comes from.
var errSilent = fmt.Errorf("nothing came for %s", silentTicks*keepalive)

// attach makes p the path of c, whose last one is gone: the other side has all before received and takes data up to limit.
// The channel's lock is held.
func (c *Channel) attach(p *path, received, limit uint64) {
	c.path = p
	c.acked, c.next = received, received
	c.limit = max(c.limit, limit)
	c.release()
	c.settle()
	c.writable.Broadcast()
}

// resumable says whether the other side can go on from received.
func (c *Channel) resumable(received uint64) *Error {
	switch {
	case received < c.acked:
		return &Error{Code: CodeGone, Message: "the bytes to go on with are no longer held"}
	case received > c.sent:
		return violation("bytes were received that were never sent")
	}
	return nil
}

// carry moves frames over p until it breaks or the channel has ended. Then p is closed and nothing of c uses it.
func (c *Channel) carry(p *path) error {
	sent, received := make(chan outcome, 1), make(chan outcome, 1)
	go func() { sent <- outcome{c.send(p)} }()
	go func() { received <- outcome{c.receive(p)} }()
	open, err := c.watch(p, sent, received)
	c.mu.Lock()
	p.dead = true
	c.work.Broadcast()
	c.mu.Unlock()
	_ = p.conn.Close()
	for ; open > 0; open-- {
		select {
		case <-sent:
		case <-received:
		}
	}
	c.mu.Lock()
	c.path = nil
	c.mu.Unlock()
	close(p.gone)
	return err
}

// outcome is how one of a path's two goroutines ended.
type outcome struct{ err error }

// watch waits until p is over; open counts the two goroutines that have not told their end.
func (c *Channel) watch(p *path, sent, received <-chan outcome) (open int, err error) {
	ticker := time.NewTicker(keepalive)
	defer ticker.Stop()
	done, silent, late := c.done, 0, (<-chan time.Time)(nil)
	for {
		select {
		case end := <-received:
			if c.over() { // perhaps by what came: tell the other side
				return await(sent), end.err
			}
			return 1, end.err
		case end := <-sent: // broken, or the channel has ended and the other side was told: hear what it still says
			if end.err == nil {
				_ = p.conn.CloseWrite()
			}
			return await(received), end.err
		case <-done:
			done = nil
			timer := time.NewTimer(drainTime) // for a path that takes no more
			defer timer.Stop()
			late = timer.C
		case <-late:
			return 2, net.ErrClosed
		case <-ticker.C:
			silent++
			if p.heard.Swap(false) {
				silent = 0
			}
			if silent >= silentTicks {
				return 2, errSilent
			}
			c.tick()
		}
	}
}

// await gives the path's other goroutine a little time to end; it tells how many still run.
func await(other <-chan outcome) (open int) {
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-other:
		return 0
	case <-timer.C:
		return 1
	}
}

func (c *Channel) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// tick keeps the path alive, and gives memory back that an idle channel does not need.
func (c *Channel) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ackDue = true
	c.work.Signal()
	if !c.filling && !c.flight {
		c.tx.shrink()
	}
	if !c.landing {
		c.rx.shrink()
	}
}

// send writes frames to p; nil means that the channel has ended and the other side knows.
func (c *Channel) send(p *path) error {
	if p.first != nil {
		if _, err := p.conn.Write(p.first); err != nil {
			return err
		}
		p.first = nil
	}
	p.scratch = make([]byte, 0, 64)
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for !p.dead && !c.ended && !c.ackDue && !c.sendable() {
			c.work.Wait()
		}
		switch {
		case p.dead:
			return net.ErrClosed
		case c.ended && c.reset != nil:
			frame := appendError(p.scratch[:0], frameReset, c.reset)
			c.mu.Unlock()
			_, err := p.conn.Write(frame)
			c.mu.Lock()
			return err
		case c.ended && !c.ackDue:
			return nil
		}
		head, data := c.compose(p)
		c.mu.Unlock()
		err := p.write(head, data)
		c.mu.Lock()
		c.flight = false
		c.release()
		c.writable.Signal()
		if err != nil {
			return err
		}
	}
}

// sendable says whether something of the stream can go out.
func (c *Channel) sendable() bool {
	switch {
	case c.ended || c.peerStop:
		return false
	case c.next < c.tx.tail:
		return c.next < c.limit
	case c.next == c.tx.tail:
		return c.fin
	}
	return c.stop && c.next == c.tx.tail+1
}

// compose takes what goes out next: frames as bytes, and the data after them.
func (c *Channel) compose(p *path) (head, data []byte) {
	head = p.scratch[:0]
	received, limit := c.received(), c.rx.head+c.window
	if c.ackDue || received != c.toldReceived || limit != c.told {
		head = appendAck(head, received, limit)
		c.ackDue, c.toldReceived, c.told = false, received, limit
	}
	if c.sendable() && c.next < c.tx.tail {
		data = c.tx.at(c.next, int(min(c.tx.tail-c.next, c.limit-c.next, maxFrame)))
		head = appendHeader(head, frameData, len(data))
		c.flight, c.flightFrom = true, c.next
		c.next += uint64(len(data))
	}
	if data == nil && c.sendable() && c.next == c.tx.tail {
		head = appendError(head, frameFin, c.finWhy)
		c.next++
	}
	if data == nil && c.sendable() && c.next == c.tx.tail+1 {
		head = appendHeader(head, frameStop, 0)
		c.next++
	}
	c.sent = max(c.sent, c.next)
	return head, data
}

// write writes both slices, in one call where that is cheap.
func (p *path) write(head, data []byte) error {
	if len(data) <= smallWrite {
		p.scratch = append(head, data...)
		_, err := p.conn.Write(p.scratch)
		return err
	}
	p.pair = [2][]byte{head, data}
	p.vector = p.pair[:]
	_, err := p.vector.WriteTo(p.conn)
	return err
}

// release frees what the other side has and no path is reading.
func (c *Channel) release() {
	head := min(c.acked, c.tx.tail)
	if c.flight {
		head = min(head, c.flightFrom)
	}
	if head > c.tx.head {
		c.tx.head = head
		c.writable.Signal()
	}
}
