package runtime

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	ended bool
	err   error
	buf   [logHeader + MaxLogPayload]byte
}

// NewLogWriter starts a log of at most limit bytes, headers included, plus one last line on stderr that says where it was
// cut. A limit of 0 means DefaultLogLimit. Writing on after the cut is no error: the bytes are dropped.
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

// Close ends the log with its end mark. It does not close the underlying writer. Later writes fail.
func (l *LogWriter) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	l.ended = true
	return l.record(logEnd, nil)
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
	written := 0
	for rest := p; len(rest) > 0; {
		part := rest[:min(len(rest), MaxLogPayload)]
		if err := s.log.bounded(s.stream, part); err != nil {
			return written, err
		}
		written += len(part)
		rest = rest[len(part):]
	}
	return written, nil
}

// bounded writes as much of p as the limit allows, then says once that the log was cut.
func (l *LogWriter) bounded(stream byte, p []byte) error {
	if l.cut {
		return l.err
	}
	if room := l.left - logHeader; int64(len(p)) > room {
		if room > 0 {
			if err := l.record(stream, p[:room]); err != nil {
				return err
			}
		}
		l.cut = true
		return l.record(logStderr, []byte("\nhaggle: the log is full, the rest of the output is dropped\n"))
	}
	l.left -= logHeader + int64(len(p))
	return l.record(stream, p)
}

// record writes one record. After a failed write the file may end within a record, so nothing may follow it.
func (l *LogWriter) record(stream byte, p []byte) error {
	if l.err != nil {
		return l.err
	}
	n := encodeLogHeader(l.buf[:], stream, len(p)) + copy(l.buf[logHeader:], p)
	if _, err := l.w.Write(l.buf[:n]); err != nil {
		l.err = fmt.Errorf("write log: %w", err)
	}
	return l.err
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
