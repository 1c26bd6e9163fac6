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
)

// LoggerArg encodes what RunLogger needs as the one argument that containerd's binary loggers can be handed.
func LoggerArg(path string, limit int64) string {
	return strconv.FormatInt(limit, 10) + ":" + path
}

// RunLogger is the main function of a logger: it writes the log of one job, whose output it reads from the file
// descriptors 3 and 4, until both end. Descriptor 5 tells the caller that it is ready. arg comes from LoggerArg.
//
// It ignores SIGTERM and SIGINT, as its end is the job's; it makes itself leader of a session, so that no
// terminal and no group signal reaches it. The log file must not exist. While it runs it holds an exclusive lock
// (flock) on the file.
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
	// The byte and the close both mean ready, to different generations of the shim.
	ready := os.NewFile(5, "ready")
	if _, err := ready.Write([]byte{0}); err != nil {
		return fmt.Errorf("logger: report ready: %w", err)
	}
	if err := ready.Close(); err != nil {
		return fmt.Errorf("logger: report ready: %w", err)
	}
	return copyLog(f, limit, os.NewFile(3, "stdout"), os.NewFile(4, "stderr"))
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
