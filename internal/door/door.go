package door

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"haggle/internal/tunnel"
)

// Defaults and bounds.
const (
	defaultChannels = 64
	pathsPerChannel = 4   // those that the tunnel refuses, and says so to, included; one more is closed at once
	maxChannels     = 128 // of one SSH connection
	maxCommands     = 64  // of the whole door, shells and sftp servers included
	maxForwards     = 64  // ports and sockets that one SSH connection has the door listen on
	maxEnv          = 128
	maxEnvBytes     = 4 << 10
	handshakeTime   = 30 * time.Second
)

// Config says where a door listens and what it stands in.
type Config struct {
	// Address is the path of a unix socket, or @NAME for an abstract one.
	Address string
	// Idle is how long the door stays when no path is open; 0: it stays.
	Idle time.Duration
	// Root is the folder that stands for /work where a job has no file system of its own. Sessions then have the door's own
	// environment, and not that of the first process. "" in a container.
	Root string
	// MaxChannels is how many channels may be open at once; 0: 64. Of those without a path the oldest gives way.
	MaxChannels int
	// Patience is how long a channel is kept whose path broke; 0: as package tunnel has it.
	Patience time.Duration
	// Shell is the built-in shell as a program and its first arguments; nil: this program's.
	Shell []string
	// Ready is told "ready\n" once the door listens; nil: nobody is told.
	Ready io.Writer
	// Log is where the door tells what went wrong; nil: nowhere.
	Log *slog.Logger
}

// Door serves the channels of one job.
type Door struct {
	cfg      Config
	ssh      *ssh.ServerConfig
	server   *tunnel.Server
	commands chan struct{} // one place for each command that may run
	children children
	pusher   pusher
}

// New checks cfg and makes the door's host key, which lives as long as the door.
func New(cfg Config) (*Door, error) {
	if cfg.Address == "" || cfg.Address == "@" {
		return nil, errors.New("a door needs an address")
	}
	if cfg.Root != "" && !filepath.IsAbs(cfg.Root) {
		return nil, fmt.Errorf("root %q is not absolute", cfg.Root)
	}
	if cfg.MaxChannels <= 0 {
		cfg.MaxChannels = defaultChannels
	}
	if cfg.Shell == nil {
		cfg.Shell = ownShell()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	d := &Door{cfg: cfg, commands: make(chan struct{}, maxCommands)}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("make a host key: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, fmt.Errorf("make a host key: %w", err)
	}
	d.ssh = &ssh.ServerConfig{NoClientAuth: true, ServerVersion: "SSH-2.0-haggle"}
	d.ssh.AddHostKey(signer)
	d.server, err = tunnel.NewServer(tunnel.ServerConfig{
		Handlers: map[string]tunnel.Handler{
			tunnel.KindSSH:        d.serveSSH,
			tunnel.KindDial:       d.serveDial,
			tunnel.KindFiles:      d.serveFiles,
			tunnel.KindCheckpoint: d.serveCheckpoint,
			tunnel.KindPing:       d.servePing,
			KindPush:              d.servePush,
			KindPushStatus:        d.servePushStatus,
		},
		MaxChannels: cfg.MaxChannels,
		Patience:    cfg.Patience,
		Log:         cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Run listens and serves until ctx ends, whose error it returns, or the door was idle for as long as it may be: nil. It may be
// called once. Sessions that are open then are hung up.
func (d *Door) Run(ctx context.Context) error {
	l, err := listen(ctx, d.cfg.Address)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	// Paths end after the channels, so that the other sides learn why.
	outlast, end := context.WithCancel(context.WithoutCancel(ctx))
	d.children.adopt(ctx)
	go d.pusher.run(ctx, d)
	if d.cfg.Ready != nil {
		_, _ = io.WriteString(d.cfg.Ready, "ready\n")
	}

	var paths sync.WaitGroup
	defer func() {
		if err := d.server.Close(); err != nil {
			d.cfg.Log.Warn("close the door", "err", err)
		}
		end()
		paths.Wait()
	}()
	idle := newIdle(d.cfg.Idle, func() { cancel(errIdle) })
	defer idle.stop()
	free := make(chan struct{}, pathsPerChannel*d.cfg.MaxChannels)
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			if c != nil {
				_ = c.Close()
			}
			if errors.Is(context.Cause(ctx), errIdle) {
				return nil
			}
			return ctx.Err()
		}
		if err != nil {
			// Most often there is no file descriptor left, and there may be one soon.
			d.cfg.Log.Warn("accept a path", "err", err)
			pause(ctx, 100*time.Millisecond)
			continue
		}
		select {
		case free <- struct{}{}:
		default:
			_ = c.Close()
			continue
		}
		idle.enter()
		paths.Go(func() {
			defer func() { <-free; idle.leave() }()
			if err := d.server.Serve(outlast, c.(*net.UnixConn)); err != nil {
				d.cfg.Log.Debug("a path ended", "err", err)
			}
		})
	}
}

var errIdle = errors.New("idle")

// listen makes the socket. A file that a dead door left in its place is taken away; one that answers is not.
func listen(ctx context.Context, address string) (net.Listener, error) {
	if !strings.HasPrefix(address, "@") {
		if fi, err := os.Lstat(address); err == nil && fi.Mode()&os.ModeSocket != 0 {
			dialer := net.Dialer{Timeout: time.Second}
			if c, err := dialer.DialContext(ctx, "unix", address); err == nil {
				_ = c.Close()
				return nil, fmt.Errorf("listen on %s: another door is there", address)
			}
			_ = os.Remove(address)
		}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", address)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(address, "@") {
		if err := os.Chmod(address, 0o600); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

// idle calls gone when nobody was inside for a while.
type idle struct {
	mu     sync.Mutex
	inside int
	after  time.Duration
	timer  *time.Timer // nil where the door stays
}

func newIdle(after time.Duration, gone func()) *idle {
	i := &idle{after: after}
	if after > 0 {
		i.timer = time.AfterFunc(after, func() {
			i.mu.Lock()
			defer i.mu.Unlock()
			if i.inside == 0 {
				gone()
			}
		})
	}
	return i
}

func (i *idle) enter() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.inside++
	i.stop()
}

func (i *idle) leave() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.inside--
	if i.inside == 0 && i.timer != nil {
		i.timer.Reset(i.after)
	}
}

func (i *idle) stop() {
	if i.timer != nil {
		i.timer.Stop()
	}
}

// decode reads the arguments of a channel into v; no arguments are the zero ones.
func decode(args json.RawMessage, v any) error {
	if len(args) == 0 {
		return nil
	}
	if err := json.Unmarshal(args, v); err != nil {
		return refuse("bad_request", "the arguments are not what this kind of channel takes")
	}
	return nil
}

// refuse is an error that the renter's side is told.
func refuse(code, format string, args ...any) error {
	return &tunnel.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
