//go:build linux

package containerd

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
	"haggle/runtime/archive"
)

const (
	// checkPrefix starts the ids of the engine's own jobs, which nobody else sees and nobody else can make.
	checkPrefix  = "haggle-check-"
	checkImage   = "haggle/check"
	checkTimeout = 5 * time.Minute
	// checkMark is a variable of that job which must reach nothing outside it.
	checkMark = "HAGGLE_CHECK_MARK"
	// checkPids is less than what the program tries to make.
	checkPids   = 200
	checkMemory = 256 << 20
	checkDisk   = 64 << 20
	checkLog    = 1 << 20
	checkLines  = 256
)

func isCheck(id string) bool { return strings.HasPrefix(id, checkPrefix) }

// checks keeps what the last check found. The zero value is ready.
type checks struct {
	turn sync.Mutex // one check at a time

	mu      sync.Mutex
	found   []runtime.Protection
	current string // the id of the job that runs now
	begun   bool   // the first check was begun
}

func (c *checks) running() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// begin starts the first check in the background, once.
func (e *Engine) beginCheck() {
	if len(e.cfg.CheckProgram) == 0 {
		return
	}
	e.check.mu.Lock()
	defer e.check.mu.Unlock()
	if e.check.begun {
		return
	}
	e.check.begun = true
	e.bg.Go(func() {
		e.Check(e.ctx)
		e.hub.tell(runtime.Event{Kind: runtime.EventEngine, At: time.Now()})
	})
}

// checked returns what the last check found; nothing before the first one is through. EventEngine tells when it is.
func (e *Engine) checked() []runtime.Protection {
	e.check.mu.Lock()
	defer e.check.mu.Unlock()
	return e.check.found
}

// isolationOf is what an engine may promise after a check.
func isolationOf(found []runtime.Protection) string {
	for _, p := range found {
		if !p.Holds {
			return runtime.IsolationRunc
		}
	}
	if len(found) == 0 {
		return runtime.IsolationRunc
	}
	return runtime.IsolationUserns
}

// Check tries out what is between a job and the machine, with a job like any other that runs Config.CheckProgram, and returns
// what was seen, which Probe repeats from then on. Without such a program it returns nil.
func (e *Engine) Check(ctx context.Context) []runtime.Protection {
	if len(e.cfg.CheckProgram) == 0 {
		return nil
	}
	e.check.turn.Lock()
	defer e.check.turn.Unlock()
	ctx, cancel := context.WithTimeout(e.within(ctx), checkTimeout)
	defer cancel()
	found, err := e.tryOut(ctx)
	if err != nil {
		found = append(found, runtime.Protection{Name: "self-check", Found: "it could not be made to the end: " + err.Error()})
	}
	for i, p := range found {
		if !p.Holds {
			found[i].Fix = remedy(p.Name)
		}
	}
	e.check.mu.Lock()
	defer e.check.mu.Unlock()
	e.check.found = found
	return found
}

func (e *Engine) tryOut(ctx context.Context) (found []runtime.Protection, err error) {
	image, err := e.importCheck(ctx)
	if err != nil {
		return nil, err
	}
	spec := runtime.Spec{
		ID: checkPrefix + strings.ToLower(rand.Text()), Image: image, Args: e.cfg.CheckProgram[1:], Env: []string{checkMark + "=1"},
		Pids: checkPids, MemoryBytes: checkMemory, DiskBytes: checkDisk, LogLimitBytes: checkLog,
		Secrets: map[string][]byte{"check": []byte("check")},
	}
	if e.cfg.Networks != nil {
		spec.Network.Mode = runtime.NetworkInternet
	}
	e.setChecking(spec.ID)
	defer e.setChecking("")
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		err = errors.Join(err, e.Remove(ctx, spec.ID))
	}()
	if err := e.makeJob(ctx, spec); err != nil {
		return nil, err
	}
	found = e.lookFromOutside(ctx, spec)
	if err := e.Start(ctx, spec.ID); err != nil {
		return found, err
	}
	log, err := e.Log(ctx, spec.ID, 0, true)
	if err != nil {
		return found, err
	}
	defer log.Close()
	var out bytes.Buffer
	if _, _, err := runtime.Demux(log, &out, io.Discard); err != nil {
		return found, err
	}
	inside, err := parseCheck(&out)
	return merge(found, inside), err
}

func (e *Engine) setChecking(id string) {
	e.check.mu.Lock()
	defer e.check.mu.Unlock()
	e.check.current = id
}

// importCheck makes an image of the program.
func (e *Engine) importCheck(ctx context.Context) (string, error) {
	program := e.cfg.CheckProgram[0]
	info, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	r, w := io.Pipe()
	go func() {
		_, err := archive.Write(w, archive.Image{
			Files: []archive.File{{
				Path: "/check", Mode: 0o755, Size: info.Size(), Open: func() (io.ReadCloser, error) { return os.Open(program) },
			}},
			Entrypoint: []string{"/check"},
		})
		_ = w.CloseWithError(err) // which goes to the reader
	}()
	defer r.Close()
	img, err := e.Import(ctx, checkImage, r)
	return img.Digest, err
}

// parseCheck reads what the program printed: one JSON object in a line for each thing that it tried.
func parseCheck(r io.Reader) ([]runtime.Protection, error) {
	var all []runtime.Protection
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var p struct {
			Name, Found string
			Holds       bool
		}
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil || p.Name == "" || len(all) == checkLines {
			return all, fmt.Errorf("the program inside says %.200q", lines.Text())
		}
		all = append(all, runtime.Protection{Name: p.Name, Holds: p.Holds, Found: p.Found})
	}
	if len(all) == 0 {
		return nil, errors.Join(errors.New("the program inside says nothing"), lines.Err())
	}
	return all, lines.Err()
}

// merge puts what was seen from both sides together: a protection holds when both saw it hold.
func merge(outside, inside []runtime.Protection) []runtime.Protection {
	all := append([]runtime.Protection(nil), outside...)
	for _, p := range inside {
		known := false
		for i, o := range all {
			if known = o.Name == p.Name; known {
				all[i].Holds = o.Holds && p.Holds
				all[i].Found = o.Found + "; " + p.Found
				break
			}
		}
		if !known {
			all = append(all, p)
		}
	}
	return all
}

// hookFile is where the hook of a check writes its environment. The hook runs with the rights of the job.
func (e *Engine) hookFile(id string) string { return filepath.Join(e.jobDir(id), "hook") }

// addCheckHook gives the engine's own job a hook that tells what it sees of the job.
func (e *Engine) addCheckHook(s *specs.Spec, id string) error {
	path := e.hookFile(id)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o666); err != nil {
		return err
	}
	s.Hooks = &specs.Hooks{CreateContainer: []specs.Hook{{
		Path: "/bin/sh", Args: []string{"sh", "-c", "env >" + path}, Timeout: new(10),
	}}}
	return nil
}
