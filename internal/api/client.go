package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"haggle/internal/view"
	"haggle/market"
)

// Bounds of what a client takes from a server.
const (
	maxAnswer  = market.MaxEvidence + 1<<20
	maxProblem = 64 << 10
	maxEvent   = 1 << 20
)

// ErrNotRunning means that nobody listens on the socket.
var ErrNotRunning = errors.New("the program is not running")

// ErrLost means that the program went away before its answer was whole.
var ErrLost = errors.New("the program went away in mid-answer")

// client sends requests to one socket. Dialing happens with the first request.
type client struct {
	http    *http.Client
	dial    func(ctx context.Context, network, address string) (net.Conn, error) // to the socket, whatever the address
	version atomic.Pointer[string]
}

func dial(socket string) *client {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	c := &client{dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, "unix", socket)
		if err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
		}
		return conn, err
	}}
	c.http = &http.Client{
		Transport:     &http.Transport{DialContext: c.dial, DisableCompression: true, MaxResponseHeaderBytes: maxProblem},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// Close drops idle connections. Requests under way go on.
func (c *client) Close() { c.http.CloseIdleConnections() }

// ServerVersion returns the version of the program that answered last, or "" before the first answer. It asks nothing.
func (c *client) ServerVersion() string {
	if v := c.version.Load(); v != nil {
		return *v
	}
	return ""
}

// Version asks which program answers.
func (c *client) Version(ctx context.Context) (Version, error) {
	return get[Version](ctx, c, "/v1/version", nil)
}

// get reads one thing.
func get[T any](ctx context.Context, c *client, path string, query url.Values) (T, error) {
	return call[T](ctx, c, http.MethodGet, path, query, nil)
}

// call sends a request and decodes its answer.
func call[T any](ctx context.Context, c *client, method, path string, query url.Values, body any) (T, error) {
	var into T
	data, err := c.bytes(ctx, method, path, query, body)
	if err != nil {
		return into, err
	}
	if err := json.Unmarshal(data, &into); err != nil {
		return into, fmt.Errorf("%s %s: read the answer: %w", method, path, err)
	}
	return into, nil
}

// do sends a request that has no answer but its success.
func (c *client) do(ctx context.Context, method, path string, body any) error {
	_, err := c.bytes(ctx, method, path, nil, body)
	return err
}

// bytes sends a request and returns its whole answer.
func (c *client) bytes(ctx context.Context, method, path string, query url.Values, body any) ([]byte, error) {
	answer, err := c.open(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	data, err := io.ReadAll(io.LimitReader(answer, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = fmt.Errorf("%s %s: the answer is longer than %d bytes", method, path, maxAnswer)
	}
	return data, err
}

// open sends a request and returns the body of a good answer, which the caller closes. A problem document comes back as the
// market error that it was made of.
func (c *client) open(ctx context.Context, method, path string, query url.Values, body any) (*stream, error) {
	target := "http://haggle" + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
		sent = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, target, sent)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, lost(ctx, err)
	}
	version := response.Header.Get(VersionHeader)
	c.version.Store(&version)
	if response.StatusCode/100 == 2 {
		return &stream{response: response, lost: func(err error) error { return lost(ctx, err) }}, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	if err != nil {
		return nil, lost(ctx, err)
	}
	if err := parseProblem(text); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%s %s: the program answers %s", method, path, response.Status)
}

// lost names what went wrong with a connection.
func lost(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrNotRunning):
		return err
	default:
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
}

// parseProblem returns the market error of a problem document, or nil if it is none.
func parseProblem(text []byte) error {
	var p view.Problem
	if json.Unmarshal(text, &p) != nil || p.Code == "" {
		return nil
	}
	return p.Err()
}

// stream is the body of an answer. At its end it returns the error of the trailer, if there is one.
type stream struct {
	response *http.Response
	lost     func(error) error // tells a lost connection from one that the caller gave up
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.response.Body.Read(p)
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		return n, s.lost(err)
	}
	if text := s.response.Trailer.Get(problemTrailer); text != "" {
		if problem := parseProblem([]byte(text)); problem != nil {
			return n, problem
		}
	}
	return n, io.EOF
}

func (s *stream) Close() error { return s.response.Body.Close() }

// events reads server-sent events until the stream ends; each event's data is given to take, which returns false to stop.
func events(r io.Reader, take func(name string, data []byte) bool) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 8<<10), maxEvent)
	name := ""
	for lines.Scan() {
		switch key, value, _ := strings.Cut(lines.Text(), ":"); key {
		case "":
			name = ""
		case "event":
			name = strings.TrimPrefix(value, " ")
		case "data":
			if !take(name, []byte(value)) {
				return nil
			}
		}
	}
	return lines.Err()
}
