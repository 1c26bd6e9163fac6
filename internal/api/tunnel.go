package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/danielgtaylor/huma/v2"

	"haggle/internal/tunnel"
	"haggle/market"
)

const (
	tunnelPath    = "/v1/leases/{id}/tunnel"
	tunnelUpgrade = "haggle-tunnel"
	maxTunnels    = 256 // open at once
	maxID         = 128
)

// tunnels serves the paths into jobs: requests that become plain bytes, which HTTP's own router has no words for.
type tunnels struct {
	config Config
	agent  Inside
	open   atomic.Int64
	group  sync.WaitGroup // those that the HTTP server has lost sight of
}

// tunnelRoute registers the tunnel beside the described operations, and describes it.
func tunnelRoute(mux *http.ServeMux, api huma.API, c Config, a Inside) *tunnels {
	t := &tunnels{config: c, agent: a}
	mux.Handle("GET "+tunnelPath, t)
	op := operation(http.MethodGet, "open-tunnel", tunnelPath, "A path into a lease's job: plain bytes after the upgrade, as package tunnel speaks them")
	op.Parameters = []*huma.Param{{
		Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString, MaxLength: new(maxID)},
	}, {
		Name: "Upgrade", In: "header", Required: true, Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{tunnelUpgrade}},
	}}
	op.Responses["101"] = &huma.Response{Description: "The tunnel is open"}
	api.OpenAPI().AddOperation(&op)
	return t
}

func (t *tunnels) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t.group.Add(1)
	defer t.group.Done()
	if t.open.Add(1) > maxTunnels {
		t.open.Add(-1)
		t.refuse(w, market.NewError(market.CodeTooManyTunnels, "most", strconv.Itoa(maxTunnels)))
		return
	}
	defer t.open.Add(-1)
	id := r.PathValue("id")
	switch {
	case !upgrades(r.Header):
		t.refuse(w, market.NewError(market.CodeBadRequest, "why", "a tunnel is opened with Connection: Upgrade and Upgrade: "+tunnelUpgrade))
		return
	case len(id) > maxID || r.ProtoMajor != 1:
		t.refuse(w, market.NewError(market.CodeBadRequest, "why", "the request is malformed"))
		return
	}
	path, err := t.agent.Tunnel(r.Context(), id)
	if err != nil {
		t.refuse(w, err)
		return
	}
	conn, err := t.upgrade(w)
	if err != nil {
		t.config.Log.Debug("no upgrade", "err", errors.Join(err, path.Close()))
		panic(http.ErrAbortHandler)
	}
	if err := tunnel.Relay(r.Context(), conn, path); err != nil {
		t.config.Log.Debug("tunnel broke", "lease", id, "err", err)
	}
}

func (t *tunnels) refuse(w http.ResponseWriter, err error) {
	var p *problem
	if errors.As(t.config.problem("open-tunnel", err), &p) {
		writeProblem(w, p.status, p.Err())
	}
}

// upgrades reports whether a request asks for a tunnel.
func upgrades(h http.Header) bool {
	asks := false
	for _, v := range h.Values("Connection") {
		for word := range strings.SplitSeq(v, ",") {
			asks = asks || strings.EqualFold(strings.TrimSpace(word), "upgrade")
		}
	}
	return asks && strings.EqualFold(h.Get("Upgrade"), tunnelUpgrade)
}

// upgrade takes the connection from the HTTP server. Bytes that it has read already are not lost.
func (t *tunnels) upgrade(w http.ResponseWriter) (tunnel.Conn, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("take over the connection: %w", err)
	}
	early, err := io.ReadAll(io.LimitReader(buffered.Reader, int64(buffered.Reader.Buffered())))
	if err == nil {
		_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %s\r\n\r\n",
			tunnelUpgrade, VersionHeader, t.config.Version)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("answer an upgrade: %w", err), conn.Close())
	}
	return raw(conn, early)
}

// raw makes a stream of bytes of a connection from which some were read already.
func raw(conn net.Conn, early []byte) (tunnel.Conn, error) {
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return nil, errors.Join(errors.New("the connection cannot be closed by halves"), conn.Close())
	}
	return &upgraded{Conn: conn, half: half.CloseWrite, early: early}, nil
}

// upgraded is a connection that was an HTTP request.
type upgraded struct {
	net.Conn
	half  func() error
	early []byte // read before the upgrade; of the one reader
}

func (u *upgraded) Read(p []byte) (int, error) {
	if len(u.early) == 0 {
		return u.Conn.Read(p)
	}
	n := copy(p, u.early)
	u.early = u.early[n:]
	return n, nil
}

func (u *upgraded) CloseWrite() error { return u.half() }

// Tunnel implements Inside.
func (c *AgentClient) Tunnel(ctx context.Context, id string) (tunnel.Conn, error) {
	conn, err := c.dial(ctx, "", "")
	if err != nil {
		return nil, lost(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	path, err := c.askTunnel(ctx, conn, leasePath(id, "/tunnel"))
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close() // it carried nothing
		return nil, err
	}
	return path, nil
}

// askTunnel sends the request and reads the answer's head.
func (c *client) askTunnel(ctx context.Context, conn net.Conn, path string) (tunnel.Conn, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://haggle"+path, nil)
	if err != nil {
		return nil, fmt.Errorf("open a tunnel: %w", err)
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", tunnelUpgrade)
	if err := request.Write(conn); err != nil {
		return nil, lost(ctx, err)
	}
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, request)
	if err != nil {
		return nil, lost(ctx, err)
	}
	version := answer.Header.Get(VersionHeader)
	c.version.Store(&version)
	if answer.StatusCode != http.StatusSwitchingProtocols {
		defer answer.Body.Close()
		text, err := io.ReadAll(io.LimitReader(answer.Body, maxProblem))
		if err != nil {
			return nil, lost(ctx, err)
		}
		if err := parseProblem(text); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("open a tunnel: the program answers %s", answer.Status)
	}
	early, err := io.ReadAll(io.LimitReader(in, int64(in.Buffered())))
	if err != nil {
		return nil, lost(ctx, err)
	}
	return raw(conn, early)
}
