package tui_test

import (
	"context"
	"encoding/binary"
	"io"
)

// fakeLog is a job's output that grows.
type fakeLog struct {
	lines chan string
}

func newFakeLog(lines ...string) *fakeLog {
	l := &fakeLog{make(chan string, 10_000)}
	for _, s := range lines {
		l.lines <- s + "\n"
	}
	return l
}

func (l *fakeLog) copyTo(ctx context.Context, w *io.PipeWriter) {
	for {
		select {
		case s, ok := <-l.lines:
			if !ok {
				_, _ = w.Write(make([]byte, 8))
				_ = w.Close()
				return
			}
			head := binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, uint32(len(s)))
			if _, err := w.Write(append(head, s...)); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// demux reads the framing of logs.
func demux(r io.Reader, stdout, _ io.Writer) (offset int64, ended bool, err error) {
	head := make([]byte, 8)
	for {
		if _, err := io.ReadFull(r, head); err != nil {
			return offset, false, err
		}
		if head[0] == 0 {
			return offset + 8, true, nil
		}
		n := int64(binary.BigEndian.Uint32(head[4:]))
		if _, err := io.CopyN(stdout, r, n); err != nil {
			return offset, false, err
		}
		offset += 8 + n
	}
}
