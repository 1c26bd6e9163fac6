//go:build linux

package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"haggle/runtime"
)

// Import implements runtime.Runtime.
func (c *Client) Import(ctx context.Context, name string, archive io.Reader) (runtime.Image, error) {
	bound, cancel := c.bind(ctx)
	defer cancel()
	source := &source{from: archive}
	r, err := c.send(ctx, bound, http.MethodPut, pathImages+"?name="+url.QueryEscape(name), source)
	// The archive is the caller's again when this returns.
	if failed := source.give(); failed != nil && ctx.Err() == nil {
		err = fmt.Errorf("import image %s: read its archive: %w", name, failed)
	}
	if r != nil {
		defer r.Body.Close()
	}
	if err != nil {
		return runtime.Image{}, err
	}
	var image runtime.Image
	data, err := readAll(r.Body, maxAnswer)
	if err != nil {
		return image, c.away(ctx, err)
	}
	return image, decode(data, &image)
}

// source is an archive that is lent to the transport.
type source struct {
	mu   sync.Mutex
	from io.Reader // nil once it was given back
	err  error     // that reading it met, beside its end
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.from == nil {
		return 0, io.ErrClosedPipe
	}
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// give waits for a read under way and ends all others. It returns what went wrong with the archive itself.
func (s *source) give() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = nil
	return s.err
}

// Log implements runtime.Runtime.
func (c *Client) Log(ctx context.Context, id string, offset int64, follow bool) (io.ReadCloser, error) {
	if err := known(id); err != nil {
		return nil, err
	}
	bound, cancel := c.bind(ctx)
	ask := url.Values{"offset": {strconv.FormatInt(offset, 10)}, "follow": {strconv.FormatBool(follow)}}
	r, err := c.send(ctx, bound, http.MethodGet, ofJob(id, "/log?"+ask.Encode()), nil)
	if err != nil {
		cancel()
		return nil, err
	}
	return &logReader{ctx: bound, client: c, cancel: cancel, response: r}, nil
}

// logReader is the log of a job as it comes.
type logReader struct {
	ctx      context.Context
	client   *Client
	cancel   context.CancelFunc
	response *http.Response
}

// Read implements io.Reader.
func (l *logReader) Read(p []byte) (int, error) {
	n, err := l.response.Body.Read(p)
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return n, l.client.away(l.ctx, err)
	}
	text := l.response.Trailer.Get(errorTrailer)
	if text == "" {
		return n, io.EOF
	}
	var a apology
	if err := decode([]byte(text), &a); err != nil {
		return n, err
	}
	return n, a.err()
}

// Close implements io.Closer. It unblocks Read.
func (l *logReader) Close() error {
	l.cancel()
	return l.response.Body.Close()
}

// watchBuffer is how far the reader of a watch may fall behind.
const watchBuffer = 1024

// Watch implements runtime.Runtime.
func (c *Client) Watch(ctx context.Context) (<-chan runtime.Event, error) {
	bound, cancel := c.bind(ctx)
	r, err := c.send(ctx, bound, http.MethodGet, pathWatch, nil)
	if err != nil {
		cancel()
		return nil, err
	}
	events := make(chan runtime.Event, watchBuffer)
	go func() {
		defer close(events)
		defer cancel()
		defer r.Body.Close()
		pass(r.Body, cancel, events)
	}()
	return events, nil
}

// pass reads the lines of a watch until they end, until the helper has been silent for too long, or until the reader of the
// channel falls far behind. end breaks the reading off.
func pass(from io.Reader, end func(), to chan<- runtime.Event) {
	dead := time.AfterFunc(silence, end)
	defer dead.Stop()
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		dead.Reset(silence)
		var line watchLine
		if decode(lines.Bytes(), &line) != nil {
			return // whoever watches again learns from the next call what is wrong
		}
		if line.Event == nil {
			continue
		}
		select {
		case to <- *line.Event:
		default:
			return
		}
	}
}
