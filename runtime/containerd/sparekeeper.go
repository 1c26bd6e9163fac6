//go:build linux

package containerd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// keepSpares makes spares of the shape that was asked for last, and removes those that nobody wants, until ctx ends.
func (e *Engine) keepSpares(ctx context.Context) {
	if e.cfg.Spares == 0 {
		return
	}
	if err := passable(filepath.Dir(e.cfg.WaitProgram[0])); err != nil {
		e.noteSpare(ctx, fmt.Errorf("%s cannot wait in them: %w", e.cfg.WaitProgram[0], err))
		return
	}
	wake := make(chan struct{}, 1)
	e.spares.mu.Lock()
	e.spares.wake = wake
	e.spares.mu.Unlock()
	names, err := e.allContainers(ctx)
	if err == nil {
		err = e.sweepSpares(ctx, names)
	}
	e.noteSpare(ctx, err)
	defer func() {
		e.spares.mu.Lock()
		defer e.spares.mu.Unlock()
		e.spares.wake = nil
	}()
	tick := time.NewTicker(spareAge / 10)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			old := func(sp *spare) bool { return time.Since(sp.since) > spareAge }
			e.noteSpare(ctx, e.throwAway(ctx, e.spares.remove(old)))
		case <-wake:
			e.noteSpare(ctx, e.replenish(ctx))
		}
	}
}

func (e *Engine) noteSpare(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		e.cfg.Log.Warn("jobs will wait for their containers", "err", err)
	}
}

// replenish makes a spare of the wanted shape unless there are enough. One of another shape makes room for it.
func (e *Engine) replenish(ctx context.Context) error {
	for {
		if err := e.spares.awaitQuiet(ctx); err != nil {
			return err
		}
		e.spares.mu.Lock()
		sh, all, fit := e.spares.wanted, len(e.spares.all), 0
		for _, sp := range e.spares.all {
			if sp.shape == sh.key {
				fit++
			}
		}
		e.spares.mu.Unlock()
		if sh.key == "" || fit >= e.cfg.Spares || !e.plenty(sh.spec) {
			return nil
		}
		excess := all + 1 - e.cfg.Spares
		other := func(sp *spare) bool {
			yes := excess > 0 && sp.shape != sh.key
			if yes {
				excess--
			}
			return yes
		}
		if err := e.throwAway(ctx, e.spares.remove(other)); err != nil || excess > 0 {
			return err
		}
		if err := e.makeSpare(ctx, sh); err != nil {
			return err
		}
	}
}

// throwAway removes spares.
func (e *Engine) throwAway(ctx context.Context, list []*spare) error {
	var errs []error
	for _, sp := range list {
		errs = append(errs, e.withLock(ctx, sp.name, func() error { return e.discard(ctx, sp.name) }))
		e.spares.drop(sp) // what is left of it is a stranger's, for a sweep
	}
	return errors.Join(errs...)
}

// yieldSpares gives back what all spares hold; false when there were none.
func (e *Engine) yieldSpares(ctx context.Context) bool {
	list := e.spares.remove(func(*spare) bool { return true })
	if err := e.throwAway(ctx, list); err != nil {
		e.cfg.Log.Warn("a spare container is not removed", "err", err)
	}
	return len(list) > 0
}

// endSpares removes all spares when nobody is left to hand them out.
func (e *Engine) endSpares(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	e.yieldSpares(ctx)
}

// sweepSpares removes the spares among containers that are not of this engine: those of one that has ended.
func (e *Engine) sweepSpares(ctx context.Context, names []string) error {
	var errs []error
	for _, name := range names {
		if !isSpare(name) || e.names.job(name) != "" || e.spares.owns(name) {
			continue
		}
		errs = append(errs, e.withLock(ctx, name, func() error {
			if e.names.job(name) != "" { // somebody has taken it meanwhile
				return nil
			}
			return e.discard(ctx, name)
		}))
	}
	return errors.Join(errs...)
}

func (e *Engine) withLock(ctx context.Context, name string, do func() error) error {
	unlock, err := e.jobs.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	return do()
}

// plenty reports whether the machine has so much room that a container which nobody may want does no harm: twice the disk, and
// an eighth of its memory beside the job's.
func (e *Engine) plenty(spec runtime.Spec) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(e.cfg.VolumeDir, &st); err != nil || int64(st.Bavail)*st.Frsize < 2*spec.DiskBytes {
		return false
	}
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return false
	}
	defer f.Close()
	size := map[string]int64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) == 3 {
			size[fields[0]], _ = strconv.ParseInt(fields[1], 10, 64)
		}
	}
	return size["MemAvailable:"]<<10 > size["MemTotal:"]<<10/8
}
