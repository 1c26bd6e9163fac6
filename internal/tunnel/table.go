package tunnel

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// entry is a channel in a server's table. The server's lock guards it.
type entry struct {
	channel  *Channel
	paths    int // that carry it or are about to
	detached time.Time
	patience *time.Timer
}

// find returns the hello's channel with one path counted, or makes it.
func (s *Server) find(ctx context.Context, h hello) (*entry, *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errServerClosed
	}
	e, known := s.channels[h.ID]
	switch {
	case known != h.Resume && known:
		return nil, &Error{Code: CodeBadRequest, Message: "the channel exists"}
	case known != h.Resume:
		return nil, &Error{Code: CodeGone, Message: "the channel is no longer held"}
	case known:
		e.paths++
		if e.patience != nil {
			e.patience.Stop()
		}
		return e, nil
	}
	if s.cfg.Handlers[h.Request.Kind] == nil {
		return nil, &Error{Code: CodeUnknownKind, Message: fmt.Sprintf("channels of kind %q are not served", h.Request.Kind)}
	}
	if s.handlers >= 2*s.cfg.MaxChannels || len(s.channels) >= s.cfg.MaxChannels && !s.evict() {
		return nil, &Error{Code: CodeTooMany, Message: fmt.Sprintf("%d channels are open", len(s.channels))}
	}
	log := s.cfg.Log.With("channel", h.ID[:8], "kind", h.Request.Kind)
	e = &entry{channel: newChannel(ctx, h.ID, h.Request.Kind, window(h.Window), log), paths: 1}
	e.channel.lasting = true
	s.channels[h.ID] = e
	return e, nil
}

// evict drops the channel that has been without a path longest.
func (s *Server) evict() bool {
	var oldest *entry
	for _, e := range s.channels {
		if e.paths == 0 && (oldest == nil || e.detached.Before(oldest.detached)) {
			oldest = e
		}
	}
	if oldest == nil {
		return false
	}
	delete(s.channels, oldest.channel.id)
	oldest.patience.Stop()
	oldest.channel.end(&Error{Code: CodeGone, Message: "other channels needed the place"}, nil)
	return true
}

// adopt makes p the path of c. An older path is closed and waited for, unless its attempt was the newer one.
func (c *Channel) adopt(p *path, h hello) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var told *Error
		switch {
		case h.Try <= c.try:
			return &Error{Code: CodeRefused, Message: "a newer path carries the channel"}
		case c.ended && errors.As(c.err, &told):
			return told
		case c.ended && c.err != nil:
			return &Error{Code: CodeGone, Message: "the channel is no longer held"}
		}
		if why := c.resumable(h.Received); why != nil {
			return why
		}
		old := c.path
		if old == nil {
			break
		}
		c.mu.Unlock()
		_ = old.conn.Close()
		<-old.gone
		c.mu.Lock()
	}
	a := answer{Received: c.received(), Limit: c.rx.head + c.window}
	c.toldReceived, c.told = a.Received, a.Limit
	first, err := appendGreeting(nil, a)
	if err != nil {
		return asError(err)
	}
	p.first, c.try = first, h.Try
	c.attach(p, h.Received, h.Limit)
	return nil
}

// detach counts a path out.
func (s *Server) detach(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.paths--
	if e.paths > 0 || s.channels[e.channel.id] != e {
		return
	}
	e.detached = time.Now()
	e.patience = time.AfterFunc(s.cfg.Patience, func() { s.lose(e) })
}

// lose ends a channel that nobody came back for.
func (s *Server) lose(e *entry) {
	s.mu.Lock()
	lost := e.paths == 0
	s.mu.Unlock()
	if lost {
		e.channel.end(&Error{Code: CodeGone, Message: fmt.Sprintf("no path for %s", s.cfg.Patience)}, nil)
	}
}

// drop takes an ended channel out of the table.
func (s *Server) drop(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channels[e.channel.id] == e {
		delete(s.channels, e.channel.id)
	}
	if e.patience != nil {
		e.patience.Stop()
	}
}
