package runtime

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// loggerWait is how long a logger waits for the task whose output it is to write. The task may still be in the making
// on a machine that is overloaded.
const loggerWait = time.Minute

// LoggerArg encodes what RunLogger needs beside its file descriptors.
func LoggerArg(path string, limit int64) string {
	return strconv.FormatInt(limit, 10) + ":" + path
}

// RunLogger is the main function of a logger: it writes the log of one job, whose output it reads from two FIFOs,
// until both end. Descriptors 3 and 4 name the FIFOs of stdout and stderr (O_PATH): RunLogger itself opens them, and the
// open returns on either side when the other has come. On descriptor 5 it writes a zero byte and closes it when it holds
// the log. arg comes from LoggerArg.
//
// It ignores SIGTERM and SIGINT, as its end is the job's; it makes itself leader of a session, so that no
// terminal and no group signal reaches it. The log file must not exist. While it runs it holds an exclusive lock
// (flock) on the file. When nobody opens the FIFOs for writing within a minute, it ends the empty log and fails.
func RunLogger(arg string) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	detachSession()
	size, path, ok := strings.Cut(arg, ":")
	limit, err := strconv.ParseInt(size, 10, 64)
	if !ok || err != nil || limit <= 0 || path == "" {
		return fmt.Errorf("logger: argument %q is not LIMIT:PATH", arg)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("logger: %w", err)
	}
	defer f.Close()
	if err := lockFile(f); err != nil {
		return fmt.Errorf("logger: lock %s: %w", path, err)
	}
	ready := os.NewFile(5, "ready")
	if _, err := ready.Write([]byte{0}); err != nil {
		return fmt.Errorf("logger: report ready: %w", err)
	}
	if err := ready.Close(); err != nil {
		return fmt.Errorf("logger: report ready: %w", err)
	}
	pipes, err := openPipes(loggerWait, "/proc/self/fd/3", "/proc/self/fd/4")
	if err != nil {
		return errors.Join(fmt.Errorf("logger: %w", err), NewLogWriter(f, limit).Close())
	}
	return copyLog(f, limit, pipes[0], pipes[1])
}

// openPipes opens FIFOs for reading, each of which waits for a writer. After wait it gives up, and leaves what still
// waits to the end of the process.
func openPipes(wait time.Duration, paths ...string) ([]io.Reader, error) {
	type opened struct {
		i   int
		f   *os.File
		err error
	}
	news := make(chan opened, len(paths))
	for i, path := range paths {
		go func() {
			f, err := os.Open(path)
			news <- opened{i, f, err}
		}()
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	pipes := make([]io.Reader, len(paths))
	for range paths {
		select {
		case o := <-news:
			if o.err != nil {
				return nil, fmt.Errorf("open output: %w", o.err)
			}
			pipes[o.i] = o.f
		case <-late.C:
			return nil, fmt.Errorf("nobody writes: %w", os.ErrDeadlineExceeded)
		}
	}
	return pipes, nil
}

// copyLog writes both streams to the log until they end. When the log cannot be written any more, it still
// drains them: a job must not block because the disk of its log is full.
func copyLog(w io.Writer, limit int64, stdout, stderr io.Reader) error {
	log := NewLogWriter(w, limit)
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() { errs[0] = drain(log.Stdout(), stdout) })
	both.Go(func() { errs[1] = drain(log.Stderr(), stderr) })
	both.Wait()
	return errors.Join(errs[0], errs[1], log.Close())
}

func drain(to io.Writer, from io.Reader) error {
	buf := make([]byte, MaxLogPayload)
	var failed error
	for {
		n, err := from.Read(buf)
		if n > 0 && failed == nil {
			_, failed = to.Write(buf[:n])
		}
		if errors.Is(err, io.EOF) {
			return failed
		}
		if err != nil {
			return errors.Join(failed, err)
		}
	}
}
