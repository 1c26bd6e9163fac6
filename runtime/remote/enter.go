//go:build linux

package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	"haggle/internal/tunnel"
	"haggle/runtime"
)

// upgradePath is what a connection becomes: after the answer 101 it carries the bytes of a path into a job and nothing else.
const upgradePath = "haggle-path"

// enter makes a connection a path into a job.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	inside, leave, err := s.openPath(r)
	if err != nil {
		s.reply(w, r, nil, err)
		return
	}
	defer leave()
	conn, rest, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.reply(w, r, nil, errors.Join(err, inside.Close()))
		return
	}
	// It has a place among the paths now, and makes room for others among the connections.
	caller := conn.(*visitor)
	caller.leave()
	if err := s.relay(r.Context(), &path{UnixConn: caller.UnixConn, early: rest.Reader}, inside); err != nil {
		s.cfg.Log.Debug("a path into a job broke off", "path", r.URL.Path, "err", err)
	}
}

// openPath has the engine open a path. Whatever the caller sends before he has the answer is kept for the path.
func (s *Server) openPath(r *http.Request) (runtime.Conn, func(), error) {
	id, err := jobID(r)
	if err != nil {
		return nil, nil, err
	}
	if r.Body != http.NoBody || !strings.EqualFold(r.Header.Get("Upgrade"), upgradePath) {
		return nil, nil, fmt.Errorf("%w: a path into a job is asked for in another way", errMalformed)
	}
	leave, err := take(s.paths)
	if err != nil {
		return nil, nil, fmt.Errorf("enter job %s: %w", id, err)
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	inside, err := s.inTurn(ctx, func() (any, error) { return s.cfg.Runtime.Enter(ctx, id) })
	if err != nil {
		leave()
		return nil, nil, err
	}
	return inside.(runtime.Conn), leave, nil
}

func (s *Server) relay(ctx context.Context, caller *path, inside runtime.Conn) error {
	err := caller.SetWriteDeadline(time.Now().Add(bodyTimeout))
	if err == nil {
		_, err = io.WriteString(caller, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+upgradePath+"\r\n\r\n")
	}
	if err == nil {
		err = caller.SetWriteDeadline(time.Time{})
	}
	if err != nil {
		return errors.Join(err, caller.Close(), inside.Close())
	}
	return tunnel.Relay(ctx, caller, inside)
}

// path is a connection of which some bytes were read already.
type path struct {
	*net.UnixConn
	early *bufio.Reader // asked until it holds nothing
	left  func() bool   // called with Close; nil of nothing
}

// Read implements io.Reader. It may be called by one goroutine at a time.
func (p *path) Read(b []byte) (int, error) {
	if p.early != nil {
		if held := p.early.Buffered(); held > 0 {
			return p.early.Read(b[:min(len(b), held)])
		}
		p.early = nil
	}
	return p.UnixConn.Read(b)
}

// Close implements io.Closer.
func (p *path) Close() error {
	if p.left != nil {
		p.left()
	}
	return p.UnixConn.Close()
}

// Enter implements runtime.Runtime. Paths end with the Client, too, and with the helper.
func (c *Client) Enter(ctx context.Context, id string) (runtime.Conn, error) {
	if err := known(id); err != nil {
		return nil, err
	}
	bound, cancel := c.bind(ctx)
	defer cancel()
	conn, err := c.dial(bound)
	if err != nil {
		return nil, c.away(ctx, err)
	}
	opened, err := c.upgrade(ctx, bound, conn.(*net.UnixConn), id)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return opened, nil
}

// upgrade asks for a path on a connection of its own.
func (c *Client) upgrade(outer, bound context.Context, conn *net.UnixConn, id string) (*path, error) {
	// Whoever reads or writes when the caller gives up is told.
	stop := context.AfterFunc(bound, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	request, err := http.NewRequestWithContext(bound, http.MethodPost, "http://helper"+ofJob(id, "/enter"), nil)
	if err != nil {
		return nil, fmt.Errorf("ask the helper: %w", err)
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", upgradePath)
	// The answer is bounded, the path behind it is not.
	bounded := &io.LimitedReader{R: conn, N: maxHeader + maxAnswer}
	early := bufio.NewReader(bounded)
	if err := request.Write(conn); err != nil {
		return nil, c.away(outer, err)
	}
	answer, err := http.ReadResponse(early, request)
	if err != nil {
		return nil, c.away(outer, err)
	}
	if answer.StatusCode != http.StatusSwitchingProtocols {
		defer answer.Body.Close()
		return nil, c.refused(outer, answer)
	}
	bounded.N = math.MaxInt64
	if !stop() {
		return nil, c.away(outer, context.Cause(bound))
	}
	return &path{UnixConn: conn, early: early, left: context.AfterFunc(c.life, func() { _ = conn.Close() })}, nil
}
