package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"haggle/runtime"
)

// maxFile bounds what is read of a file of ours: a job could have written to it.
const maxFile = 16 << 20

// errLocked: another process holds the lock.
var errLocked = errors.New("locked by another process")

// folder is the folder of one job.
type folder string

func (f folder) file(name string) string { return filepath.Join(string(f), name) }

func (f folder) log() string { return f.file("log") }

// The files of a job, see the package's documentation.
const (
	fileJob     = "job.json"
	fileLock    = "lock"
	fileStarted = "started.json"
	fileStop    = "stop.json"
	fileEnded   = "ended.json"
	fileRoom    = "ended.room"
	workFolder  = "work"
)

// lastWordSize is the room that is kept for a job's last word, in bytes.
const lastWordSize = 512

// job is what the engine decided at the job's creation.
type job struct {
	Hash    string // of the spec
	Labels  map[string]string
	Program string   // path of the file to run
	Args    []string // with the program's own name first
	Env     []string
	Dir     string
	From    string `json:",omitempty"` // the job whose work folder becomes this one's
	Log     int64  // bytes
}

// started is the order to start, before Pid is known, and the running process afterwards.
type started struct {
	At    time.Time
	Pid   int
	Birth string // tells the process from a later one of the same id; "" where the system does not say
}

// order is what the supervisor is to do.
type order struct {
	Ask  bool      // ask the job to end
	Kill time.Time // end it then
}

// ended is how a job ended.
type ended struct {
	At       time.Time
	Code     int
	Lost     bool // nobody saw the end; nothing else is known
	CPUNanos uint64
}

// record is all that is known of a job.
type record struct {
	job     job
	started *started
	ended   *ended
	state   runtime.State
}

// glance returns what the files say. It takes a job that was started and has no end yet for running.
func (f folder) glance() (record, error) {
	var r record
	err := readFile(f.file(fileJob), &r.job)
	if err == nil {
		r.started, err = optional[started](f.file(fileStarted))
	}
	if err == nil {
		r.ended, err = optional[ended](f.file(fileEnded))
	}
	switch {
	case r.ended != nil:
		r.state = runtime.Stopped
	case r.started != nil:
		r.state = runtime.Running
	default:
		r.state = runtime.Created
	}
	return r, err
}

// read returns how the job is. A job whose supervisor is gone without a last word is noted as lost.
func (f folder) read() (record, error) {
	r, err := f.glance()
	if err != nil || r.state != runtime.Running {
		return r, err
	}
	lock, err := lockFile(f.file(fileLock))
	if errors.Is(err, errLocked) {
		return r, nil // its supervisor lives
	}
	if err != nil {
		return r, err
	}
	// It may have written its last word, or taken back the order to start, since: look again before calling the job lost.
	if r, err = f.glance(); err == nil && r.state == runtime.Running {
		killGone(*r.started)
		r.ended, r.state = &ended{Lost: true}, runtime.Stopped
		err = f.lastWord(*r.ended)
	}
	return r, errors.Join(err, lock.Close())
}

// optional reads a file that may be missing.
func optional[T any](path string) (*T, error) {
	var v T
	err := readFile(path, &v)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &v, nil
}

func readFile(path string, into any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// writeFile writes a file so that a reader, and a machine that loses its power, has the old one or the new one whole.
func writeFile(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".write-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = replace(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}

// keepRoom takes the room on the disk that a job's last word will need: how a job ended must not be lost because the disk is
// full by then, often filled by the job itself.
func (f folder) keepRoom() error {
	return writeFile(f.file(fileRoom), json.RawMessage(`"`+strings.Repeat(" ", lastWordSize-2)+`"`))
}

// lastWord writes down how a job ended, where there is room or where room was kept.
func (f folder) lastWord(end ended) error {
	err := writeFile(f.file(fileEnded), end)
	if err == nil {
		return nil
	}
	text, bad := json.Marshal(end)
	room, none := os.OpenFile(f.file(fileRoom), os.O_WRONLY, 0)
	if bad != nil || none != nil || len(text) > lastWordSize {
		return errors.Join(err, bad, none)
	}
	text = append(text, bytes.Repeat([]byte(" "), lastWordSize-len(text))...)
	_, err = room.WriteAt(text, 0)
	if err = errors.Join(err, room.Sync(), room.Close()); err != nil {
		return err
	}
	return replace(room.Name(), f.file(fileEnded))
}

// removeAll deletes a folder that a job has written to. Folders that the job has closed to its own user are opened first.
func removeAll(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) // RemoveAll says what is in the way
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(path))
}
