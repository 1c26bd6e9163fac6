package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"haggle/runtime"
	"haggle/runtime/archive"
	"haggle/runtime/process"
	"haggle/runtime/runtimetest"
)

const patience = 30 * time.Second

// TestMain makes the test binary the supervisor too, and the program of every image, which is called /probe.
func TestMain(m *testing.M) {
	switch {
	case os.Args[0] == "/probe", len(os.Args) > 1 && os.Args[1] == "door":
		terminate := make(chan os.Signal, 1)
		signal.Notify(terminate, syscall.SIGTERM)
		os.Exit(runtimetest.Probe(context.Background(), &runtimetest.Process{
			Args: os.Args, Env: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr, Terminate: terminate,
		}))
	case len(os.Args) > 1 && os.Args[1] == "babble":
		fmt.Println("hello")
	case len(os.Args) == 3 && os.Args[1] == "supervise":
		if err := process.Supervise(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		os.Exit(m.Run())
	}
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func file(t *testing.T, path, from string) archive.File {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	return archive.File{Path: path, Mode: 0o755, Size: info.Size(), Open: func() (io.ReadCloser, error) { return os.Open(from) }}
}

// world is one engine and its folder.
type world struct {
	root   string
	door   []string
	engine *process.Engine
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{root: filepath.Join(t.TempDir(), "engine"), door: []string{self(t), "door"}}
	w.open(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := errors.Join(w.engine.Purge(ctx), w.engine.Close()); err != nil {
			t.Errorf("purge: %v", err)
		}
		if _, err := os.Lstat(w.root); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("purge left the folder: %v", err)
		}
	})
	return w
}

// open makes an engine, as a new program would.
func (w *world) open(t *testing.T) {
	t.Helper()
	e, err := process.New(process.Config{Root: w.root, Command: []string{self(t), "supervise"}, DoorProgram: w.door})
	if err != nil {
		t.Fatal(err)
	}
	w.engine = e
}

// reopen drops the engine, as the end of its program would, and makes another.
func (w *world) reopen(t *testing.T) {
	t.Helper()
	if err := w.engine.Close(); err != nil {
		t.Fatal(err)
	}
	w.open(t)
}

func (w *world) context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (w *world) load(t *testing.T, img archive.Image) (runtime.Image, error) {
	t.Helper()
	var b bytes.Buffer
	if _, err := archive.Write(&b, img); err != nil {
		t.Fatal(err)
	}
	return w.engine.Import(w.context(t), "probe", &b)
}

// create makes a job of the probe.
func (w *world) create(t *testing.T, id string, args ...string) {
	t.Helper()
	img, err := w.load(t, archive.Image{Files: []archive.File{file(t, "/probe", self(t))}, Entrypoint: []string{"/probe"}})
	if err == nil {
		err = w.engine.Create(w.context(t), runtime.Spec{ID: id, Image: img.Digest, Args: args})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) start(t *testing.T, id string, args ...string) {
	t.Helper()
	w.create(t, id, args...)
	if err := w.engine.Start(w.context(t), id); err != nil {
		t.Fatal(err)
	}
}

func (w *world) status(t *testing.T, id string) runtime.Status {
	t.Helper()
	s, err := w.engine.Status(w.context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// await waits until the job has stopped.
func (w *world) await(t *testing.T, id string) runtime.Status {
	t.Helper()
	ctx := w.context(t)
	events, err := w.engine.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if s := w.status(t, id); s.State == runtime.Stopped {
			return s
		}
		if _, open := <-events; !open {
			t.Fatalf("job %s does not end", id)
		}
	}
}

// read follows the log from an offset until it holds text, or with "" to its end, and returns what came and how far it is.
func (w *world) read(t *testing.T, id string, offset int64, text string) (string, int64) {
	t.Helper()
	r, err := w.engine.Log(w.context(t), id, offset, true)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	enough := errors.New("enough")
	var out bytes.Buffer
	n, _, err := runtime.Demux(r, writer(func(p []byte) error {
		out.Write(p)
		if text != "" && strings.Contains(out.String(), text) {
			return enough
		}
		return nil
	}), io.Discard)
	if err != nil && !errors.Is(err, enough) {
		t.Fatalf("log of %s: %v after %q", id, err, out.String())
	}
	return out.String(), offset + n
}

type writer func([]byte) error

func (f writer) Write(p []byte) (int, error) { return len(p), f(p) }
