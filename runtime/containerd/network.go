//go:build linux

package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"

	"haggle/runtime"
)

// runNetworks keeps the networks of jobs until ctx ends. Where their rules cannot be installed, it tries again: jobs that
// want a network are refused meanwhile, by the attempt to give them one.
func (e *Engine) runNetworks(ctx context.Context) {
	if e.cfg.Networks == nil {
		return
	}
	for wait := firstBackoff; ; wait = min(2*wait, lastBackoff) {
		err := e.cfg.Networks.Run(ctx)
		if ctx.Err() != nil {
			return
		}
		e.cfg.Log.Warn("the networks of jobs cannot be kept", "err", err)
		if sleep(ctx, wait) != nil {
			return
		}
	}
}

// networkFiles writes what a job with a network reads of it, and says how to show that to the job.
func (e *Engine) networkFiles(spec runtime.Spec) ([]specs.Mount, error) {
	if spec.Network.Mode == runtime.NetworkNone {
		return nil, nil
	}
	if err := e.writeNetworkFiles(e.jobDir(spec.ID), spec.ID); err != nil {
		return nil, err
	}
	var all []specs.Mount
	for _, name := range []string{"resolv.conf", "hosts", "hostname"} {
		all = append(all, readOnly(filepath.Join(e.jobDir(spec.ID), name), "/etc/"+name))
	}
	return all, nil
}

// writeNetworkFiles writes, or changes in their places, what a job of some host name reads of its network.
func (e *Engine) writeNetworkFiles(dir, host string) error {
	for name, text := range map[string][]byte{
		"resolv.conf": e.cfg.Networks.ResolvConf(),
		"hosts":       e.cfg.Networks.Hosts(host),
		"hostname":    []byte(host + "\n"),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
		if err := os.Chmod(path, 0o644); err != nil { // whatever our umask
			return err
		}
	}
	return nil
}

// idleNetwork is what a spare has of the line: next to nothing, or it would take a part of the line from jobs.
func idleNetwork(network runtime.Network) runtime.Network {
	if network.Mode != runtime.NetworkNone {
		network.UpBits, network.DownBits = idleBits, idleBits
	}
	return network
}

const idleBits = 8000

// attach gives a job that was made and not started its network. pid is its first process.
func (e *Engine) attach(ctx context.Context, id string, pid uint32, network runtime.Network) error {
	if network.Mode == runtime.NetworkNone {
		return nil
	}
	if e.cfg.Networks == nil {
		return fmt.Errorf("network of job %s: %w: this engine has no networks", id, runtime.ErrUnsupported)
	}
	if _, err := e.cfg.Networks.Attach(ctx, id, int(pid), network); err != nil {
		return fmt.Errorf("network of job %s: %w", id, err)
	}
	return nil
}

// traffic is what a job has received and sent. A job without a network has none.
func (e *Engine) traffic(ctx context.Context, id string) (in, out uint64) {
	if e.cfg.Networks == nil {
		return 0, 0
	}
	t, err := e.cfg.Networks.Traffic(ctx, id)
	if err != nil && !errors.Is(err, runtime.ErrNotFound) {
		e.cfg.Log.Warn("the traffic of a job is not known", "job", id, "err", err)
	}
	return t.In, t.Out
}

// detach removes a job's network. None is no error.
func (e *Engine) detach(ctx context.Context, id string) error {
	if e.cfg.Networks == nil {
		return nil
	}
	_, err := e.cfg.Networks.Detach(ctx, id)
	return err
}
