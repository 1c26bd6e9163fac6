package tunnel

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	defaultChannels = 64
	refuseTime      = 2 * time.Second
	closeTime       = 5 * time.Second
)

// Handler serves one channel. The channel is closed when it returns; an error is told to the other side, an *Error as it is,
// after all that was written. ctx ends with the channel: a handler then returns soon.
type Handler func(ctx context.Context, args json.RawMessage, c *Channel) error

// ServerConfig says what a server serves.
type ServerConfig struct {
	Handlers    map[string]Handler // by kind
	MaxChannels int                // at once; default 64. A new one takes the place of the one that has been without a path longest
	Patience    time.Duration      // how long a channel without a path is kept; default 15 min
	Log         *slog.Logger       // nil: discard
}

// Server is the side of a tunnel that serves channels. It is safe for concurrent use.
type Server struct {
	cfg ServerConfig

	mu       sync.Mutex
	closed   bool
	paths    int                // being served
	greeting map[*path]struct{} // paths whose hello is awaited
	handlers int                // running
	channels map[string]*entry
	running  sync.WaitGroup // handlers and paths
}

// NewServer makes a server. Close it.
func NewServer(cfg ServerConfig) (*Server, error) {
	for kind, handler := range cfg.Handlers {
		if kind == "" || handler == nil {
			return nil, fmt.Errorf("serve channels: no handler for kind %q", kind)
		}
	}
	if cfg.MaxChannels <= 0 {
		cfg.MaxChannels = defaultChannels
	}
	if cfg.Patience <= 0 {
		cfg.Patience = defaultPatience
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: cfg, greeting: make(map[*path]struct{}), channels: make(map[string]*entry)}, nil
}

// Serve serves one path from its first byte to its end, and closes it. It returns when the path has ended, nil after a clean
// end; the path's channel lives on. The end of ctx ends the path only.
func (s *Server) Serve(ctx context.Context, conn Conn) error {
	p := newPath(conn)
	if err := s.enter(p); err != nil {
		refuse(conn, err)
		return err
	}
	defer s.leave()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	h, err := s.readHello(p)
	if err != nil {
		refuse(conn, &Error{Code: CodeBadRequest, Message: err.Error()})
		return err
	}
	e, why := s.find(ctx, h)
	if why != nil {
		refuse(conn, why)
		return why
	}
	defer s.detach(e)
	if why := e.channel.adopt(p, h); why != nil {
		refuse(conn, why)
		return why
	}
	if !h.Resume {
		s.start(e, h.Request)
	}
	err = e.channel.carry(p)
	if e.channel.needsPath() {
		return err
	}
	return nil
}

// enter counts a path in.
func (s *Server) enter(p *path) *Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errServerClosed
	}
	if s.paths >= 2*s.cfg.MaxChannels {
		return &Error{Code: CodeTooMany, Message: fmt.Sprintf("%d paths are open", s.paths)}
	}
	s.paths++
	s.greeting[p] = struct{}{}
	s.running.Add(1)
	return nil
}

var errServerClosed = &Error{Code: CodeGone, Message: "the door is closed"}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths--
	s.running.Done()
}

// refuse tells why, and closes the path.
func refuse(conn Conn, why *Error) {
	timer := time.AfterFunc(refuseTime, func() { _ = conn.Close() })
	defer timer.Stop()
	if text, err := appendGreeting(nil, answer{Error: why}); err == nil {
		_, _ = conn.Write(text)
	}
	_ = conn.CloseWrite()
	_ = conn.Close()
}

func (s *Server) readHello(p *path) (hello, error) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.greeting, p)
	}()
	timer := time.AfterFunc(greetTime, func() { _ = p.conn.Close() })
	defer timer.Stop()
	var h hello
	if err := readGreeting(p.in, &h); err != nil {
		return h, err
	}
	return h, h.check()
}

// start runs the channel's handler. The entry stays until all that it wrote is delivered.
func (s *Server) start(e *entry, request Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers++
	s.running.Go(func() {
		err := s.cfg.Handlers[request.Kind](e.channel.ctx, request.Args, e.channel)
		s.mu.Lock()
		s.handlers--
		s.mu.Unlock()
		var why *Error
		if err != nil {
			e.channel.log.Debug("channel failed", "err", err)
			why = asError(err)
		}
		e.channel.shut(why)
	})
	context.AfterFunc(e.channel.ctx, func() { s.drop(e) })
}

// Close ends all channels and waits for the handlers and paths, 5 s at most; then it says that some still run.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	channels := make([]*Channel, 0, len(s.channels))
	for _, e := range s.channels {
		channels = append(channels, e.channel)
	}
	for p := range s.greeting {
		_ = p.conn.Close()
	}
	s.mu.Unlock()
	for _, c := range channels {
		c.end(errServerClosed, errServerClosed)
	}
	over := make(chan struct{})
	go func() { s.running.Wait(); close(over) }()
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-over:
		return nil
	case <-timer.C:
		return fmt.Errorf("close server: some channels still run after %s", closeTime)
	}
}
