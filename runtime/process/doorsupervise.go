package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"haggle/runtime"
)

const (
	// doorReady is what a door prints once it listens, within doorBegin.
	doorReady = "ready\n"
	doorBegin = 10 * time.Second
	// doorGrace is what a door has to end what it began, before it is killed.
	doorGrace = 2 * time.Second
)

// doorkeeper is a door that is open.
type doorkeeper struct {
	folder folder
	plan   doorPlan
	lock   *os.File
	door   *exec.Cmd
	group  group
	dead   chan struct{} // closed when the door has ended
	stderr *os.File
}

// superviseDoor runs the door of a folder until the door has ended, which it must when the job ends or is removed. Afterwards
// stdout is closed. It is to a door what Supervise is to a job.
func superviseDoor(f folder) error {
	k, err := openDoor(f)
	if err != nil {
		fmt.Fprintln(os.Stdout, err)
		return err
	}
	fmt.Fprintln(os.Stdout, reportOK)
	_ = os.Stdout.Close() // the engine may be gone
	return errors.Join(k.attend(), k.lock.Close())
}

func openDoor(f folder) (_ *doorkeeper, err error) {
	k := &doorkeeper{folder: f, dead: make(chan struct{})}
	if k.lock, err = lockFile(f.file(fileLock)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.lock.Close())
		}
	}()
	if err := readFile(f.file(fileDoor), &k.plan); err != nil {
		return nil, err
	}
	if len(k.plan.Program) == 0 {
		return nil, errors.New("a door without a program")
	}
	if k.stderr, err = os.OpenFile(f.file("door.log"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return nil, err
	}
	ready, err := k.run()
	if err != nil {
		return nil, errors.Join(err, k.stderr.Close())
	}
	select {
	case err = <-ready:
	case <-time.After(doorBegin):
		err = errors.New("it does not say that it is ready")
	}
	if err == nil {
		pid := k.door.Process.Pid
		err = writeFile(f.file(fileStarted), started{At: time.Now(), Pid: pid, Birth: birth(pid)})
	}
	if err != nil {
		k.group.kill()
		return nil, errors.Join(err, k.cleanUp())
	}
	return k, nil
}

// run starts the door. What comes out of the channel is whether it got ready.
func (k *doorkeeper) run() (<-chan error, error) {
	path, err := exec.LookPath(k.plan.Program[0])
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	k.door = &exec.Cmd{
		Path: path, Args: k.plan.Program, Env: k.plan.Env, Dir: k.plan.Dir, Stdout: w, Stderr: k.stderr, SysProcAttr: jobAttr(),
	}
	err = k.door.Start()
	_ = w.Close() // the door's copy is what counts
	if err == nil {
		if k.group, err = newGroup(k.door.Process); err != nil {
			err = errors.Join(err, k.door.Process.Kill())
		}
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	go func() {
		_ = k.door.Wait() // how a door ends matters to nobody
		close(k.dead)
	}()
	ready := make(chan error, 1)
	go func() {
		defer r.Close()
		out := bufio.NewReader(io.LimitReader(r, maxReport))
		line, err := out.ReadString('\n')
		if err == nil && line != doorReady {
			err = fmt.Errorf("it says %.80q", line)
		}
		ready <- err
		_, _ = io.Copy(io.Discard, r) // a door that goes on to print must not block
	}()
	return ready, nil
}

// attend ends the door when the job ends or is removed, or when it is told to.
func (k *doorkeeper) attend() error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var grace <-chan time.Time
	for {
		select {
		case <-k.dead:
			return k.cleanUp()
		case <-grace:
			k.group.kill()
		case <-tick.C:
			if grace == nil && k.over() {
				if !k.group.ask() {
					k.group.kill()
				}
				grace = time.After(doorGrace)
			}
		}
	}
}

// over reports that the door has to go.
func (k *doorkeeper) over() bool {
	if _, err := os.Stat(k.folder.file(fileStop)); err == nil {
		return true
	}
	r, err := folder(filepath.Dir(string(k.folder))).read()
	if err != nil {
		return errors.Is(err, os.ErrNotExist) // removed; else it can be read the next time
	}
	return r.state == runtime.Stopped && !k.plan.Visit
}

// cleanUp waits for the door's end and removes what it leaves.
func (k *doorkeeper) cleanUp() error {
	<-k.dead
	k.group.kill() // what the door left behind
	k.group.close()
	if k.plan.Temp != "" {
		return errors.Join(k.stderr.Close(), os.RemoveAll(k.plan.Temp))
	}
	return errors.Join(k.stderr.Close(), remove(k.plan.Socket))
}

// remove deletes a file that may be missing.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
