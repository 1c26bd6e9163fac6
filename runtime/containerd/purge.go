//go:build linux

package containerd

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// shimSockets is where every shim of every containerd has its socket, whatever the configuration says.
const shimSockets = "/run/containerd/s"

// Purge ends all jobs and removes all that the engine ever made: jobs, logs, images, and with a containerd of its
// own that too, with its processes, mounts, cgroups and files. It works without a running containerd, and ends Run.
// Afterwards only Close may be called.
func (e *Engine) Purge(ctx context.Context) error {
	ctx = e.within(ctx)
	e.spares.close()
	ids := e.jobIDs()
	err := e.purgeJobs(ctx)
	if e.daemon == nil {
		return errors.Join(err, e.purgeImages(ctx), e.disks.Purge(ctx), e.purgeFiles(ctx, nil))
	}
	if err != nil {
		// What containerd could not end is ended by hand below.
		e.cfg.Log.Info("purging without containerd's help", "err", err)
	}
	if err := e.endRun(ctx); err != nil {
		return err
	}
	if err := e.daemon.shutdown(ctx); err != nil {
		return err
	}
	if err := e.endProcesses(ctx); err != nil {
		return err
	}
	return errors.Join(e.unmountAll(), e.disks.Purge(ctx), e.purgeFiles(ctx, ids))
}

// endRun makes Run return, so that it does not start again what is being ended.
func (e *Engine) endRun(ctx context.Context) error {
	e.mu.Lock()
	if !isClosed(e.stop) {
		close(e.stop)
	}
	done := e.runDone
	e.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("end the engine: %w", ctx.Err())
	}
}

// jobIDs are the jobs that left a trace on disk.
func (e *Engine) jobIDs() []string {
	var ids []string
	add := func(id string, ok bool) {
		if ok && runtime.ValidateID(id) == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	bundles, _ := filepath.Glob(filepath.Join(e.bundles(), "*"))
	for _, p := range bundles {
		add(filepath.Base(p), true)
	}
	files, _ := filepath.Glob(filepath.Join(e.cfg.LogDir, "*"))
	for _, p := range files {
		add(logOwner(filepath.Base(p)))
	}
	return ids
}

// purgeJobs lets containerd remove all jobs. It does not wait for a containerd that is not there.
func (e *Engine) purgeJobs(ctx context.Context) error {
	if e.daemon != nil {
		if _, ok := e.daemon.find(); !ok {
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := e.Sweep(ctx, func(string) bool { return false })
	return err
}

// purgeImages empties our namespace in somebody else's containerd.
func (e *Engine) purgeImages(ctx context.Context) error {
	all, err := e.Images(ctx)
	if err != nil {
		return err
	}
	for _, img := range all {
		if err := e.client.ImageService().Delete(ctx, img.Name); err != nil {
			return classify(err, "delete image %s", img.Name)
		}
	}
	return nil
}

// endProcesses kills the shims of our containerd, what runs in our cgroups, and loggers that still write.
func (e *Engine) endProcesses(ctx context.Context) error {
	logPrefix := ":" + e.cfg.LogDir + "/"
	ours := func(args []string) bool {
		return e.isShim(args) || len(args) == 3 && args[1] == e.cfg.LoggerArgs[0] && strings.Contains(args[2], logPrefix)
	}
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		left := findProcesses(ours)
		for _, pid := range cgroupProcesses(e.cfg.CgroupParent) {
			if p, ok := lookProcess(pid); ok {
				left = append(left, p)
			}
		}
		if len(left) == 0 {
			return nil
		}
		for _, p := range left {
			if err := p.signal(syscall.SIGKILL); err != nil {
				return err
			}
		}
		if err := sleep(ctx, wait); err != nil {
			return fmt.Errorf("%d processes do not end: %w", len(left), err)
		}
	}
}

// unmountAll unmounts everything below our folders, the latest first.
func (e *Engine) unmountAll() error {
	var errs []error
	for _, m := range slices.Backward(mounts()) {
		if !strings.HasPrefix(m.path, e.cfg.Root+"/") && !strings.HasPrefix(m.path, e.cfg.State+"/") {
			continue
		}
		if err := unix.Unmount(m.path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", m.path, err))
		}
	}
	return errors.Join(errs...)
}

// shimSocket is the socket of a container's shim, which names it after the containerd, the namespace and the container.
func (e *Engine) shimSocket(name string) string {
	sum := sha256.Sum256([]byte(filepath.Join(e.cfg.Socket, e.cfg.Namespace, name)))
	return fmt.Sprintf("%s/%x", shimSockets, sum)
}

// purgeFiles removes what is left on disk, by name: a folder that was configured by mistake loses nothing else.
func (e *Engine) purgeFiles(ctx context.Context, ids []string) error {
	errs := []error{e.purgeNetworks(ctx), e.closeJobsDir(), removeCgroups(ctx, e.cfg.CgroupParent), removeTree(filepath.Join(e.cfg.RuncRoot, e.cfg.Namespace))}
	for _, id := range ids {
		errs = append(errs, removeTree(e.shimSocket(id)), e.removeFiles(ctx, id))
	}
	dirs := []string{e.cfg.RuncRoot, e.cfg.LogDir}
	if e.daemon != nil {
		for _, name := range []string{"containerd.pid", "containerd.pid.new", "containerd.toml"} {
			errs = append(errs, removeTree(filepath.Join(e.cfg.State, name)))
		}
		errs = append(errs, removeTree(e.daemon.logFile()), removeTree(e.cfg.Socket), removeTree(e.cfg.Socket+".ttrpc"))
		for _, dir := range []string{e.cfg.Root, e.cfg.State} {
			theirs, _ := filepath.Glob(filepath.Join(dir, "io.containerd.*"))
			for _, p := range append(theirs, filepath.Join(dir, "tmpmounts")) {
				errs = append(errs, removeTree(p))
			}
		}
		dirs = append(dirs, e.cfg.State, e.cfg.Root)
	}
	for _, dir := range dirs {
		// A folder that holds something else stays.
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (e *Engine) purgeNetworks(ctx context.Context) error {
	if e.cfg.Networks == nil {
		return nil
	}
	if err := e.endRun(ctx); err != nil { // or it brings the rules back
		return err
	}
	return e.cfg.Networks.Purge(ctx)
}

func removeTree(path string) error {
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return nil
}
