package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// Bounds of one message to a webhook.
const (
	hookTime   = 10 * time.Second
	hookTries  = 3
	hookPause  = time.Second // before the second try, and four times that before the third
	hookAnswer = 64 << 10    // bytes of an answer that are read
)

// webhook is an address that hears of matches.
type webhook struct {
	url    string
	client *http.Client
	pause  time.Duration
}

// newWebhook checks an address: https, or http on this machine, where nobody reads along. No redirect is followed: an address elsewhere
// does not send this machine into its own network.
func newWebhook(text string) (*webhook, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || len(text) > 2048:
		return nil, errors.New("it is no address")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("it is neither https nor http")
	}
	dialer := &net.Dialer{Timeout: hookTime}
	if u.Scheme == "http" {
		dialer.Control = loopbackOnly
	}
	return &webhook{url: text, pause: hookPause, client: &http.Client{
		Timeout:       hookTime,
		Transport:     &http.Transport{DialContext: dialer.DialContext, MaxIdleConns: 1, ForceAttemptHTTP2: true, TLSHandshakeTimeout: hookTime},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// loopbackOnly refuses a connection to another machine, whatever a name stands for by now.
func loopbackOnly(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return errNotHere
	}
	return nil
}

var errNotHere = errors.New("http goes to this machine only: use https")

// send sends a message, again where the other side may do better the next time.
func (h *webhook) send(ctx context.Context, text []byte) error {
	var err error
	pause := h.pause
	for try := range hookTries {
		if try > 0 {
			t := time.NewTimer(pause)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return ctx.Err()
			}
			pause *= 4
		}
		var again bool
		if again, err = h.post(ctx, text); err == nil || !again {
			return err
		}
	}
	return err
}

// post sends a message once, and reports whether it is worth another try.
func (h *webhook) post(ctx context.Context, text []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(text))
	if err != nil {
		return false, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "haggle")
	answer, err := h.client.Do(r)
	if err != nil {
		return !errors.Is(err, errNotHere) && ctx.Err() == nil, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, hookAnswer)) // so that the connection can be used again
	switch code := answer.StatusCode; {
	case code/100 == 2:
		return false, nil
	case code/100 == 3:
		return false, fmt.Errorf("the address answers %d: redirects are not followed", code)
	default:
		return code >= 500 || code == http.StatusTooManyRequests, fmt.Errorf("the address answers %d", code)
	}
}
