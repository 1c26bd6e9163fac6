package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"haggle/runtime"
)

// hardenedStart compares the time from the order of a job to its first byte of output: a job with every protection, made by the
// engine from nothing and started, beside `runc run` of the same program with what runc does unasked. Milliseconds, medians.
func hardenedStart(ctx context.Context) (ours, theirs float64, err error) {
	r, err := startBareRig(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	bundle, err := r.bareBundle(ctx)
	defer func() { err = errors.Join(err, os.RemoveAll(bundle)) }()
	if err != nil {
		return 0, 0, err
	}
	var mine, peers []float64
	for n := range pairs + 1 {
		if err := atRest(ctx); err != nil {
			return 0, 0, err
		}
		took, err := r.startHardened(ctx, "hardened-"+strconv.Itoa(n))
		if err != nil {
			return 0, 0, err
		}
		if err := atRest(ctx); err != nil {
			return 0, 0, err
		}
		run := exec.CommandContext(ctx, "runc", "--root", filepath.Join(bundle, "state"), "run", "--bundle", bundle, filepath.Base(r.dir))
		peer, err := toFirstByte(run)
		if err != nil {
			return 0, 0, fmt.Errorf("runc run: %w", err)
		}
		if n > 0 { // the first pair warms both
			mine, peers = append(mine, took), append(peers, peer)
		}
	}
	return median(mine), median(peers), nil
}

// startHardened makes, starts and removes a job, and returns the milliseconds until it said something.
func (r *bareRig) startHardened(ctx context.Context, id string) (took float64, err error) {
	defer func() { err = errors.Join(err, r.engine.Remove(ctx, id)) }()
	begun := time.Now()
	if err := r.engine.Create(ctx, runtime.Spec{ID: id, Image: r.image, Args: []string{"ready"}}); err != nil {
		return 0, err
	}
	if err := r.engine.Start(ctx, id); err != nil {
		return 0, err
	}
	log, err := r.engine.Log(ctx, id, 0, true)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	first := &firstWrite{}
	if _, _, err := runtime.Demux(log, first, io.Discard); err != nil {
		return 0, err
	}
	if first.at.IsZero() {
		return 0, errors.New("the job said nothing")
	}
	return float64(first.at.Sub(begun).Microseconds()) / 1000, nil
}

// firstWrite notes when something came.
type firstWrite struct{ at time.Time }

func (f *firstWrite) Write(p []byte) (int, error) {
	if f.at.IsZero() {
		f.at = time.Now()
	}
	return len(p), nil
}

// bareBundle makes what runc runs: its own default configuration, and a root file system with the program.
func (r *bareRig) bareBundle(ctx context.Context) (string, error) {
	bundle := filepath.Join(r.dir, "bundle")
	if err := os.MkdirAll(filepath.Join(bundle, "rootfs"), 0o755); err != nil {
		return bundle, err
	}
	program, err := os.ReadFile(r.program)
	if err != nil {
		return bundle, err
	}
	if err := os.WriteFile(filepath.Join(bundle, "rootfs", "load"), program, 0o755); err != nil {
		return bundle, err
	}
	if out, err := exec.CommandContext(ctx, "runc", "spec", "--bundle", bundle).CombinedOutput(); err != nil {
		return bundle, fmt.Errorf("runc spec: %w: %s", err, out)
	}
	path := filepath.Join(bundle, "config.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return bundle, err
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		return bundle, fmt.Errorf("runc spec: %w", err)
	}
	process, ok := config["process"].(map[string]any)
	if !ok {
		return bundle, errors.New("runc spec describes no process")
	}
	process["terminal"], process["args"] = false, []string{"/load", "ready"}
	if text, err = json.Marshal(config); err != nil {
		return bundle, err
	}
	return bundle, os.WriteFile(path, text, 0o600)
}
