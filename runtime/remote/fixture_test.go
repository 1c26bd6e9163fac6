//go:build linux

package remote_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"haggle/runtime"
	"haggle/runtime/archive"
	"haggle/runtime/remote"
	"haggle/runtime/runtimetest"
)

const patience = 30 * time.Second

// engine is a fake whose calls a test can look into.
type engine struct {
	*runtimetest.Fake
	image runtime.Image

	mu      sync.Mutex
	created []runtime.Spec
	create  func(ctx context.Context) error                  // in place of the fake's Create
	log     func(ctx context.Context) (io.ReadCloser, error) // in place of the fake's Log
	enter   func(ctx context.Context) (runtime.Conn, error)  // in place of the fake's Enter
	unpack  func(ctx context.Context) error                  // what Import does once it has read the archive
	stopped chan struct{}                                    // closed when Stop is called
}

func newEngine(t *testing.T) *engine {
	t.Helper()
	e := &engine{Fake: runtimetest.NewFake(map[string]runtimetest.Program{"probe": runtimetest.Probe, "/probe": runtimetest.Probe}), stopped: make(chan struct{})}
	t.Cleanup(e.Shutdown)
	var b bytes.Buffer
	if _, err := archive.Write(&b, archive.Image{Entrypoint: []string{"probe"}}); err != nil {
		t.Fatal(err)
	}
	var err error
	if e.image, err = e.Import(t.Context(), "probe", &b); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *engine) Create(ctx context.Context, spec runtime.Spec) error {
	e.mu.Lock()
	e.created = append(e.created, spec)
	e.mu.Unlock()
	if e.create != nil {
		return e.create(ctx)
	}
	return e.Fake.Create(ctx, spec)
}

func (e *engine) Import(ctx context.Context, name string, r io.Reader) (runtime.Image, error) {
	image, err := e.Fake.Import(ctx, name, r)
	if _, rest := io.Copy(io.Discard, r); err == nil {
		err = rest
	}
	if err == nil && e.unpack != nil {
		err = e.unpack(ctx)
	}
	return image, err
}

func (e *engine) Stop(ctx context.Context, id string, grace time.Duration) error {
	select {
	case <-e.stopped:
	default:
		close(e.stopped)
	}
	return e.Fake.Stop(ctx, id, grace)
}

func (e *engine) Log(ctx context.Context, id string, offset int64, follow bool) (io.ReadCloser, error) {
	if e.log != nil {
		return e.log(ctx)
	}
	return e.Fake.Log(ctx, id, offset, follow)
}

func (e *engine) Enter(ctx context.Context, id string) (runtime.Conn, error) {
	if e.enter != nil {
		return e.enter(ctx)
	}
	return e.Fake.Enter(ctx, id)
}

// spec is a job of the fake's image.
func (e *engine) spec(id string, args ...string) runtime.Spec {
	return runtime.Spec{ID: id, Image: e.image.Digest, Args: args}
}

// socketPath names a socket in a new folder.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hgrem") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "helper.sock")
}

// serve starts a server and returns what ends it.
func serve(t *testing.T, cfg remote.Config) (end func()) {
	t.Helper()
	cfg.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	s, err := remote.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(end)
	return end
}

func dial(t *testing.T, socket string) *remote.Client {
	t.Helper()
	c := remote.Dial(t.Context(), socket)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// pair serves an engine and returns a client of it.
func pair(t *testing.T, cfg remote.Config) *remote.Client {
	t.Helper()
	cfg.Socket = socketPath(t)
	serve(t, cfg)
	return dial(t, cfg.Socket)
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// await asks again and again until the answer is yes.
func await(t *testing.T, what string, ask func() bool) {
	t.Helper()
	ctx := within(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ask() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for this: %s", what)
		}
	}
}

func text(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }
