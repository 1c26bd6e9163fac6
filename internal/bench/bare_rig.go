package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"haggle/runtime"
	"haggle/runtime/archive"
	"haggle/runtime/containerd"
)

// stopTime bounds how long an engine may take to clear up.
const stopTime = time.Minute

// bareRig is the engine of a rig with all its protections, without a market around it.
type bareRig struct {
	dir     string
	program string // internal/bench/load, which is also the job's image
	image   string // its digest
	engine  *containerd.Engine
	end     func() error
}

func startBareRig(ctx context.Context) (*bareRig, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("it needs root, as a rig does")
	}
	dir, err := os.MkdirTemp("/tmp", "hgb")
	if err != nil {
		return nil, err
	}
	r := &bareRig{dir: dir, program: filepath.Join(dir, "load")}
	if err := r.start(ctx); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return r, nil
}

func (r *bareRig) start(ctx context.Context) error {
	if err := os.Chmod(r.dir, 0o711); err != nil { // jobs pass through it
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", r.program, "./internal/bench/load")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the job's program: %w: %s", err, out)
	}
	in := func(name string) string { return filepath.Join(r.dir, name) }
	engine, err := containerd.New(containerd.Config{
		Root: in("root"), State: in("state"), LogDir: in("logs"), JobsDir: in("jobs"),
		LoggerPath: r.program, LoggerArgs: []string{"logger"}, CgroupParent: "/" + filepath.Base(r.dir),
	})
	if err != nil {
		return err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- engine.Run(run) }()
	r.engine = engine
	r.end = func() error { cancel(); return errors.Join(<-done, engine.Close()) }
	if err := engine.Ready(ctx); err != nil {
		return err
	}
	return r.importProgram(ctx)
}

func (r *bareRig) importProgram(ctx context.Context) error {
	info, err := os.Stat(r.program)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	_, err = archive.Write(&packed, archive.Image{
		Files: []archive.File{{
			Path: "/load", Mode: 0o755, Size: info.Size(),
			Open: func() (io.ReadCloser, error) { return os.Open(r.program) },
		}},
		Entrypoint: []string{"/load"},
	})
	if err != nil {
		return err
	}
	image, err := r.engine.Import(ctx, "bench.test/load:1", &packed)
	r.image = image.Digest
	return err
}

// output waits for a job's end and returns what it printed. What it complained of is an error.
func (r *bareRig) output(ctx context.Context, id string) ([]byte, error) {
	log, err := r.engine.Log(ctx, id, 0, true)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var out, complaint bytes.Buffer
	if _, _, err := runtime.Demux(log, &out, &complaint); err != nil {
		return nil, err
	}
	if complaint.Len() > 0 {
		return nil, fmt.Errorf("%.300s", complaint.Bytes())
	}
	return out.Bytes(), nil
}

// stop ends the engine and removes all that it made.
func (r *bareRig) stop() error {
	var err error
	if r.engine != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		err = errors.Join(r.engine.Purge(ctx), r.end())
	}
	return errors.Join(err, os.Remove(r.program), os.Remove(r.dir)) // no more than these two is left
}
