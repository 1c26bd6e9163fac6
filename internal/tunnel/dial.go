package tunnel

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	defaultPatience = 15 * time.Minute
	greetTime       = 10 * time.Second // for the greetings of a path
	openTime        = 30 * time.Second // for reopening one
	firstBackoff    = 100 * time.Millisecond
	lastBackoff     = 5 * time.Second
	filesWindow     = 8 << 20
)

// Opener opens a new path to the other side; it keeps to ctx. While a channel is reopened, an error that is or wraps an *Error
// ends it, unless the code is CodeTooMany: any other is tried again.
type Opener func(ctx context.Context) (Conn, error)

// State tells of a channel's path.
type State struct {
	Connected bool
	Err       error // what broke the path; nil when connected
}

// Config says what to dial.
type Config struct {
	Open    Opener
	Request Request
	// Window is the most bytes written that the other side has not received, and the most received that nobody has read;
	// rounded up to a power of two between 16 KiB and MaxWindow. Default 1 MiB, for KindFiles 8 MiB.
	Window int
	// Patience is how long a channel waits for a new path; default 15 min.
	Patience time.Duration
	// Notify, where set, is told when the path broke and when there is a new one, in order; it must not wait. The first path
	// is not told.
	Notify func(State)
	Log    *slog.Logger // nil: discard
}

func (cfg Config) withDefaults() (Config, error) {
	if cfg.Open == nil {
		return cfg, errors.New("dial channel: no opener")
	}
	if len(cfg.Request.Args) > MaxArgs {
		return cfg, fmt.Errorf("dial channel: %d bytes of arguments are more than %d", len(cfg.Request.Args), MaxArgs)
	}
	if cfg.Window <= 0 {
		cfg.Window = defaultWindow
		if cfg.Request.Kind == KindFiles {
			cfg.Window = filesWindow
		}
	}
	if cfg.Patience <= 0 {
		cfg.Patience = defaultPatience
	}
	if cfg.Notify == nil {
		cfg.Notify = func(State) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return cfg, nil
}

// Dial opens a channel. ctx bounds the dialling only. The first path's error is returned at once; an *Error is the other
// side's. Close the channel.
func Dial(ctx context.Context, cfg Config) (*Channel, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	name := hex.EncodeToString(id[:])
	c := newChannel(ctx, name, cfg.Request.Kind, window(uint64(cfg.Window)), cfg.Log.With("channel", name[:8], "kind", cfg.Request.Kind))
	p, err := c.open(ctx, cfg)
	if err != nil {
		c.cancel()
		return nil, fmt.Errorf("dial %s channel: %w", cfg.Request.Kind, err)
	}
	go c.keep(p, cfg)
	return c, nil
}

// open opens a path, greets, and attaches it.
func (c *Channel) open(ctx context.Context, cfg Config) (*path, error) {
	conn, err := cfg.Open(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, greetTime, errors.New("no answer came in time"))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	p := newPath(conn)
	err = c.greet(p, cfg.Request)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return p, nil
}

func (c *Channel) greet(p *path, request Request) error {
	c.mu.Lock()
	h := hello{
		ID: c.id, Resume: c.try > 0, Try: c.try + 1, Window: c.window,
		Received: c.received(), Limit: c.rx.head + c.window,
	}
	if !h.Resume {
		h.Request = request
	}
	c.try++ // also where it fails: the other side may have heard of it
	c.toldReceived, c.told = h.Received, h.Limit
	c.mu.Unlock()
	text, err := appendGreeting(nil, h)
	if err != nil {
		return err
	}
	if _, err := p.conn.Write(text); err != nil {
		return fmt.Errorf("greet: %w", err)
	}
	var a answer
	if err := readGreeting(p.in, &a); err != nil {
		return err
	}
	if a.Error != nil {
		return asError(a.Error)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if why := c.resumable(a.Received); why != nil {
		return why
	}
	c.attach(p, a.Received, a.Limit)
	return nil
}

// keep carries the channel over one path after the other until it has ended.
func (c *Channel) keep(p *path, cfg Config) {
	pause := firstBackoff
	for {
		err := c.carry(p)
		if !c.needsPath() {
			return
		}
		c.log.Debug("path lost", "err", err)
		cfg.Notify(State{Err: err})
		if p.used {
			pause = firstBackoff
		}
		if p, pause, err = c.reopen(cfg, pause); err != nil {
			c.end(err, nil)
			return
		}
		c.log.Debug("path back")
		cfg.Notify(State{Connected: true})
	}
}

// needsPath says whether bytes still have to go either way.
func (c *Channel) needsPath() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ended && !c.peerStop
}

// reopen opens a path again and again until Patience is over. It waits for pause first, and tells the pause to use next
// where the new path brings nothing.
func (c *Channel) reopen(cfg Config, pause time.Duration) (*path, time.Duration, error) {
	ctx, cancel := context.WithTimeout(c.ctx, cfg.Patience)
	defer cancel()
	for {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		pause = min(2*pause, lastBackoff)
		attempt, cancel := context.WithTimeout(ctx, openTime)
		p, err := c.open(attempt, cfg)
		cancel()
		if err == nil {
			return p, pause, nil
		}
		c.log.Debug("reopen path", "err", err)
		var told *Error
		switch {
		case c.ctx.Err() != nil:
			return nil, 0, c.ctx.Err()
		case errors.As(err, &told) && told.Code != CodeTooMany:
			return nil, 0, told
		case ctx.Err() != nil:
			return nil, 0, fmt.Errorf("no path for %s: %w", cfg.Patience, err)
		}
	}
}
