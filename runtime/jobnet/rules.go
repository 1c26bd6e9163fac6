//go:build linux

package jobnet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// loadTries is how often a table is loaded when others change rules in the same moment.
const loadTries = 5

// table is what the rules should be now.
func (n *Networks) table() *table {
	t := &table{
		name: n.cfg.Name, prefix: n.prefix, pool: n.cfg.Pool,
		connected: n.house.connected, reject: slices.Concat(n.cfg.Profile.Reject, n.avoid), guarded: n.state.Forwarding,
		profile: n.cfg.Profile, month: n.state.Month, monthUsed: n.state.MonthBytes,
		spentCap: n.state.Spent, without: n.cfg.Without,
	}
	for _, id := range slices.Sorted(maps.Keys(n.state.Jobs)) {
		t.jobs = append(t.jobs, n.tableJob(id))
	}
	return t
}

func (n *Networks) tableJob(id string) tableJob {
	rec := n.state.Jobs[id]
	_, addr := addresses(n.cfg.Pool, rec.Slot)
	return tableJob{id: id, link: n.linkName(rec.Slot), addr: addr, in: rec.In, out: rec.Out}
}

// sync makes the rules what they should be. A change that leads from the last known rules to the new ones is preferred, since
// it leaves running counts and limits alone; without one, or when the rules are not the last known ones, all are replaced.
// fresh names the jobs whose counters the change makes.
func (n *Networks) sync(ctx context.Context, r *rig, change string, fresh ...string) error {
	t := n.table()
	text := fingerprint(t.text(false))
	intact, err := n.intact(ctx, r)
	if err != nil {
		return err
	}
	if intact && text == n.state.Text {
		return nil
	}
	if intact && change != "" {
		if err := n.load(ctx, r, change, text, fresh); err == nil {
			return nil
		}
	}
	if !intact && n.state.Listing != "" {
		n.cfg.Log.Warn("rules of jobs' networks were changed by another program, putting them back", "table", n.cfg.Name)
	}
	if err := n.count(r); err != nil {
		return err
	}
	for range loadTries {
		if err = n.load(ctx, r, n.table().script(), text, slices.Collect(maps.Keys(n.state.Jobs))); !errors.Is(err, errMoved) {
			break
		}
	}
	return err
}

// errMoved means that another program changed rules in the same moment, perhaps ours.
var errMoved = errors.New("rules are being changed by another program")

// load hands a script to nft and remembers what the rules look like then. The counters of fresh jobs begin with their sums.
func (n *Networks) load(ctx context.Context, r *rig, script, text string, fresh []string) error {
	before, err := r.generation()
	if err != nil {
		return err
	}
	n.state.Listing, n.state.Text, n.dirty = "", "", true
	if _, err := r.program(ctx, script, "nft", "-f", "-"); err != nil {
		return err
	}
	for _, id := range fresh {
		rec := n.state.Jobs[id]
		rec.RawIn, rec.RawOut = rec.In, rec.Out
	}
	listing, err := r.listing(ctx, n.cfg.Name)
	if err != nil {
		return err
	}
	after, err := r.generation()
	if err != nil {
		return err
	}
	if after != before+1 {
		return fmt.Errorf("table %s: %w", n.cfg.Name, errMoved)
	}
	n.gen, n.state.Listing, n.state.Text = after, fingerprint(listing), text
	return n.save(true)
}

// intact says whether the rules are those that were loaded last.
func (n *Networks) intact(ctx context.Context, r *rig) (bool, error) {
	if n.state.Listing == "" {
		return false, nil
	}
	gen, err := r.generation()
	if err != nil {
		return false, err
	}
	if gen == n.gen && n.gen != 0 {
		return true, nil
	}
	listing, err := r.listing(ctx, n.cfg.Name)
	if err != nil {
		return false, err
	}
	if fingerprint(listing) != n.state.Listing {
		return false, nil
	}
	n.gen = gen
	return true, nil
}
