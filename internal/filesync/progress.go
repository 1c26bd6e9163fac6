package filesync

import (
	"sync"
	"time"
)

// progressEvery is how often a person is told.
const progressEvery = 100 * time.Millisecond

// meter counts what a copy did, from any goroutine.
type meter struct {
	mu      sync.Mutex
	p       Progress
	changed bool
	tell    func(Progress)
	stop    chan struct{}
	stopped sync.WaitGroup
}

func newMeter(tell func(Progress)) *meter {
	m := &meter{tell: tell, stop: make(chan struct{}), p: Progress{Scanning: true}}
	if tell != nil {
		m.stopped.Go(m.run)
	}
	return m
}

func (m *meter) run() {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.stop:
			m.say(true)
			return
		case <-tick.C:
			m.say(false)
		}
	}
}

func (m *meter) say(last bool) {
	m.mu.Lock()
	p, changed := m.p, m.changed
	m.changed = false
	m.mu.Unlock()
	if !changed && !last {
		return
	}
	// A file that grew or shrank since it was listed is not shown as more than all.
	p.BytesDone = min(p.BytesDone, p.Bytes)
	m.tell(p)
}

// end tells the last state and returns it.
func (m *meter) end() Progress {
	close(m.stop)
	m.stopped.Wait()
	return m.get()
}

func (m *meter) get() Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.p
}

func (m *meter) found(files, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.Files += files
	m.p.Bytes += bytes
	m.changed = true
}

func (m *meter) scanned() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.Scanning, m.changed = false, true
}

// did adds files that are complete, bytes that are, and those of them that crossed the stream.
func (m *meter) did(path string, files, bytes, sent int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.p.FilesDone += files
	m.p.BytesDone += bytes
	m.p.Sent += sent
	if path != "" {
		m.p.Current = path
	}
	m.changed = true
}
