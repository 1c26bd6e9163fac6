//go:build linux

package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"haggle/runtime"
)

// Names for Config.Without.
const (
	// ProtectPeer lets in root and one other user, whatever the modes of files say.
	ProtectPeer = "helper-peer"
	// ProtectJobs bounds how many jobs there are.
	ProtectJobs = "helper-jobs"
	// ProtectImages bounds how many images there are, and how large.
	ProtectImages = "helper-images"
)

// Protections lists the names that Config.Without takes.
func Protections() []string { return []string{ProtectPeer, ProtectJobs, ProtectImages} }

// Power sets how much power cards may take. Errors are of package runtime's classes: ErrNoDevice, ErrUnsupported.
type Power interface {
	// SetPowerLimit bounds a card's power in milliwatts, within what the card allows; 0 is the card's own default. It returns the
	// limit that now holds.
	SetPowerLimit(ctx context.Context, uuid string, milliwatt int64) (now int64, err error)
}

// Config is what a Server is made from.
type Config struct {
	// Socket is an absolute path of at most 100 bytes in a folder of this user, which nobody else may write to.
	Socket string
	// UID is the user who may call, beside root and the user of this program; GID is the group of the socket.
	UID, GID int
	// Runtime is the engine that is served. The Server does not close it.
	Runtime runtime.Runtime
	// Ready returns when the engine answers; nil means that it always does.
	Ready func(ctx context.Context) error
	// Power sets the power limits of cards; nil means that it cannot be done.
	Power  Power
	Limits Limits
	Log    *slog.Logger // nil discards
	// Without names protections that are left out, for tests that prove that they matter; nothing else sets it.
	Without []string
}

func (c Config) without(name string) bool { return slices.Contains(c.Without, name) }

// Server serves an engine on a socket. Make it with NewServer.
type Server struct {
	cfg      Config
	handler  http.Handler
	listener net.Listener
	making   makings
	calls    chan struct{}
	imports  chan struct{} // one at a time: the sum of all images is asked before
	streams  chan struct{}
	watches  chan struct{}
	paths    chan struct{}
	ended    chan struct{}  // closed when Run ends
	busy     sync.WaitGroup // requests being answered
}

// NewServer makes a server. It does not listen yet.
func NewServer(cfg Config) (*Server, error) {
	if !filepath.IsAbs(cfg.Socket) || len(cfg.Socket) > 100 {
		return nil, fmt.Errorf("serve engine: socket %.200q is no absolute path of at most 100 bytes", cfg.Socket)
	}
	if cfg.Runtime == nil {
		return nil, errors.New("serve engine: none is given")
	}
	for _, name := range cfg.Without {
		if !slices.Contains(Protections(), name) {
			return nil, fmt.Errorf("serve engine: there is no protection %.80q", name)
		}
	}
	cfg.Limits = cfg.Limits.withDefaults()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Ready == nil {
		cfg.Ready = func(context.Context) error { return nil }
	}
	s := &Server{
		cfg: cfg, calls: make(chan struct{}, cfg.Limits.Calls), imports: make(chan struct{}, 1),
		streams: make(chan struct{}, cfg.Limits.Streams), watches: make(chan struct{}, cfg.Limits.Watches),
		paths: make(chan struct{}, cfg.Limits.Paths), ended: make(chan struct{}),
	}
	routes := s.routes()
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.busy.Add(1)
		defer s.busy.Done()
		routes.ServeHTTP(w, r)
	})
	return s, nil
}

// Listen takes the socket: from then on clients get through the door, and are answered once Run runs. The error is ErrInUse
// when another program answers on the socket; one that a dead program left is replaced. Calling it before Run is only needed
// to know that the socket is there.
func (s *Server) Listen(ctx context.Context) error {
	if s.listener != nil {
		return nil
	}
	l, err := listen(ctx, s.cfg)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.cfg.Socket, err)
	}
	s.listener = l
	return nil
}

// linger is for answers under way when the server ends.
const linger = 2 * time.Second

// Run serves until ctx ends, and removes the socket; no request is at work any more when it returns. Whoever waits for an answer
// then is told that the engine is unavailable. It returns nil when ctx ended it. A server runs once.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Listen(ctx); err != nil {
		return err
	}
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: bodyTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", s.cfg.Socket, errors.Join(err, server.Close()))
	case <-ctx.Done():
	}
	close(s.ended)
	defer s.busy.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), linger)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // a client that does not read must not hold the program
	}
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	if err != nil {
		return fmt.Errorf("stop serving %s: %w", s.cfg.Socket, err)
	}
	return nil
}
