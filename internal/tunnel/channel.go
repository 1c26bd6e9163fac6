package tunnel

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// ackEvery is the most bytes between two acks.
const ackEvery = 128 << 10

// backlog is about how much Write is ahead of the path.
const backlog = 128 << 10

// writeChunk is the most that one step of Write moves, so that a path starts on a long one early.
const writeChunk = 64 << 10

// Channel is one end of a byte stream that outlives the paths below it. It implements net.Conn; all methods may be called
// at once from several goroutines. Read ends with io.EOF after the other side's CloseWrite, and with an *Error where the other
// side ended with one; bytes that came before are read first.
type Channel struct {
	id, kind string
	window   uint64 // a power of two
	lasting  bool   // delivers after Close for as long as the other side may come back; else Close gives up
	log      *slog.Logger
	ctx      context.Context // ends with the channel
	cancel   context.CancelFunc
	done     chan struct{} // closed with the channel

	reading, writing sync.Mutex // one Read, one Write at a time; taken before mu

	mu       sync.Mutex
	readable sync.Cond // Read waits
	writable sync.Cond // Write waits
	work     sync.Cond // the path's sender waits

	// Offsets count from the channel's start; fin and stop take one each after the last byte.
	tx         ring   // written and not yet received by the other side
	acked      uint64 // the other side has all before
	next       uint64 // the path has been given all before
	sent       uint64 // the highest next of all paths
	limit      uint64 // the other side takes data up to here
	flight     bool   // the path's sender is reading tx from flightFrom on
	flightFrom uint64
	filling    bool // a Write is copying into tx
	fin, stop  bool // to be sent after tx
	finWhy     *Error

	rx                 ring // received and not yet read
	landing            bool // the path's receiver is writing into rx
	peerFin, peerStop  bool
	peerWhy            *Error
	ackDue             bool
	toldReceived, told uint64 // what the last ack said: received, limit

	closed bool   // Close was called
	ended  bool   // nothing more goes either way
	err    error  // why it ended, nil after a clean end
	reset  *Error // tells the other side why
	path   *path  // the one that carries now
	try    uint64

	readDeadline, writeDeadline deadline
}

func newChannel(ctx context.Context, id, kind string, window uint64, log *slog.Logger) *Channel {
	c := &Channel{id: id, kind: kind, window: window, log: log, done: make(chan struct{}), told: window}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.readable.L, c.writable.L, c.work.L = &c.mu, &c.mu, &c.mu
	return c
}

// Read reads what the other side wrote.
func (c *Channel) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if err := c.awaitBytes(); err != nil {
		return 0, err
	}
	n := 0
	for n < len(p) && c.rx.used() > 0 && !c.closed {
		from := c.rx.at(c.rx.head, int(min(c.rx.used(), uint64(len(p)-n))))
		c.mu.Unlock() // nothing but Read moves head, so the bytes stay
		k := copy(p[n:], from)
		c.mu.Lock()
		n += k
		if !c.closed {
			c.rx.head += uint64(k)
		}
	}
	c.considerAck()
	return n, nil
}

// awaitBytes waits until there is something to read.
func (c *Channel) awaitBytes() error {
	for c.rx.used() == 0 || c.closed || c.readDeadline.passed {
		if err := c.readError(); err != nil {
			return err
		}
		c.readable.Wait()
	}
	return nil
}

func (c *Channel) readError() error {
	switch {
	case c.closed:
		return net.ErrClosed
	case c.readDeadline.passed:
		return os.ErrDeadlineExceeded
	case c.peerWhy != nil:
		return c.peerWhy
	case c.peerFin:
		return io.EOF
	case c.ended:
		return c.err
	}
	return nil
}

// considerAck asks for an ack where the other side may soon wait for one.
func (c *Channel) considerAck() {
	quarter := min(c.window/4, ackEvery)
	if c.rx.head+c.window-c.told >= quarter || c.received()-c.toldReceived >= quarter {
		c.ackDue = true
		c.work.Signal()
	}
}

// received is where the other side's stream has come to, fin and stop counted.
func (c *Channel) received() uint64 {
	n := c.rx.tail
	if c.peerFin {
		n++
	}
	if c.peerStop {
		n++
	}
	return n
}

// Write takes p; it waits while the other side has not received a whole window, and returns before p has arrived.
func (c *Channel) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(p) {
		if err := c.awaitRoom(); err != nil {
			return n, err
		}
		room := c.tx.room(int(min(uint64(len(p)-n), c.window-c.tx.used(), writeChunk)), c.window)
		c.filling = true
		c.mu.Unlock() // nothing but Write touches the bytes after tail
		k := copy(room, p[n:])
		c.mu.Lock()
		c.filling = false
		if c.fin { // CloseWrite or Close came meanwhile: the stream's length is told
			return n, net.ErrClosed
		}
		n += k
		c.tx.tail += uint64(k)
		c.work.Signal()
	}
	return n, nil
}

// awaitRoom waits until Write may go on. It keeps close to the path: what was just written is still in the processor's cache
// when it goes out.
func (c *Channel) awaitRoom() error {
	for {
		if err := c.writeError(); err != nil {
			return err
		}
		if c.tx.used() < c.window && c.tx.tail-min(c.next, c.tx.tail) < backlog {
			return nil
		}
		c.writable.Wait()
	}
}

func (c *Channel) writeError() error {
	switch {
	case c.closed, c.fin:
		return net.ErrClosed
	case c.writeDeadline.passed:
		return os.ErrDeadlineExceeded
	case c.ended:
		return c.err
	case c.peerStop && c.peerWhy != nil:
		return c.peerWhy
	case c.peerStop:
		return io.ErrClosedPipe
	}
	return nil
}

// SetDeadline sets both deadlines.
func (c *Channel) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline makes Read fail with os.ErrDeadlineExceeded from t on; the zero time is none.
func (c *Channel) SetReadDeadline(t time.Time) error {
	return c.setDeadline(&c.readDeadline, t, &c.readable)
}

// SetWriteDeadline makes Write fail with os.ErrDeadlineExceeded from t on; the zero time is none.
func (c *Channel) SetWriteDeadline(t time.Time) error {
	return c.setDeadline(&c.writeDeadline, t, &c.writable)
}

func (c *Channel) setDeadline(d *deadline, t time.Time, cond *sync.Cond) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.ended {
		return net.ErrClosed
	}
	d.set(t, cond)
	return nil
}

// LocalAddr names the channel.
func (c *Channel) LocalAddr() net.Addr { return addr(c.kind + "/" + c.id) }

// RemoteAddr names the channel.
func (c *Channel) RemoteAddr() net.Addr { return addr(c.kind + "/" + c.id) }

// addr is a channel's address: its kind and id.
type addr string

func (addr) Network() string  { return "tunnel" }
func (a addr) String() string { return string(a) }
