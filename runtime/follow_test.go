package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"haggle/runtime"
)

func newLogFile(t *testing.T) (string, *os.File, *runtime.LogWriter) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "job.log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return path, f, runtime.NewLogWriter(f, 0)
}

func TestFollowingSeesWhatIsWrittenLaterAndEndsAtTheEndMark(t *testing.T) {
	path, _, w := newLogFile(t)
	never := make(chan struct{})
	r, err := runtime.OpenLog(t.Context(), path, 0, never)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	done := make(chan error, 1)
	seen := make(chan string, 100)
	go func() {
		_, ended, err := runtime.Demux(r, writerFunc(func(p []byte) { seen <- string(p) }), io.Discard)
		if !ended {
			err = errors.Join(err, errors.New("no end mark"))
		}
		done <- err
	}()
	for _, s := range []string{"first", "second"} {
		if _, err := io.WriteString(w.Stdout(), s); err != nil {
			t.Fatal(err)
		}
		if got := <-seen; got != s {
			t.Errorf("got %q, want %q", got, s)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestFollowingEndsAfterTheJobWhenTheLoggerWasKilled(t *testing.T) {
	path, _, w := newLogFile(t)
	gone := make(chan struct{})
	close(gone)
	if _, err := io.WriteString(w.Stdout(), "last words"); err != nil {
		t.Fatal(err)
	}
	r, err := runtime.OpenLog(t.Context(), path, 0, gone)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	if _, ended, err := runtime.Demux(r, &out, io.Discard); ended || err != nil || out.String() != "last words" {
		t.Errorf("ended %v, %q: %v", ended, out.String(), err)
	}
}

func TestFollowingGoesOnFromAnOffset(t *testing.T) {
	path, f, w := newLogFile(t)
	_, _ = io.WriteString(w.Stdout(), "before")
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w.Stderr(), "after")
	_ = w.Close()
	for _, gone := range []chan struct{}{nil, make(chan struct{})} {
		r, err := runtime.OpenLog(t.Context(), path, info.Size(), gone)
		if err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if _, ended, err := runtime.Demux(r, &out, &errs); !ended || err != nil || out.Len() > 0 || errs.String() != "after" {
			t.Errorf("ended %v, %q %q: %v", ended, out.String(), errs.String(), err)
		}
		_ = r.Close()
	}
	if _, err := runtime.OpenLog(t.Context(), path, -1, nil); err == nil {
		t.Error("a negative offset is accepted")
	}
}

func TestTheEndOfTheContextUnblocksAFollower(t *testing.T) {
	path, _, _ := newLogFile(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r, err := runtime.OpenLog(ctx, path, 0, make(chan struct{}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Read(make([]byte, 8)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
