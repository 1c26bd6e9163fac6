package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// A log is a row of records: a header of 8 bytes (the stream, three zero bytes, the payload's length as a
// big-endian uint32) and the payload. It is the multiplexed format of container engines, with two rules added: a
// payload holds at most MaxLogPayload bytes, and a record of stream 0 and length 0 says that nothing will follow.
const (
	logHeader = 8
	// MaxLogPayload is the most that one record carries. A longer one is no log.
	MaxLogPayload = 32 << 10

	logEnd    = 0
	logStdout = 1
	logStderr = 2
)

// ErrBadLog means that the bytes are no log.
var ErrBadLog = errors.New("malformed log")

// LogWriter writes a log. Its streams may be used concurrently; each Write becomes whole records, and each record
// one Write on w, so that a reader of a file sees whole records, and at worst the front of the last one.
type LogWriter struct {
	mu    sync.Mutex
	w     io.Writer
	left  int64
	cut   bool
	ended bool   // by Close
	done  bool   // the end mark has been written, or begun
	rest  []byte // of a record that is written half
	lost  int64  // bytes of output that the disk did not take
	buf   [logHeader + MaxLogPayload]byte
}

// NewLogWriter starts a log of at most limit bytes, headers included, plus one last line on stderr that says where it was
// cut. A limit of 0 means DefaultLogLimit. Writing on after the cut is no error: the bytes are dropped. Neither is a write
// that w does not take, for the disk may be full: the bytes are dropped, and when w takes some again a line on stderr says
// how many are missing.
func NewLogWriter(w io.Writer, limit int64) *LogWriter {
	if limit == 0 {
		limit = DefaultLogLimit
	}
	return &LogWriter{w: w, left: limit}
}

// Stdout returns the writer of the job's standard output.
func (l *LogWriter) Stdout() io.Writer { return logStream{l, logStdout} }

// Stderr returns the writer of the job's standard error.
func (l *LogWriter) Stderr() io.Writer { return logStream{l, logStderr} }

// Close ends the log with its end mark, and fails if w does not take it; it may then be tried again. It does not close the
// underlying writer. Later writes fail.
func (l *LogWriter) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if !l.done {
		if err := l.record(logEnd, nil); err != nil {
			return err
		}
		l.done = true
	}
	return l.flush()
}

type logStream struct {
	log    *LogWriter
	stream byte
}

func (s logStream) Write(p []byte) (int, error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if s.log.ended {
		return 0, io.ErrClosedPipe
	}
	for rest := p; len(rest) > 0; {
		part := rest[:min(len(rest), MaxLogPayload)]
		s.log.bounded(s.stream, part)
		rest = rest[len(part):]
	}
	return len(p), nil
}

// bounded writes as much of p as the limit allows, then says once that the log was cut.
func (l *LogWriter) bounded(stream byte, p []byte) {
	if l.cut {
		return
	}
	if room := l.left - logHeader; int64(len(p)) > room {
		if room > 0 {
			l.output(stream, p[:room])
		}
		l.cut = l.record(logStderr, []byte("\nhaggle: the log is full, the rest of the output is dropped\n")) == nil
		l.left = 0
		return
	}
	l.output(stream, p)
}

// output writes a record of the job's output, or counts it as lost.
func (l *LogWriter) output(stream byte, p []byte) {
	if l.record(stream, p) != nil {
		l.lost += int64(len(p))
		return
	}
	l.left -= logHeader + int64(len(p))
}

// record writes one record, behind what had to wait: the rest of a record that was written half, and word of what is lost.
func (l *LogWriter) record(stream byte, p []byte) error {
	if err := l.flush(); err != nil {
		return err
	}
	if l.lost > 0 {
		note := fmt.Sprintf("\nhaggle: %d bytes of output are missing here, the rig's disk was full\n", l.lost)
		if err := l.put(logStderr, []byte(note)); err != nil {
			return err
		}
		l.lost = 0
	}
	return l.put(stream, p)
}

// flush writes the rest of a record that was written half.
func (l *LogWriter) flush() error {
	if len(l.rest) == 0 {
		return nil
	}
	n, err := l.w.Write(l.rest)
	if l.rest = l.rest[n:]; err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	return nil
}

// put writes a record. One that has begun counts as written: its rest is written before anything else.
func (l *LogWriter) put(stream byte, p []byte) error {
	size := encodeLogHeader(l.buf[:], stream, len(p)) + copy(l.buf[logHeader:], p)
	n, err := l.w.Write(l.buf[:size])
	switch {
	case err == nil:
		return nil
	case n > 0:
		l.rest = slices.Clone(l.buf[n:size])
		return nil
	}
	return fmt.Errorf("write log: %w", err)
}

func encodeLogHeader(b []byte, stream byte, size int) int {
	b[0], b[1], b[2], b[3] = stream, 0, 0, 0
	binary.BigEndian.PutUint32(b[4:], uint32(size))
	return logHeader
}

func decodeLogHeader(h []byte) (stream byte, size int, err error) {
	n := binary.BigEndian.Uint32(h[4:logHeader])
	if h[0] > logStderr || h[1] != 0 || h[2] != 0 || h[3] != 0 || n > MaxLogPayload || (h[0] == logEnd && n != 0) {
		return 0, 0, fmt.Errorf("%w: header % x", ErrBadLog, h[:logHeader])
	}
	return h[0], int(n), nil
}

// Demux copies a log to its two streams until the end mark or the end of r. It returns how many bytes of whole
// records it took, an offset to go on from, and whether the end mark was seen. A log that stops within a record
// gives io.ErrUnexpectedEOF, hostile bytes ErrBadLog. It holds one record in memory at most.
func Demux(r io.Reader, stdout, stderr io.Writer) (offset int64, ended bool, err error) {
	buf := make([]byte, logHeader+MaxLogPayload)
	for {
		if _, err := io.ReadFull(r, buf[:logHeader]); err != nil {
			if errors.Is(err, io.EOF) { // nothing after the last record: the log was read before its end
				return offset, false, nil
			}
			return offset, false, err
		}
		stream, size, err := decodeLogHeader(buf)
		if err != nil {
			return offset, false, err
		}
		if stream == logEnd {
			return offset + logHeader, true, nil
		}
		payload := buf[logHeader : logHeader+size]
		if _, err := io.ReadFull(r, payload); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return offset, false, err
		}
		to := stdout
		if stream == logStderr {
			to = stderr
		}
		if _, err := to.Write(payload); err != nil {
			return offset, false, err
		}
		offset += logHeader + int64(size)
	}
}

// logCursor follows the records of a log that passes by in pieces of any size, to notice its end mark.
type logCursor struct {
	header [logHeader]byte
	have   int // bytes of the header seen
	skip   int // bytes of the payload still to come
	ended  bool
	err    error
}

// pass takes the next bytes and returns how many of them belong to the log: all, unless the end mark or a fault
// came before.
func (c *logCursor) pass(p []byte) int {
	taken := 0
	for taken < len(p) && !c.ended && c.err == nil {
		if c.skip > 0 {
			n := min(c.skip, len(p)-taken)
			c.skip -= n
			taken += n
			continue
		}
		n := copy(c.header[c.have:], p[taken:])
		c.have += n
		taken += n
		if c.have < logHeader {
			break
		}
		var stream byte
		stream, c.skip, c.err = decodeLogHeader(c.header[:])
		c.have = 0
		c.ended = c.err == nil && stream == logEnd
	}
	return taken
}
