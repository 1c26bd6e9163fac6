//go:build linux

package containerd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	shimv2 "github.com/containerd/containerd/api/runtime/task/v2"
	shimv3 "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/containerd/api/types/task"
	"github.com/containerd/ttrpc"
	"github.com/containerd/typeurl/v2"
	"google.golang.org/protobuf/types/known/anypb"

	"haggle/runtime"
)

const (
	shimTimeout = 3 * time.Second
	maxAddress  = 4096
)

// askShims learns how jobs ended while no containerd was there to see it. It must come before the next containerd
// starts, because from version 1.7 on that one discards the shims of ended jobs, and their exit codes with them.
// Jobs that run, and shims that do not answer, are left out.
func (e *Engine) askShims(ctx context.Context, known map[string]*finalState) {
	bundles, err := filepath.Glob(filepath.Join(e.bundles(), "*"))
	if err != nil {
		return
	}
	for _, bundle := range bundles {
		id := filepath.Base(bundle)
		final, err := e.askShim(e.within(ctx), bundle, id)
		if err != nil {
			e.cfg.Log.Info("a shim does not tell of its job", "job", id, "err", err)
			continue
		}
		if final != nil {
			known[id] = final
		}
	}
}

// bundles is the folder in which containerd keeps one folder per task.
func (e *Engine) bundles() string {
	return filepath.Join(e.cfg.State, "io.containerd.runtime.v2.task", e.cfg.Namespace)
}

func (e *Engine) askShim(ctx context.Context, bundle, id string) (*finalState, error) {
	if err := runtime.ValidateID(id); err != nil {
		return nil, err
	}
	version, socket, err := shimAddress(bundle)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, shimTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	client := ttrpc.NewClient(conn)
	defer client.Close()
	p, stats, err := shimState(ctx, client, version, id)
	if err != nil || p.Status != task.Status_STOPPED {
		return nil, err
	}
	final := e.observe(p)
	if stats == nil {
		return &final, nil
	}
	if data, err := typeurl.UnmarshalAny(stats); err == nil {
		if u, err := usageOf(data); err == nil {
			final.CPUNanos = &u.CPUNanos
		}
	}
	return &final, nil
}

// shimState asks a shim in the version of its protocol. stats are nil when there are none.
func shimState(ctx context.Context, client *ttrpc.Client, version int, id string) (*task.Process, *anypb.Any, error) {
	if version >= 3 {
		shim := shimv3.NewTTRPCTaskClient(client)
		st, err := shim.State(ctx, &shimv3.StateRequest{ID: id})
		if err != nil {
			return nil, nil, err
		}
		p := &task.Process{ID: id, Status: st.Status, ExitStatus: st.ExitStatus, ExitedAt: st.ExitedAt}
		if r, err := shim.Stats(ctx, &shimv3.StatsRequest{ID: id}); err == nil {
			return p, r.Stats, nil
		}
		return p, nil, nil
	}
	shim := shimv2.NewTTRPCTaskClient(client)
	st, err := shim.State(ctx, &shimv2.StateRequest{ID: id})
	if err != nil {
		return nil, nil, err
	}
	p := &task.Process{ID: id, Status: st.Status, ExitStatus: st.ExitStatus, ExitedAt: st.ExitedAt}
	if r, err := shim.Stats(ctx, &shimv2.StatsRequest{ID: id}); err == nil {
		return p, r.Stats, nil
	}
	return p, nil, nil
}

// shimAddress reads where a shim listens and which protocol it speaks: from bootstrap.json of newer generations, or
// the file address of older ones.
func shimAddress(bundle string) (version int, socket string, err error) {
	params := struct {
		Version  int    `json:"version"`
		Address  string `json:"address"`
		Protocol string `json:"protocol"`
	}{Version: 2, Protocol: "ttrpc"}
	b, err := readSmall(filepath.Join(bundle, "bootstrap.json"))
	if err == nil {
		err = json.Unmarshal(b, &params)
	} else if b, err = readSmall(filepath.Join(bundle, "address")); err == nil {
		params.Address = strings.TrimSpace(string(b))
	}
	if err != nil {
		return 0, "", fmt.Errorf("address of shim: %w", err)
	}
	socket, ok := strings.CutPrefix(params.Address, "unix://")
	if !ok || params.Protocol != "ttrpc" {
		return 0, "", fmt.Errorf("shim at %.100q speaks %.100q", params.Address, params.Protocol)
	}
	return params.Version, socket, nil
}

func readSmall(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxAddress))
}
