//go:build linux

package containerd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	maxDaemonLog  = 4 << 20
	stopTimeout   = 15 * time.Second
	aliveInterval = 200 * time.Millisecond
)

// daemon is the engine's own containerd. It is used by one goroutine at a time.
type daemon struct {
	cfg  Config
	log  *slog.Logger
	proc process // the running one; zero when none is known
}

func (d *daemon) pidFile() string { return filepath.Join(d.cfg.State, "containerd.pid") }
func (d *daemon) logFile() string { return filepath.Join(d.cfg.Root, "containerd.log") }

// ensure adopts the containerd that runs or starts one. The channel is closed when it dies or ctx ends.
func (d *daemon) ensure(ctx context.Context) (<-chan struct{}, error) {
	if p, ok := d.find(); ok {
		d.log.Info("containerd adopted", "pid", p.PID)
		d.proc = p
		if err := d.savePID(); err != nil {
			return nil, err
		}
		return p.watch(ctx), nil
	}
	if err := d.start(ctx); err != nil {
		return nil, fmt.Errorf("start containerd: %w", err)
	}
	d.log.Info("containerd started", "pid", d.proc.PID)
	return d.proc.watch(ctx), nil
}

// find returns our containerd if it runs: by the file that its start left, or as the one that listens on our
// socket, which no other program may use.
func (d *daemon) find() (process, bool) {
	if b, err := os.ReadFile(d.pidFile()); err == nil {
		var p process
		if json.Unmarshal(b, &p) == nil && p.alive() {
			return p, true
		}
	}
	pid := socketOwner(d.cfg.Socket)
	if pid == 0 {
		return process{}, false
	}
	return lookProcess(pid)
}

func (d *daemon) savePID() error {
	b, err := json.Marshal(d.proc)
	if err != nil {
		return fmt.Errorf("save pid of containerd: %w", err)
	}
	tmp := d.pidFile() + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("save pid of containerd: %w", err)
	}
	if err := os.Rename(tmp, d.pidFile()); err != nil {
		return fmt.Errorf("save pid of containerd: %w", err)
	}
	return nil
}

// start runs containerd so that it outlives us: in a session of its own, without a death signal.
func (d *daemon) start(ctx context.Context) error {
	for _, dir := range []string{d.cfg.Root, d.cfg.State, filepath.Dir(d.cfg.Socket)} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return err
		}
	}
	binary, major, err := d.binary(ctx)
	if err != nil {
		return err
	}
	config := filepath.Join(d.cfg.State, "containerd.toml")
	if err := os.WriteFile(config, []byte(daemonConfig(d.cfg, major)), 0o600); err != nil {
		return err
	}
	out, err := d.openLog()
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(binary, "--config", config) //nolint:noctx // it outlives this process
	cmd.Dir = "/"
	cmd.Env = daemonEnv()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	// Somebody must wait for it, or it stays a zombie when it dies before us.
	go func() { _ = cmd.Wait() }()
	p, ok := lookProcess(cmd.Process.Pid)
	if !ok {
		return errors.New("it ended at once" + d.lastWords())
	}
	d.proc = p
	return d.savePID()
}

func (d *daemon) binary(ctx context.Context) (path string, major int, err error) {
	if path = d.cfg.Binary; path == "" {
		if path, err = lookPath("containerd"); err != nil {
			return "", 0, err
		}
	}
	for _, name := range []string{"containerd-shim-runc-v2", "runc"} {
		if _, err := lookPath(name); err != nil {
			return "", 0, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", 0, fmt.Errorf("%s --version: %w", path, err)
	}
	major, err = majorVersion(string(out))
	return path, major, err
}

// openLog opens containerd's own log, which starts anew when it has grown large.
func (d *daemon) openLog() (*os.File, error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(d.logFile()); err == nil && info.Size() > maxDaemonLog {
		flags |= os.O_TRUNC
	}
	return os.OpenFile(d.logFile(), flags, 0o600)
}

// lastWords are the last lines of containerd's log, for an error message.
func (d *daemon) lastWords() string {
	if d == nil {
		return ""
	}
	f, err := os.Open(d.logFile())
	if err != nil {
		return ""
	}
	defer f.Close()
	const tail = 500
	if info, err := f.Stat(); err == nil && info.Size() > tail {
		if _, err := f.Seek(-tail, io.SeekEnd); err != nil {
			return ""
		}
	}
	b, err := io.ReadAll(io.LimitReader(f, tail))
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return ""
	}
	return ": " + string(bytes.TrimSpace(b))
}

// kill ends containerd at once; shims and jobs go on.
func (d *daemon) kill() {
	if err := d.proc.signal(syscall.SIGKILL); err != nil {
		d.log.Warn("containerd cannot be killed", "pid", d.proc.PID, "err", err)
	}
}

// shutdown ends containerd, politely at first, and returns when it is gone.
func (d *daemon) shutdown(ctx context.Context) error {
	p, ok := d.find()
	if !ok {
		return nil
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := p.signal(sig); err != nil {
			return fmt.Errorf("stop containerd: %w", err)
		}
		wait, cancel := context.WithTimeout(ctx, stopTimeout)
		<-p.watch(wait)
		cancel()
		if !p.alive() {
			if err := os.Remove(d.pidFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("stop containerd: %w", err)
			}
			return nil
		}
	}
	return fmt.Errorf("stop containerd: process %d does not end: %w", p.PID, ctx.Err())
}
