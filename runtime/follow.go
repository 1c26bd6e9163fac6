package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Waiting for a log. The notice of the kernel is what wakes the reader; the poll only guards against a lost one.
const (
	followPoll = 250 * time.Millisecond
	// followTail is how long after the job's end the rest of a log without an end mark is waited for.
	followTail = time.Second
)

// OpenLog opens a log file from a byte offset, which must be 0 or the end of a record. With gone == nil it reads
// what there is. Otherwise it follows: Read waits for more until the end mark, or until a second after gone was
// closed, which says that the job has ended and nothing more is coming. A bad record ends it with ErrBadLog.
// Close, or the end of ctx, unblocks Read; the caller must close it.
func OpenLog(ctx context.Context, path string, offset int64, gone <-chan struct{}) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, fmt.Errorf("open log: negative offset %d: %w", offset, os.ErrInvalid)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(fmt.Errorf("open log: %w", err), f.Close())
	}
	if gone == nil {
		return f, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &follower{ctx: ctx, cancel: cancel, file: f, gone: gone}
	// A system gives a user only so many watchers. Without one the poll is slower but complete.
	if watch, err := fsnotify.NewWatcher(); err == nil {
		// The folder is watched and not the file, which macOS and Windows do better.
		if err := watch.Add(filepath.Dir(path)); err == nil {
			r.watch, r.changes = watch, watch.Events
		} else if err := watch.Close(); err != nil {
			return nil, errors.Join(fmt.Errorf("follow log: %w", err), r.Close())
		}
	}
	return r, nil
}

// follower reads a growing log file. Only Close may be called beside Read.
type follower struct {
	ctx     context.Context
	cancel  context.CancelFunc
	file    *os.File
	watch   *fsnotify.Watcher     // nil when there is none to have
	changes <-chan fsnotify.Event // of watch
	gone    <-chan struct{}
	cursor  logCursor
	until   time.Time // once gone: when waiting ends
	close   sync.Once
}

func (f *follower) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if f.cursor.err != nil {
			return 0, f.cursor.err
		}
		if f.cursor.ended {
			return 0, io.EOF
		}
		if err := f.ctx.Err(); err != nil {
			return 0, err
		}
		n, err := f.file.Read(p)
		if n = f.cursor.pass(p[:n]); n > 0 {
			return n, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("read log: %w", err)
		}
		if !f.wait() {
			return 0, io.EOF
		}
	}
}

// wait returns after a change of the folder, or after a while; false says that nothing more will come.
func (f *follower) wait() bool {
	gone, pause := f.gone, followPoll
	if !f.until.IsZero() {
		gone, pause = nil, min(followPoll, time.Until(f.until))
		if pause <= 0 {
			return false
		}
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-f.ctx.Done():
	case _, open := <-f.changes:
		if !open {
			f.changes = nil
		}
	case <-timer.C:
	case <-gone:
		f.until = time.Now().Add(followTail)
	}
	return true
}

func (f *follower) Close() error {
	var err error
	f.close.Do(func() {
		f.cancel()
		err = f.file.Close()
		if f.watch != nil {
			err = errors.Join(err, f.watch.Close())
		}
	})
	return err
}
