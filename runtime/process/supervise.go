package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	goruntime "runtime"
	"sync"
	"syscall"
	"time"

	"haggle/runtime"
)

const (
	// lookEvery is how soon an order is seen, and an end that no message tells.
	lookEvery = 25 * time.Millisecond
	// logTail is how long after the job's end a process that left the job's group may still write to the log.
	logTail = 2 * time.Second
	// killedCode is the exit code of a job that was killed, by the convention of runtime.Exit.
	killedCode = 137
	// reportOK is what the supervisor prints once the job runs. Anything else says why it does not.
	reportOK = "started"
)

// Supervise is the main function of a supervisor: it runs the job of a folder that an Engine has made, or a job's door, until
// that has ended. The first line that it prints on stdout says whether it has started; afterwards Supervise closes stdout. It must be a
// process of its own, see Config.Command. Signals that ask a process to end do not end it, as its end is the job's.
func Supervise(dir string) error {
	signals := make(chan os.Signal, 1)
	// Ignored signals would stay ignored in the job; caught ones do not.
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	// On Linux the job is killed with the thread that started it.
	goruntime.LockOSThread()
	if _, err := os.Stat(folder(dir).file(fileDoor)); err == nil {
		return superviseDoor(folder(dir))
	}
	s, err := start(folder(dir))
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return err
	}
	fmt.Fprintln(os.Stdout, reportOK)
	_ = os.Stdout.Close() // the engine may be gone
	err = s.attend()
	return errors.Join(err, s.lock.Close())
}

// supervisor is a job that runs.
type supervisor struct {
	folder folder
	lock   *os.File
	job    *exec.Cmd
	group  group
	log    *runtime.LogWriter
	file   *os.File // of the log
	pipes  []*os.File
	copies sync.WaitGroup
}

// start starts the job, once and for ever.
func start(f folder) (_ *supervisor, err error) {
	lock, err := lockFile(f.file(fileLock))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	r, err := f.glance()
	if err != nil {
		return nil, err
	}
	if r.started != nil || r.ended != nil {
		return nil, fmt.Errorf("the job has been started before")
	}
	s := &supervisor{folder: f, lock: lock}
	if s.file, err = os.OpenFile(f.log(), os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return nil, err
	}
	s.log = runtime.NewLogWriter(s.file, r.job.Log)
	if err := f.keepRoom(); err != nil {
		return nil, err
	}
	begun := started{At: time.Now()}
	if err := writeFile(f.file(fileStarted), begun); err != nil {
		return nil, err
	}
	if err := s.run(r.job); err != nil {
		return nil, errors.Join(err, os.Remove(f.file(fileStarted)))
	}
	begun.Pid = s.job.Process.Pid
	begun.Birth = birth(begun.Pid)
	if err := writeFile(f.file(fileStarted), begun); err != nil {
		s.group.kill()
		return nil, errors.Join(err, s.attend())
	}
	return s, nil
}

// run starts the process with its output going into the log.
func (s *supervisor) run(j job) error {
	s.job = &exec.Cmd{Path: j.Program, Args: j.Args, Env: j.Env, Dir: j.Dir, SysProcAttr: jobAttr()}
	out, err := s.pipe(s.log.Stdout())
	if err != nil {
		return err
	}
	defer out.Close()
	errs, err := s.pipe(s.log.Stderr())
	if err != nil {
		return err
	}
	defer errs.Close()
	s.job.Stdout, s.job.Stderr = out, errs
	if err := s.job.Start(); err != nil {
		return err
	}
	if s.group, err = newGroup(s.job.Process); err != nil {
		return errors.Join(err, s.job.Process.Kill())
	}
	return nil
}

// pipe returns the end that the job writes to; what comes out of the other goes to the log.
func (s *supervisor) pipe(to io.Writer) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.pipes = append(s.pipes, r)
	s.copies.Go(func() {
		// The log takes everything, and drops what a full disk does not: a job must not block because of it.
		_, _ = io.Copy(to, r)
	})
	return w, nil
}

// attend carries out orders until the job has ended, then writes down how.
func (s *supervisor) attend() error {
	dead := make(chan ended, 1)
	go func() {
		state, err := s.job.Process.Wait()
		end := ended{At: time.Now(), Lost: err != nil}
		if err == nil {
			end.Code = exitCode(state)
			end.CPUNanos = uint64(state.UserTime() + state.SystemTime())
		}
		dead <- end
	}()
	end := s.obey(dead)
	s.group.kill() // what the first process left behind
	s.group.close()
	s.drain()
	err := errors.Join(s.log.Close(), s.file.Close())
	return errors.Join(err, s.folder.lastWord(end))
}

// obey waits for the end and does what it is told meanwhile.
func (s *supervisor) obey(dead <-chan ended) ended {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var told order
	var deadline time.Time
	asked, killed := false, false
	for {
		select {
		case end := <-dead:
			return end
		case <-tick.C:
		}
		o, err := optional[order](s.folder.file(fileStop))
		if err != nil || o == nil {
			continue // being written on Windows; it is there at the next look
		}
		if !o.Kill.Equal(told.Kill) {
			// From here on the monotonic clock counts.
			told, deadline = *o, time.Now().Add(time.Until(o.Kill))
		}
		now := false
		if o.Ask && !asked {
			asked = true
			now = !s.group.ask()
		}
		if !killed && (now || !time.Now().Before(deadline)) {
			killed = true
			s.group.kill()
		}
	}
}

// drain waits for the rest of the output. A process that left the group may hold a pipe for ever.
func (s *supervisor) drain() {
	cut := time.AfterFunc(logTail, func() {
		for _, p := range s.pipes {
			_ = p.Close()
		}
	})
	s.copies.Wait()
	if !cut.Stop() {
		return
	}
	for _, p := range s.pipes {
		_ = p.Close()
	}
}
