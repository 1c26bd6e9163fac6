package tunnel

import (
	"errors"
	"io"
	"net"
)

// ReadFrom writes what r brings until its end, as io.Copy does, without a copy between. Other writes wait for it.
func (c *Channel) ReadFrom(r io.Reader) (int64, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int64(0)
	for {
		if err := c.awaitRoom(); err != nil {
			return n, err
		}
		room := c.tx.room(int(min(c.window-c.tx.used(), writeChunk)), c.window)
		c.filling = true
		c.mu.Unlock()
		k, err := r.Read(room)
		c.mu.Lock()
		c.filling = false
		if c.fin {
			return n, net.ErrClosed
		}
		n += int64(k)
		c.tx.tail += uint64(k)
		c.work.Signal()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// WriteTo reads to the end and writes to w, as io.Copy does, without a copy between. Other reads wait for it.
func (c *Channel) WriteTo(w io.Writer) (int64, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int64(0)
	for {
		err := c.awaitBytes()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		from := c.rx.at(c.rx.head, int(min(c.rx.used(), maxFrame)))
		c.mu.Unlock()
		k, err := w.Write(from)
		c.mu.Lock()
		n += int64(k)
		if !c.closed {
			c.rx.head += uint64(k)
		}
		c.considerAck()
		if err != nil {
			return n, err
		}
	}
}
