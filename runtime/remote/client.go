//go:build linux

package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"haggle/runtime"
)

// Times of a client.
const (
	dialTimeout = 5 * time.Second
	retryFirst  = 50 * time.Millisecond // of Ready
	retryMost   = time.Second
)

// Client is a runtime.Runtime whose engine is in another program. Make it with Dial.
type Client struct {
	socket    string
	transport *http.Transport
	life      context.Context // ends with Close
	end       context.CancelFunc
}

var _ runtime.Runtime = (*Client)(nil)

// Dial makes a client of the helper that listens on a socket. It connects when it is used, and again whenever it must.
func Dial(ctx context.Context, socket string) *Client {
	c := &Client{socket: socket}
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	c.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
		// A helper that was started again must be found at the next call.
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 20 * time.Second, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
	return c
}

// dial connects, and makes sure that it is root who answers, or this user itself.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, err
	}
	if err := checkPeer(conn.(*net.UnixConn), 0, os.Getuid()); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Run implements what an engine's owner expects: it returns when ctx ends. A client needs no looking after.
func (c *Client) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Ready returns when the helper's engine answers, or the context's error.
func (c *Client) Ready(ctx context.Context) error {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		err := c.ask(ctx, http.MethodGet, pathReady, nil, &none{})
		if !errors.Is(err, runtime.ErrUnavailable) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("wait for the helper: %w", errors.Join(ctx.Err(), err))
		}
	}
}

// Close implements runtime.Runtime.
func (c *Client) Close() error {
	c.end()
	c.transport.CloseIdleConnections()
	return nil
}

// bind makes a context that ends with a call's and with the client.
func (c *Client) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	unbind := context.AfterFunc(c.life, cancel)
	return ctx, func() { unbind(); cancel() }
}

// ask makes a call and decodes its answer.
func (c *Client) ask(ctx context.Context, method, path string, question, answer any) error {
	var body io.Reader
	if question != nil {
		data, err := json.Marshal(question)
		if err != nil {
			return fmt.Errorf("ask the helper: %w", err)
		}
		body = bytes.NewReader(data)
	}
	bound, cancel := c.bind(ctx)
	defer cancel()
	r, err := c.send(ctx, bound, method, path, body)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	data, err := readAll(r.Body, maxAnswer)
	if err != nil {
		return c.away(ctx, err)
	}
	return decode(data, answer)
}

// send makes a request and returns a response that is good; the caller closes its body. outer is the caller's context, and bound
// ends with it and with the client.
func (c *Client) send(outer, bound context.Context, method, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(bound, method, "http://helper"+path, body)
	if err != nil {
		return nil, fmt.Errorf("ask the helper: %w", err)
	}
	// Whatever we ask may be asked again. An empty list says so to the transport, and does not cross.
	request.Header["Idempotency-Key"] = nil
	r, err := c.transport.RoundTrip(request)
	if err != nil {
		return nil, c.away(outer, err)
	}
	if r.StatusCode == http.StatusOK {
		return r, nil
	}
	defer r.Body.Close()
	return nil, c.refused(outer, r)
}

// refused is the error that a response tells.
func (c *Client) refused(outer context.Context, r *http.Response) error {
	data, err := readAll(r.Body, maxAnswer)
	if err != nil {
		return c.away(outer, err)
	}
	var a apology
	if err := decode(data, &a); err != nil {
		return fmt.Errorf("%s %s: status %d: %w: %w", r.Request.Method, r.Request.URL.Path, r.StatusCode, runtime.ErrUnavailable, err)
	}
	return a.err()
}

// away is what the caller is told when a call broke off: that he gave up, or that the helper is away.
func (c *Client) away(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask the helper: %w", ctx.Err())
	}
	if errors.Is(err, errMalformed) {
		return err
	}
	return fmt.Errorf("%w: the helper at %s: %w", runtime.ErrUnavailable, c.socket, err)
}

// ofJob is a path of a job.
func ofJob(id, what string) string { return pathJobs + "/" + url.PathEscape(id) + what }

// known refuses what can be no job's id without asking.
func known(id string) error {
	if runtime.ValidateID(id) != nil {
		return fmt.Errorf("job %.80q: %w", id, runtime.ErrNotFound)
	}
	return nil
}

// order makes a call about a job that has nothing to answer.
func (c *Client) order(ctx context.Context, method, id, what string, question any) error {
	if err := known(id); err != nil {
		return err
	}
	return c.ask(ctx, method, ofJob(id, what), question, &none{})
}

// Images implements runtime.Runtime.
func (c *Client) Images(ctx context.Context) (list []runtime.Image, err error) {
	err = c.ask(ctx, http.MethodGet, pathImages, nil, &list)
	return list, err
}

// RemoveImage implements runtime.Runtime.
func (c *Client) RemoveImage(ctx context.Context, digest string) error {
	if !runtime.ValidDigest(digest) {
		return nil
	}
	return c.ask(ctx, http.MethodDelete, pathImages+"/"+digest, nil, &none{})
}

// Create implements runtime.Runtime.
func (c *Client) Create(ctx context.Context, spec runtime.Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	return c.ask(ctx, http.MethodPost, pathJobs, packSpec(spec), &none{})
}

// Start implements runtime.Runtime.
func (c *Client) Start(ctx context.Context, id string) error {
	return c.order(ctx, http.MethodPost, id, "/start", nil)
}

// Stop implements runtime.Runtime. The grace is at most 24 hours.
func (c *Client) Stop(ctx context.Context, id string, grace time.Duration) error {
	return c.order(ctx, http.MethodPost, id, "/stop", stopRequest{GraceNanos: int64(grace)})
}

// Kill implements runtime.Runtime.
func (c *Client) Kill(ctx context.Context, id string) error {
	return c.order(ctx, http.MethodPost, id, "/kill", nil)
}

// Remove implements runtime.Runtime.
func (c *Client) Remove(ctx context.Context, id string) error {
	if known(id) != nil {
		return nil
	}
	return c.order(ctx, http.MethodDelete, id, "", nil)
}

// Status implements runtime.Runtime.
func (c *Client) Status(ctx context.Context, id string) (st runtime.Status, err error) {
	if err := known(id); err != nil {
		return st, err
	}
	err = c.ask(ctx, http.MethodGet, ofJob(id, ""), nil, &st)
	return st, err
}

// List implements runtime.Runtime.
func (c *Client) List(ctx context.Context) (list []runtime.Status, err error) {
	err = c.ask(ctx, http.MethodGet, pathJobs, nil, &list)
	return list, err
}

// Usage implements runtime.Runtime.
func (c *Client) Usage(ctx context.Context, id string) (u runtime.Usage, err error) {
	if err := known(id); err != nil {
		return u, err
	}
	err = c.ask(ctx, http.MethodGet, ofJob(id, "/usage"), nil, &u)
	return u, err
}

// Sweep implements runtime.Runtime. keep is asked here; what appears after it was asked is kept.
func (c *Client) Sweep(ctx context.Context, keep func(id string) bool) (runtime.SweepReport, error) {
	var found, swept sweepAnswer
	if err := c.ask(ctx, http.MethodGet, pathSweep, nil, &found); err != nil {
		return found.Report, err
	}
	var ask sweepRequest
	for _, id := range found.IDs {
		if !keep(id) {
			ask.Remove = append(ask.Remove, id)
		}
	}
	if len(ask.Remove) == 0 {
		return found.Report, found.Error.err()
	}
	err := c.ask(ctx, http.MethodPost, pathSweep, ask, &swept)
	report := runtime.SweepReport{
		Jobs:      append(found.Report.Jobs, swept.Report.Jobs...),
		Snapshots: append(found.Report.Snapshots, swept.Report.Snapshots...),
		Logs:      append(found.Report.Logs, swept.Report.Logs...),
		Disks:     append(found.Report.Disks, swept.Report.Disks...),
		Networks:  append(found.Report.Networks, swept.Report.Networks...),
	}
	return report, errors.Join(err, found.Error.err(), swept.Error.err())
}

// Probe implements runtime.Runtime.
func (c *Client) Probe(ctx context.Context) (caps runtime.Capabilities, err error) {
	err = c.ask(ctx, http.MethodGet, pathCapabilities, nil, &caps)
	return caps, err
}

// SetPowerLimit has the helper bound the power of a card, as Power says it.
func (c *Client) SetPowerLimit(ctx context.Context, uuid string, milliwatt int64) (int64, error) {
	var answer powerAnswer
	err := c.ask(ctx, http.MethodPost, pathPower, powerRequest{UUID: uuid, Milliwatt: milliwatt}, &answer)
	return answer.Now, err
}
