package door

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	_ "golang.org/x/crypto/x509roots/fallback" // an image may have no certificates of its own
)

// Tries of one push, the pause before the second, which doubles, and the slowest upload that is waited for.
const (
	pushTries   = 4
	firstPause  = time.Second
	slowestPut  = 64 << 10 // bytes a second
	shortestPut = 2 * time.Minute
)

// newSpool makes a file without a name on the job's disk, for the length of a request must be known before it.
func newSpool(work string) (*os.File, error) {
	dir := filepath.Join(work, ".haggle-tmp")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return nameless(dir)
}

// put sends a file by PUT and tries again where that may help. It follows no redirect: a presigned URL has none.
func put(ctx context.Context, to string, body *os.File) (int64, error) {
	fi, err := body.Stat()
	if err != nil {
		return 0, err
	}
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: dialTime,
			ResponseHeaderTimeout: shortestPut, MaxResponseHeaderBytes: 64 << 10, WriteBufferSize: 128 << 10,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		},
	}
	wait := firstPause
	for try := 1; ; try++ {
		again, err := putOnce(ctx, client, to, body, fi.Size())
		if err == nil {
			return fi.Size(), nil
		}
		if !again || try == pushTries || ctx.Err() != nil {
			return 0, err
		}
		pause(ctx, wait)
		wait *= 2
	}
}

// putOnce says with an error whether another try may help.
func putOnce(ctx context.Context, client *http.Client, to string, body *os.File, size int64) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, shortestPut+time.Duration(size/slowestPut)*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, to, io.NewSectionReader(body, 0, size))
	if err != nil {
		return false, errors.New("the URL is not one")
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", "application/octet-stream")
	res, err := client.Do(req)
	if err != nil {
		return true, fmt.Errorf("send the checkpoint: %w", withoutURL(err))
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
	if res.StatusCode/100 == 2 {
		return false, nil
	}
	again = res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusRequestTimeout
	return again, fmt.Errorf("send the checkpoint: the store answered %d", res.StatusCode)
}
