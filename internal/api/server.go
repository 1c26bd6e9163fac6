package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// Bounds of what a client may send and how long it may take.
const (
	maxBody       = 256 << 10 // a bid with its secrets
	maxHeader     = 16 << 10
	headerTimeout = 5 * time.Second
	idleTimeout   = time.Minute
	linger        = 2 * time.Second // for answers under way when the server ends
)

// VersionHeader is the header of every answer that tells the server's version.
const VersionHeader = "Haggle-Version"

// Config says where and how a server serves.
type Config struct {
	Socket      string        // path, at most about 100 bytes; its folder is made when missing
	Version     string        // of the program
	Group       string        // whose members may use the socket too; empty for nobody but this user and root
	Heartbeat   time.Duration // of event streams; 0 means 15 s
	BodyTimeout time.Duration // for the whole body of a request; 0 means 5 s
	Log         *slog.Logger  // nil discards
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = 15 * time.Second
	}
	if c.BodyTimeout == 0 {
		c.BodyTimeout = 5 * time.Second
	}
	return c
}

// Server serves one program's API. Make it with NewAgentServer or NewRigServer.
type Server struct {
	config   Config
	handler  http.Handler
	listener net.Listener
	tunnels  *tunnels     // nil for a rig
	active   atomic.Int64 // requests that are being answered
	used     atomic.Int64 // when the last one ended, Unix nanoseconds
}

// LastUse returns when a client was last served: now, while one is; the zero time if none ever was.
func (s *Server) LastUse() time.Time {
	if s.active.Load() > 0 {
		return time.Now()
	}
	if at := s.used.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// serve answers a request and notes that the server is in use.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.active.Add(1)
	defer func() {
		s.used.Store(time.Now().UnixNano())
		s.active.Add(-1)
	}()
	s.handler.ServeHTTP(w, r)
}

// NewAgentServer makes the server of an agent. It does not listen yet.
func NewAgentServer(c Config, a Agent) *Server {
	c = c.withDefaults()
	mux := http.NewServeMux()
	api := describe(mux, c, "haggle")
	agentRoutes(api, c, a)
	paths := tunnelRoute(mux, api, c, a)
	forget(api)
	return &Server{config: c, handler: c.guard(mux), tunnels: paths}
}

// NewRigServer makes the server of a rig. It does not listen yet.
func NewRigServer(c Config, r Rig) *Server {
	c = c.withDefaults()
	mux := http.NewServeMux()
	api := describe(mux, c, "haggled")
	rigRoutes(api, c, r)
	forget(api)
	return &Server{config: c, handler: c.guard(mux)}
}

// Listen takes the socket: from then on clients get through the door, and are answered once Run runs. The error is ErrInUse
// when another program answers on the socket; one that a dead program left is replaced. Calling it before Run is only needed
// to know that the socket is there.
func (s *Server) Listen() error {
	if s.listener != nil {
		return nil
	}
	l, err := listen(s.config)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.config.Socket, err)
	}
	s.listener = l
	return nil
}

// Run serves until ctx ends, then gives running answers two seconds, and removes the socket. It returns nil when ctx ended
// it. A server runs once.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Listen(); err != nil {
		return err
	}
	server := &http.Server{
		Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(s.config.Log.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", s.config.Socket, errors.Join(err, server.Close()))
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), linger)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // a client that does not read must not hold the program
	}
	if s.tunnels != nil {
		s.tunnels.group.Wait() // the end of ctx has ended them
	}
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	if err != nil {
		return fmt.Errorf("stop serving %s: %w", s.config.Socket, err)
	}
	return nil
}

// guard is what every request passes first: bounds, the version header, and answers to paths that nobody has.
func (c Config) guard(mux *http.ServeMux) http.Handler {
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, http.StatusNotFound, market.NewError(market.CodeUnexpected, "got", r.Method+" "+r.URL.Path))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			fault := recover()
			if fault == nil {
				return
			}
			if err, ok := fault.(error); (!ok || !errors.Is(err, http.ErrAbortHandler)) && r.Context().Err() == nil {
				c.Log.Error("request panicked", "op", r.Method+" "+r.URL.Path, "err", fmt.Sprint(fault))
			}
			panic(http.ErrAbortHandler) // the client sees a broken answer, never half of one as a whole
		}()
		w.Header().Set(VersionHeader, c.Version)
		if err := c.readBody(w, r); err != nil {
			status := http.StatusBadRequest
			if market.CodeOf(err) == market.CodeTooLarge {
				status = http.StatusRequestEntityTooLarge
			}
			writeProblem(w, status, err)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// readBody takes the whole body before anything looks at it. The deadline is lifted afterwards: left in place it would end
// the request's context while a long answer is made.
func (c Config) readBody(w http.ResponseWriter, r *http.Request) error {
	if r.Body == nil || r.ContentLength == 0 {
		return nil
	}
	door := http.NewResponseController(w)
	if err := door.SetReadDeadline(time.Now().Add(c.BodyTimeout)); err != nil {
		return fmt.Errorf("bound the body's time: %w", err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return tooLarge()
	case err != nil:
		return market.NewError(market.CodeBadRequest, "why", "the request's body did not arrive whole")
	}
	if err := door.SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("lift the body's time: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

func writeProblem(w http.ResponseWriter, status int, err error) {
	text, jsonErr := json.Marshal(view.ProblemOf(err))
	if jsonErr != nil {
		panic(jsonErr) // strings only
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may be gone; nobody is left to tell
}
