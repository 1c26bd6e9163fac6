//go:build unix

package runtime

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func fifos(t *testing.T) (stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	stdout, stderr = filepath.Join(dir, "out"), filepath.Join(dir, "err")
	for _, path := range []string{stdout, stderr} {
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return stdout, stderr
}

func TestALoggerMeetsItsWritersAndEndsWithThem(t *testing.T) {
	outPath, errPath := fifos(t)
	written := make(chan error, 1)
	go func() {
		out, err := os.OpenFile(outPath, os.O_WRONLY, 0)
		if err != nil {
			written <- err
			return
		}
		_, werr := out.WriteString("early") // before the other is there
		errout, err := os.OpenFile(errPath, os.O_WRONLY, 0)
		if err != nil {
			written <- errors.Join(werr, err)
			return
		}
		written <- errors.Join(werr, out.Close(), errout.Close())
	}()
	pipes, err := openPipes(time.Minute, outPath, errPath)
	if err != nil {
		t.Fatal(err)
	}
	var log, stdout, stderr bytes.Buffer
	if err := errors.Join(copyLog(&log, 100, pipes[0], pipes[1]), <-written); err != nil {
		t.Fatal(err)
	}
	_, ended, err := Demux(&log, &stdout, &stderr)
	if err != nil || !ended || stdout.String() != "early" || stderr.Len() > 0 {
		t.Errorf("the log has %q and %q, ended: %v, %v", stdout.String(), stderr.String(), ended, err)
	}
}

func TestALoggerWhoseTaskNeverComesGivesUp(t *testing.T) {
	outPath, errPath := fifos(t)
	if _, err := openPipes(time.Millisecond, outPath, errPath); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	for _, path := range []string{outPath, errPath} { // lets the readers go that still wait
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestALoggerWithoutOutputFails(t *testing.T) {
	if _, err := openPipes(time.Minute, filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
