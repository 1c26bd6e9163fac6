//go:build linux

package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"haggle/runtime"
)

// Bounds of all descriptions together.
const (
	maxFiles       = 64 // a folder
	maxDriverSpecs = 16
)

// Refusal is a device, or a whole description, that no job gets, and why.
type Refusal struct {
	// Source is the file, or which of the driver's own descriptions.
	Source string
	// Kind is vendor and class, Device the device's name in the description. Either is empty where the problem comes before it.
	Kind, Device string
	// Rule and Reason are those of Problem.
	Rule, Reason string
}

// found is one description and where it comes from.
type found struct {
	source string
	rank   int // the higher wins
	raw    []byte
}

// card is one device that can be leased, if the machine agrees.
type card struct {
	id      runtime.DeviceID
	source  string
	rank    int
	name    string // in the description
	common  edits
	own     edits
	refused *Problem
}

// Refresh reads all descriptions again, and asks the driver for its own. Call it at the start and when the driver's version or
// the cards have changed; files that change are noticed without it. When the driver fails, what it stated before stays.
func (d *Devices) Refresh(ctx context.Context) error {
	var own [][]byte
	var failed error
	if d.cfg.Specs != nil {
		if own, failed = d.cfg.Specs(ctx); failed != nil {
			failed = fmt.Errorf("ask the driver for descriptions of its cards: %w", failed)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if failed == nil {
		d.own = own[:min(len(own), maxDriverSpecs)]
	}
	d.load(d.fingerprint())
	return failed
}

// fresh loads what has changed since the last time. The caller holds the lock.
func (d *Devices) fresh() {
	if stamp := d.fingerprint(); !d.loaded || stamp != d.stamp {
		d.load(stamp)
	}
}

// fingerprint changes with the files. They are looked at each time, because that costs less than a watcher that may fail.
func (d *Devices) fingerprint() string {
	var b strings.Builder
	for _, dir := range d.cfg.Dirs {
		files, err := files(dir)
		fmt.Fprintf(&b, "%s %v\n", dir, err)
		for _, f := range files {
			info, err := os.Stat(f)
			if err != nil {
				fmt.Fprintf(&b, "%s %v\n", f, err)
				continue
			}
			st, _ := info.Sys().(*syscall.Stat_t)
			fmt.Fprintf(&b, "%s %d %d %d %d %d\n", f, info.Size(), info.ModTime().UnixNano(), st.Ino, st.Mode, st.Uid)
		}
	}
	return b.String()
}

// files lists the descriptions of a folder, by name. A folder that is not there has none.
func files(dir string) ([]string, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o002 != 0 {
		return nil, errors.New("everybody can write to this folder")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".json" || ext == ".yaml") {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	if len(out) > maxFiles {
		return out[:maxFiles], fmt.Errorf("%d descriptions are more than %d: the rest is not read", len(out), maxFiles)
	}
	return out, nil
}

// readFile reads a description that only root, or who runs this program, can have written.
func readFile(name string) ([]byte, error) {
	// Not to wait for the other side of a FIFO.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Perm()&0o022 != 0 || st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return nil, errors.New("others than root can change it")
	}
	return io.ReadAll(io.LimitReader(f, maxSpecBytes+1))
}

// load reads and judges everything. The caller holds the lock.
func (d *Devices) load(stamp string) {
	d.loaded, d.stamp = true, stamp
	d.cards, d.faults = make(map[runtime.DeviceID]*card), nil
	var all []found
	for rank, dir := range d.cfg.Dirs {
		names, err := files(dir)
		if err != nil {
			d.faults = append(d.faults, Refusal{Source: dir, Rule: ruleFile, Reason: err.Error()})
		}
		for _, name := range names {
			raw, err := readFile(name)
			if err != nil {
				d.faults = append(d.faults, Refusal{Source: name, Rule: ruleFile, Reason: err.Error()})
				continue
			}
			all = append(all, found{name, rank, raw})
		}
	}
	for i, raw := range d.own {
		all = append(all, found{fmt.Sprintf("driver's description %d", i+1), len(d.cfg.Dirs), raw})
	}
	for _, f := range all {
		d.take(f)
	}
	d.refuseShared()
	for _, c := range d.cards {
		if c.refused != nil {
			d.faults = append(d.faults, c.refusal(*c.refused))
		}
	}
	slices.SortStableFunc(d.faults, compareRefusals)
}

// take judges one description and adds its devices.
func (d *Devices) take(f found) {
	desc, problems := d.policy.judge(f.raw)
	whole := false
	for _, p := range problems {
		if p.Device == "" {
			whole = true
			d.faults = append(d.faults, Refusal{Source: f.source, Kind: desc.kind, Rule: p.Rule, Reason: p.Reason})
		}
	}
	if whole {
		return
	}
	for _, dev := range desc.devices {
		id, ok := d.offered(desc.kind, dev)
		if !ok {
			continue
		}
		c := &card{id: id, source: f.source, rank: f.rank, name: dev.name, common: desc.common, own: dev.edits}
		for i, p := range dev.problems {
			if i == 0 {
				c.refused = &p
				continue
			}
			d.faults = append(d.faults, c.refusal(p))
		}
		if left := slices.Concat(c.common.leftOut, c.own.leftOut); len(left) > 0 {
			d.cfg.Log.Debug("left out of the description of a card", "card", id.UUID, "source", f.source, "parts", left)
		}
		d.add(c)
	}
}

// add keeps the card of the higher rank; two of one rank refuse each other.
func (d *Devices) add(c *card) {
	before, known := d.cards[c.id]
	switch {
	case !known || c.rank > before.rank:
		d.cards[c.id] = c
	case c.rank == before.rank && before.refused == nil:
		before.refused = &Problem{Device: c.name, Rule: ruleConflict, Reason: "it is described in " + c.source + " too"}
	}
}

// refuseShared refuses cards of which one node goes by two names: leased to two jobs they would be one.
func (d *Devices) refuseShared() {
	holders := make(map[string][]*card)
	for _, c := range d.cards {
		if c.refused != nil || c.isSlice() {
			continue
		}
		for p := range c.nodes(roleCard) {
			holders[p] = append(holders[p], c)
		}
	}
	for p, all := range holders {
		if len(all) < 2 || d.policy.off[ProtectNodes] {
			continue
		}
		for _, c := range all {
			c.refused = &Problem{Device: c.name, Rule: ruleNodeShared, Reason: fmt.Sprintf("%d names share the node %s", len(all), p)}
		}
	}
}

// nodes are the paths of a card's nodes of one role.
func (c *card) nodes(r role) map[string]bool {
	out := make(map[string]bool)
	for _, n := range c.own.nodes {
		if n.role == r {
			out[n.path] = true
		}
	}
	return out
}

func (c *card) isSlice() bool { return len(c.nodes(roleSlice)) > 0 }

func (c *card) refusal(p Problem) Refusal {
	return Refusal{Source: c.source, Kind: c.id.Class, Device: c.name, Rule: p.Rule, Reason: p.Reason}
}

func compareRefusals(a, b Refusal) int {
	return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Rule, b.Rule))
}

// sorted returns all cards in the order of their ids. The caller holds the lock.
func (d *Devices) sorted() []*card {
	return slices.SortedFunc(maps.Values(d.cards), func(a, b *card) int {
		return cmp.Or(cmp.Compare(a.id.Class, b.id.Class), cmp.Compare(a.id.UUID, b.id.UUID))
	})
}
