package runtimetest

import (
	"context"
	"io"
	"sync"

	"haggle/runtime"
)

// memoryLog is a log file in memory.
type memoryLog struct {
	writer *runtime.LogWriter
	mu     sync.Mutex
	data   []byte
	ended  bool
	change chan struct{} // closed and replaced at every change
}

func newMemoryLog(limit int64) *memoryLog {
	l := &memoryLog{change: make(chan struct{})}
	l.writer = runtime.NewLogWriter(l, limit)
	return l
}

func (l *memoryLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.data = append(l.data, p...)
	l.changed()
	return len(p), nil
}

func (l *memoryLog) end() {
	_ = l.writer.Close() // a write to memory does not fail
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.changed()
}

func (l *memoryLog) changed() {
	close(l.change)
	l.change = make(chan struct{})
}

type memoryReader struct {
	ctx    context.Context
	cancel context.CancelFunc
	log    *memoryLog
	offset int64
	follow bool
}

func (r *memoryReader) Read(p []byte) (int, error) {
	for {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		r.log.mu.Lock()
		var n int
		if r.offset < int64(len(r.log.data)) {
			n = copy(p, r.log.data[r.offset:])
			r.offset += int64(n)
		}
		ended, change := r.log.ended, r.log.change
		r.log.mu.Unlock()
		if n > 0 || len(p) == 0 {
			return n, nil
		}
		if ended || !r.follow {
			return 0, io.EOF
		}
		select {
		case <-change:
		case <-r.ctx.Done():
		}
	}
}

func (r *memoryReader) Close() error {
	r.cancel()
	return nil
}
