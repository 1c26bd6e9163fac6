package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"haggle/runtime"
)

// fakeLog is what every job writes: three records of which the second goes to stderr.
func fakeLog() []byte {
	var b bytes.Buffer
	w := runtime.NewLogWriter(&b, 0)
	fmt.Fprint(w.Stdout(), "one\n")
	fmt.Fprint(w.Stderr(), "two\n")
	fmt.Fprint(w.Stdout(), "three\n")
	w.Close()
	return b.Bytes()
}

func (a *fakeAgent) Log(ctx context.Context, id string, offset int64, follow bool) (io.ReadCloser, error) {
	if _, err := a.Lease(ctx, id); err != nil {
		return nil, err
	}
	log := fakeLog()[offset:]
	switch {
	case a.job.args[0] == "crash":
		return io.NopCloser(io.MultiReader(bytes.NewReader(log[:22]), crash{a.home})), nil
	case a.job.args[0] == "hang" && !follow:
		log = log[:12]
	case a.job.args[0] == "hang":
		if err := os.WriteFile(filepath.Join(a.home, "following"), []byte("yes"), 0o600); err != nil {
			return nil, err
		}
		return io.NopCloser(io.MultiReader(bytes.NewReader(log[:12]), waits{ctx, a.job.done})), nil
	case a.job.args[0] == "count" && offset > 0:
		go a.over("completed", 3, "final") // the job that outlived the crash
	}
	return io.NopCloser(bytes.NewReader(log)), nil
}

// crash ends the agent at once, with the socket left behind, once the output before it is out.
type crash struct{ home string }

func (c crash) Read([]byte) (int, error) {
	if err := os.WriteFile(filepath.Join(c.home, "crashed"), nil, 0o600); err != nil {
		return 0, err
	}
	os.Exit(9)
	return 0, nil
}

// waits reads nothing until a job is over.
type waits struct {
	ctx  context.Context
	done <-chan struct{}
}

func (w waits) Read([]byte) (int, error) {
	select {
	case <-w.done:
		return 0, io.EOF
	case <-w.ctx.Done():
		return 0, w.ctx.Err()
	}
}
