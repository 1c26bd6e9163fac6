package filesync

import (
	"bufio"
	"encoding/binary"
	"io"
	"sync"
)

// The types of frames. The protocol's page in docs has their layouts.
const (
	frameHello   = 0x01
	frameWelcome = 0x02
	frameReady   = 0x03

	frameList    = 0x10
	frameListEnd = 0x11

	frameNeed    = 0x20
	frameHave    = 0x21
	frameHaveEnd = 0x22

	frameSmall  = 0x30
	frameStart  = 0x31
	frameChunk  = 0x32
	frameCopy   = 0x33
	frameFinish = 0x34
	frameFail   = 0x35
	frameDone   = 0x36

	frameResult = 0x40
	frameError  = 0x7f
)

const (
	headerSize = 5
	// maxPayload is one chunk and the words before it.
	maxPayload = chunkSize + 4096
	// maxBefore is the most that stands before the bytes of a chunk: header, two numbers, hash.
	maxBefore = headerSize + 2*binary.MaxVarintLen64 + 32
)

// link reads and writes frames.
type link struct {
	r    *bufio.Reader
	head [headerSize]byte

	mu sync.Mutex
	w  *bufio.Writer
}

func newLink(c io.ReadWriter) *link {
	return &link{r: bufio.NewReaderSize(c, 64<<10), w: bufio.NewWriterSize(c, 64<<10)}
}

// next reads the head of the next frame.
func (l *link) next() (kind byte, size int, err error) {
	if _, err := io.ReadFull(l.r, l.head[:]); err != nil {
		return 0, 0, unexpectedEnd(err)
	}
	n := binary.BigEndian.Uint32(l.head[1:])
	if n > maxPayload {
		return 0, 0, badFrame("a frame of %d bytes", n)
	}
	return l.head[0], int(n), nil
}

// payload reads the rest of a frame into buf, which must have its size.
func (l *link) payload(buf []byte) error {
	_, err := io.ReadFull(l.r, buf)
	return unexpectedEnd(err)
}

// send writes one frame and flushes it.
func (l *link) send(kind byte, payload []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var head [headerSize]byte
	putHeader(head[:], kind, len(payload))
	if _, err := l.w.Write(head[:]); err != nil {
		return err
	}
	if _, err := l.w.Write(payload); err != nil {
		return err
	}
	return l.w.Flush()
}

// write writes a frame that has its header already, and leaves the flushing to flush.
func (l *link) write(frame []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.w.Write(frame)
	return err
}

func (l *link) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Flush()
}

func putHeader(b []byte, kind byte, n int) {
	b[0] = kind
	binary.BigEndian.PutUint32(b[1:], uint32(n))
}

// frame starts a frame in buf; seal writes its length.
func startFrame(buf []byte, kind byte) []byte { return append(buf[:0], kind, 0, 0, 0, 0) }

func seal(frame []byte) []byte {
	putHeader(frame, frame[0], len(frame)-headerSize)
	return frame
}

func appendUint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }
func appendInt(b []byte, v int64) []byte   { return binary.AppendVarint(b, v) }

func appendString(b []byte, s string) []byte {
	return append(appendUint(b, uint64(len(s))), s...)
}

// decoder takes the words of a payload. After the first fault it yields zeros, and err has the fault.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = badFrame("a frame that is cut or has wrong words")
	}
	d.b = nil
}

func (d *decoder) byte() byte {
	if len(d.b) < 1 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) uint16() uint16 {
	hi := d.byte()
	return uint16(hi)<<8 | uint16(d.byte())
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// size is a number that is a size or a count: it fits int64.
func (d *decoder) size() int64 {
	v := d.uint()
	if v > 1<<62 {
		d.fail()
		return 0
	}
	return int64(v)
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) bytes(n int64) []byte {
	if n < 0 || n > int64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) string(most int) string {
	n := d.size()
	if n > int64(most) {
		d.fail()
		return ""
	}
	return string(d.bytes(n))
}

func (d *decoder) hash() (h hash) {
	copy(h[:], d.bytes(32))
	return h
}

// end returns the fault, or one for bytes that are left over.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail()
	}
	return d.err
}
