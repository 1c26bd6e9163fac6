package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"haggle/runtime"
)

// WorkEnv is the environment variable in which a job, and its door, find the folder that runtime.WorkDir is elsewhere.
const WorkEnv = "HAGGLE_WORK"

const (
	// visitIdle is how long the door to a stopped job's disk stays without a path.
	visitIdle = 30 * time.Second
	// doorPatience bounds the opening of a path: the end of a door before, and the start of the next one.
	doorPatience = 30 * time.Second
	// maxSocket is how long the path of a socket may be on every system, in bytes.
	maxSocket = 100
)

// The files of a door, in a folder of its own in the job's; see the package's documentation.
const (
	doorFolder = "door"
	fileDoor   = "door.json"
)

// doorPlan is what the engine decided of a door.
type doorPlan struct {
	Program []string // and its arguments
	Env     []string
	Dir     string
	Socket  string
	Temp    string // a folder outside the job's that goes with the door; "" for none
	Visit   bool   // to the disk of a stopped job: it leaves by itself
}

func (f folder) door() folder { return folder(f.file(doorFolder)) }

// Enter implements runtime.Runtime. The door is a process of the job's user beside the job; it is told with --root which folder
// /work is. One that leads to a stopped job leaves when nobody has used it for half a minute.
func (e *Engine) Enter(ctx context.Context, id string) (runtime.Conn, error) {
	if len(e.cfg.DoorProgram) == 0 {
		return nil, fmt.Errorf("enter job %.80s: no program for doors: %w", id, runtime.ErrUnsupported)
	}
	j, r, err := e.find(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("enter: %w", err)
	}
	if c, err := knock(ctx, j.folder, r.state); err == nil {
		return c, nil
	}
	c, err := e.open(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("enter job %s: %w", id, err)
	}
	return c, nil
}

// knock connects to the job's door, if there is one for this state of the job.
func knock(ctx context.Context, f folder, state runtime.State) (runtime.Conn, error) {
	var plan doorPlan
	if err := readFile(f.door().file(fileDoor), &plan); err != nil {
		return nil, err
	}
	if plan.Visit != (state == runtime.Stopped) {
		return nil, errors.New("the door is that of the job before its end")
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", plan.Socket)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

// open connects to the job's door, and starts one where there is none.
func (e *Engine) open(ctx context.Context, id string) (runtime.Conn, error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	late := time.NewTimer(doorPatience)
	defer late.Stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for started := false; ; {
		j, r, err := e.find(ctx, id)
		if err != nil {
			return nil, err
		}
		c, err := knock(ctx, j.folder, r.state)
		if err == nil {
			return c, nil
		}
		free, err := j.folder.doorless()
		switch {
		case err != nil:
			return nil, err
		case free && started:
			return nil, fmt.Errorf("its door ended as soon as it had begun: %w", runtime.ErrUnavailable)
		case free:
			if err := e.startDoor(ctx, j.folder, r); err != nil {
				return nil, err
			}
			started = true
			continue
		}
		select { // one is just beginning, or ending with the job
		case <-tick.C:
		case <-late.C:
			return nil, fmt.Errorf("its door does not answer: %w", runtime.ErrUnavailable)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// doorless reports that the job has no door now, and removes what an earlier one left.
func (f folder) doorless() (bool, error) {
	door := f.door()
	plan, err := optional[doorPlan](door.file(fileDoor))
	if err != nil || plan == nil {
		return err == nil, err
	}
	lock, err := lockFile(door.file(fileLock))
	if errors.Is(err, errLocked) {
		return false, nil // its supervisor lives
	}
	if err != nil {
		return false, err
	}
	begun, err := optional[started](door.file(fileStarted))
	if begun != nil {
		killGone(*begun)
	}
	if plan.Temp != "" {
		err = errors.Join(err, os.RemoveAll(plan.Temp))
	}
	if err = errors.Join(err, lock.Close()); err != nil {
		return false, err
	}
	return true, os.RemoveAll(string(door))
}

// closeDoor ends the job's door and returns when it has ended.
func (e *Engine) closeDoor(ctx context.Context, f folder) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for asked := false; ; {
		free, err := f.doorless()
		if err != nil || free {
			return err
		}
		if !asked {
			asked = true
			if err := writeFile(f.door().file(fileStop), order{Ask: true}); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// startDoor starts a door and returns when it listens. The job has none.
func (e *Engine) startDoor(ctx context.Context, f folder, r record) error {
	if _, err := os.Stat(r.job.Dir); err != nil {
		return fmt.Errorf("its disk is gone: %w", runtime.ErrNotFound)
	}
	door := f.door()
	if err := os.MkdirAll(string(door), 0o700); err != nil {
		return err
	}
	plan := doorPlan{
		Program: slices.Clone(e.cfg.DoorProgram), Env: r.job.Env, Dir: r.job.Dir, Socket: door.file("socket"), Visit: r.state == runtime.Stopped,
	}
	if plan.Visit {
		plan.Program = append(plan.Program, "--idle", visitIdle.String())
	}
	if len(plan.Socket) > maxSocket {
		var err error
		if plan.Temp, err = shortFolder(); err != nil {
			return err
		}
		plan.Socket = filepath.Join(plan.Temp, "socket")
	}
	plan.Program = append(plan.Program, "--root", plan.Dir, plan.Socket)
	err := writeFile(door.file(fileDoor), plan)
	if err != nil && plan.Temp != "" {
		return errors.Join(err, os.Remove(plan.Temp))
	}
	if err == nil {
		_, err = e.supervise(ctx, door)
	}
	if err != nil {
		return fmt.Errorf("open its door: %w", err)
	}
	return nil
}

// shortFolder makes a folder of this user alone whose path leaves room for a socket's name.
func shortFolder() (string, error) {
	for _, in := range []string{os.TempDir(), "/tmp"} {
		if len(in) > maxSocket-len("/haggle-door-4294967295/socket") {
			continue
		}
		return os.MkdirTemp(in, "haggle-door-")
	}
	return "", errors.New("no folder for temporary files has a path that is short enough for a socket")
}
