//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// Where a job's log is, and the FIFOs through which its output comes while the job is made. The FIFOs' names are
// not needed any more once both sides have opened them.
const (
	logSuffix    = ".log"
	stdoutSuffix = ".log.out"
	stderrSuffix = ".log.err"
)

func (e *Engine) logPath(id string) string { return filepath.Join(e.cfg.LogDir, id+logSuffix) }

func (e *Engine) pipePaths(id string) [2]string {
	base := filepath.Join(e.cfg.LogDir, id)
	return [2]string{base + stdoutSuffix, base + stderrSuffix}
}

// removeFiles removes a job's log and FIFOs, and kills a logger that still has to do with them. None is no error.
func (e *Engine) removeFiles(ctx context.Context, id string) error {
	pipes := e.pipePaths(id)
	return errors.Join(e.endLogger(ctx, id), removeAll(e.logPath(id), pipes[0], pipes[1]))
}

func removeAll(paths ...string) error {
	var errs []error
	for _, p := range paths {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// logger is the process that will write a job's log, as seen by the creation of the job. It starts beside that, because
// it takes its time, and meets the shim at the FIFOs. Afterwards nothing here has to do with it.
type logger struct {
	cmd   *exec.Cmd
	ready chan error    // gets one value: nil when the logger holds the log
	gone  chan struct{} // closed when the process has ended

	mu    sync.Mutex
	names []*os.File // the FIFOs as O_PATH, which does not count as open
	ends  []*os.File // set by letGo
}

// startLogger makes the FIFOs and starts the logger of a job that is being made. release must be called on the result.
func (e *Engine) startLogger(ctx context.Context, id string, limit int64) (*logger, error) {
	// A log without a container is of an older job that was not removed whole.
	if err := e.removeFiles(ctx, id); err != nil {
		return nil, fmt.Errorf("make log of job %s: %w", id, err)
	}
	l := &logger{ready: make(chan error, 1), gone: make(chan struct{})}
	for _, path := range e.pipePaths(id) {
		if err := l.makePipe(path); err != nil {
			l.release()
			return nil, fmt.Errorf("make output of job %s: %w", id, err)
		}
	}
	said, say, err := os.Pipe()
	if err != nil {
		l.release()
		return nil, fmt.Errorf("start logger of job %s: %w", id, err)
	}
	l.cmd = exec.Command(e.cfg.LoggerPath, e.cfg.LoggerArgs[0], runtime.LoggerArg(e.logPath(id), limit)) //nolint:noctx // it outlives this process
	l.cmd.Dir = "/"
	l.cmd.Env = []string{"GOMAXPROCS=1"} // it does little, and its start must not take the cores from the shim
	l.cmd.Stderr = say                   // its first words are the reason when it does not become ready
	// It gets the reading end too: when we are killed before it says that it is ready, the word must not fail, or it would end
	// and leave the shim waiting for somebody who reads.
	l.cmd.ExtraFiles = []*os.File{l.names[0], l.names[1], say, said}
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = l.cmd.Start()
	_ = say.Close()
	if err != nil {
		_ = said.Close()
		l.release()
		return nil, fmt.Errorf("start logger of job %s: %w", id, err)
	}
	go l.listen(said)
	go l.reap()
	return l, nil
}

func (l *logger) makePipe(path string) error {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return &fs.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	f, err := os.OpenFile(path, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	l.names = append(l.names, f)
	return nil
}

// listen waits for the word of a logger that it is ready, or for the reason why not.
func (l *logger) listen(said *os.File) {
	defer said.Close()
	var words [512]byte
	n, err := said.Read(words[:])
	switch {
	case n > 0 && words[0] == 0:
		l.ready <- nil
	case n > 0:
		l.ready <- fmt.Errorf("the logger says %q", words[:n])
	case errors.Is(err, io.EOF):
		l.ready <- errors.New("the logger ended at its start")
	default:
		l.ready <- fmt.Errorf("wait for the logger: %w", err)
	}
}

// reap waits for the process, or it would stay a zombie.
func (l *logger) reap() {
	_ = l.cmd.Wait()
	l.letGo()
	close(l.gone)
}

// letGo opens the FIFOs in place of a logger that has ended, until release: the shim would wait for a reader in vain.
func (l *logger) letGo() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.names {
		f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", name.Fd()), os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			l.ends = append(l.ends, f)
		}
	}
}

// check reports whether the logger took over, after the shim has opened its side.
func (l *logger) check(ctx context.Context) error {
	select {
	case err := <-l.ready:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	if isClosed(l.gone) {
		return errors.New("the logger ended before its job began")
	}
	return nil
}

// abandon kills the logger of a job that will not be. A shim that waits for it goes on.
func (l *logger) abandon() {
	_ = l.cmd.Process.Kill() // it has ended already, or does now
	<-l.gone
}

// release closes all that was opened here. The logger goes on.
func (l *logger) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range append(l.names, l.ends...) {
		_ = f.Close() // nothing was written
	}
	l.names, l.ends = nil, nil
}

// awaitLoggerEnd returns when the logger has let go of a job's log, or after loggerGrace. The output of the job must have
// ended.
func (e *Engine) awaitLoggerEnd(ctx context.Context, id string) error {
	pause := time.Millisecond
	for deadline := time.Now().Add(loggerGrace); loggerHolds(e.logPath(id)) && time.Now().Before(deadline); {
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, 20*time.Millisecond)
	}
	return ctx.Err()
}
