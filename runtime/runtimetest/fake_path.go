package runtimetest

import (
	"context"
	"fmt"
	"io"
	"sync"

	"haggle/runtime"
)

// Enter implements runtime.Runtime. Who answers is Fake.Door.
func (f *Fake) Enter(ctx context.Context, id string) (runtime.Conn, error) {
	defer f.mu.Unlock()
	j, err := f.find(ctx, "Enter", id)
	if err != nil {
		return nil, err
	}
	if j.disk == nil {
		return nil, fmt.Errorf("enter job %s: its disk is another job's now: %w", id, runtime.ErrNotFound)
	}
	near, far := newPath()
	j.entered++
	nth, disk, door := j.entered, j.disk, f.Door
	j.paths[far] = struct{}{}
	f.running.Go(func() {
		if door != nil {
			door(id, far)
		} else {
			_ = answerPath(far, nth, disk.read) // the other side sees what became of it
		}
		_ = far.Close()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(j.paths, far)
	})
	return near, nil
}

// closePaths ends all paths of a job. The lock is held.
func (j *fakeJob) closePaths() {
	for far := range j.paths {
		_ = far.Close()
		delete(j.paths, far)
	}
}

// takeDisk takes the disk of a stopped job away from it. The lock is held.
func (f *Fake) takeDisk(spec runtime.Spec) (*Disk, error) {
	old := f.jobs[spec.From]
	switch {
	case old == nil:
		return nil, fmt.Errorf("take the disk of job %s: %w", spec.From, runtime.ErrNotFound)
	case old.state != runtime.Stopped:
		return nil, fmt.Errorf("take the disk of job %s, which has not stopped: %w", spec.From, runtime.ErrConflict)
	case old.disk == nil:
		return nil, fmt.Errorf("take the disk of job %s, which has none any more: %w", spec.From, runtime.ErrConflict)
	case old.spec.Image != spec.Image:
		return nil, fmt.Errorf("take the disk of job %s, which had another image: %w", spec.From, runtime.ErrInvalidSpec)
	}
	disk := old.disk
	old.disk = nil
	old.closePaths()
	return disk, nil
}

// pathBuffer is what one direction of a path in memory holds, as a socket does.
const pathBuffer = 256 << 10

// lane is one direction of a path: what is written and not yet read. Closing waits for nobody, so that it works under the lock
// of a Fake.
type lane struct {
	mu     sync.Mutex
	change sync.Cond
	data   []byte
	start  int  // of what was not read, in data
	ended  bool // nothing more comes
	broken bool // nobody reads any more, or nobody may
}

func newLane() *lane {
	l := &lane{}
	l.change.L = &l.mu
	return l
}

func (l *lane) read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.start == len(l.data) && !l.ended && !l.broken {
		l.change.Wait()
	}
	switch {
	case l.broken:
		return 0, io.ErrClosedPipe
	case l.start == len(l.data):
		return 0, io.EOF
	}
	n := copy(p, l.data[l.start:])
	if l.start += n; l.start == len(l.data) {
		l.data, l.start = l.data[:0], 0
	}
	l.change.Broadcast()
	return n, nil
}

func (l *lane) write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var n int
	for {
		if l.ended || l.broken {
			return n, io.ErrClosedPipe
		}
		if l.data == nil {
			l.data = make([]byte, 0, pathBuffer)
		}
		room := min(pathBuffer-len(l.data), len(p)-n)
		l.data = append(l.data, p[n:n+room]...)
		n += room
		l.change.Broadcast()
		if n == len(p) {
			return n, nil
		}
		l.change.Wait()
	}
}

// end says that nothing more comes; what was written before is still read.
func (l *lane) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	l.change.Broadcast()
}

func (l *lane) breakOff() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = true
	l.change.Broadcast()
}

// pathEnd is one end of a path in memory.
type pathEnd struct{ in, out *lane }

func newPath() (near, far *pathEnd) {
	a, b := newLane(), newLane()
	return &pathEnd{a, b}, &pathEnd{b, a}
}

// Read implements io.Reader.
func (e *pathEnd) Read(p []byte) (int, error) { return e.in.read(p) }

// Write implements io.Writer.
func (e *pathEnd) Write(p []byte) (int, error) { return e.out.write(p) }

// CloseWrite ends what is sent.
func (e *pathEnd) CloseWrite() error {
	e.out.end()
	return nil
}

// Close ends both ways. What was written before is still read at the other end.
func (e *pathEnd) Close() error {
	e.out.end()
	e.in.breakOff()
	return nil
}
