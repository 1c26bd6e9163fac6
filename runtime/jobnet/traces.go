//go:build linux

package jobnet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"haggle/runtime"
)

// Traffic returns what a job has received and sent so far, or runtime.ErrNotFound.
func (n *Networks) Traffic(ctx context.Context, job string) (Traffic, error) {
	var now Traffic
	err := n.locked(ctx, func(r *rig) error {
		rec := n.state.Jobs[job]
		if rec == nil {
			return runtime.ErrNotFound
		}
		if err := n.count(r); err != nil {
			return err
		}
		now = Traffic{In: rec.In, Out: rec.Out}
		return nil
	})
	if err != nil {
		return Traffic{}, fmt.Errorf("traffic of job %.80s: %w", job, err)
	}
	return now, nil
}

// Jobs lists the jobs of which there is any trace: a record, a link or a counter. Detach removes each.
func (n *Networks) Jobs(ctx context.Context) ([]string, error) {
	found := map[string]bool{}
	err := n.locked(ctx, func(r *rig) error {
		for id := range n.state.Jobs {
			found[id] = true
		}
		links, err := n.ownLinks(r)
		if err != nil {
			return err
		}
		for _, l := range links {
			if runtime.ValidateID(l.Attrs().Alias) == nil {
				found[l.Attrs().Alias] = true
			}
		}
		counters, err := r.counters(n.cfg.Name)
		if err != nil {
			return err
		}
		for name := range counters {
			if id, ok := strings.CutPrefix(name, counterIn("")); ok {
				found[id] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("jobs with a network: %w", err)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// Purge removes all that there is: links, table, settings and counters, the month's sum too. Run must have ended, or it brings
// the table back.
func (n *Networks) Purge(ctx context.Context) error {
	err := n.locked(ctx, func(r *rig) error {
		links, err := n.ownLinks(r)
		if err != nil {
			return err
		}
		for _, l := range links {
			if err := r.links.LinkDel(l); err != nil && !missing(err) {
				return fmt.Errorf("remove %s: %w", l.Attrs().Name, err)
			}
		}
		for id := range n.state.Jobs {
			if err := n.forget(r, n.tableJob(id).addr); err != nil {
				return err
			}
		}
		if err := r.closeWays(n.state.Forwarding); err != nil {
			return err
		}
		script := fmt.Sprintf("table inet %s\ndelete table inet %s\n", n.cfg.Name, n.cfg.Name)
		if _, err := r.program(ctx, script, "nft", "-f", "-"); err != nil {
			return err
		}
		if err := os.Remove(filepath.Join(n.cfg.Dir, stateFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		n.opened, n.surveyed, n.dirty, n.gen, n.state = false, false, false, 0, state{}
		return nil
	})
	if err != nil {
		return fmt.Errorf("purge networks: %w", err)
	}
	return nil
}
