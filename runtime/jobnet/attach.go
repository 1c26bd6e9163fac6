//go:build linux

package jobnet

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"

	"haggle/runtime"
)

// Attached is a job's network as it was made.
type Attached struct {
	Interface string // the rig's end of the job's link
	Address   netip.Addr
	Gateway   netip.Addr // the rig's side; it answers nothing but ARP
	// UpBits and DownBits are what the job has of the line now, in bits a second; 0 for no bound. They change with the
	// number of jobs.
	UpBits, DownBits int64
}

// Traffic is what a job has received and sent, in bytes of IP packets that passed; what was refused is not in it.
type Traffic struct{ In, Out uint64 }

// Attach gives a job its network: pid is any process in the job's network namespace, and best one that has not begun to run
// the job's own program. It may be repeated, also with other limits, or when the job has been made anew under the same id:
// then its counters go on. A process in the rig's own network, or none, is a runtime.ErrConflict; a pool without a free address
// is a runtime.ErrUnavailable. With runtime.NetworkNone nothing is done.
func (n *Networks) Attach(ctx context.Context, job string, pid int, limit runtime.Network) (Attached, error) {
	if err := runtime.ValidateID(job); err != nil {
		return Attached{}, err
	}
	if limit.UpBits < 0 || limit.DownBits < 0 || (limit.Mode != runtime.NetworkNone && limit.Mode != runtime.NetworkInternet) {
		return Attached{}, fmt.Errorf("network of job %s: %w", job, runtime.ErrInvalidSpec)
	}
	if limit.Mode == runtime.NetworkNone {
		return Attached{}, nil
	}
	var made Attached
	err := n.locked(ctx, func(r *rig) error {
		_, known := n.state.Jobs[job]
		err := n.attach(ctx, r, job, pid, limit)
		if err == nil {
			made, err = n.reshape(r, job)
		}
		if err == nil {
			err = stillJob(pid, n.state.Jobs[job].Netns)
		}
		if err != nil && !known {
			_, undone := n.detach(context.WithoutCancel(ctx), r, job)
			err = errors.Join(err, undone)
		}
		return err
	})
	if err != nil {
		return Attached{}, fmt.Errorf("attach job %s: %w", job, err)
	}
	return made, nil
}

func (n *Networks) attach(ctx context.Context, r *rig, job string, pid int, limit runtime.Network) error {
	ns, id, err := openJob(pid, r)
	if err != nil {
		return err
	}
	defer ns.Close()
	for other, rec := range n.state.Jobs {
		if other != job && rec.Netns == id && stillJob(rec.Pid, id) == nil {
			return fmt.Errorf("process %d is in the network of job %s: %w", pid, other, runtime.ErrConflict)
		}
	}
	if err := n.count(r); err != nil {
		return err
	}
	n.surveyed = false // Run may not be there to notice changes.
	if err := n.ready(ctx, r); err != nil {
		return err
	}
	rec, change := n.state.Jobs[job], ""
	if rec == nil {
		slot, err := n.freeSlot(r)
		if err != nil {
			return err
		}
		rec = &record{Slot: slot}
		n.state.Jobs[job] = rec
		change = n.table().adding(n.tableJob(job))
		_, addr := addresses(n.cfg.Pool, slot)
		if err := n.forget(r, addr); err != nil {
			return err
		}
	}
	rec.Pid, rec.Netns, rec.Up, rec.Down = pid, id, limit.UpBits, limit.DownBits
	if err := n.save(true); err != nil {
		return err
	}
	before := n.state.Forwarding
	if err := n.routeForJobs(r); err != nil {
		return err
	}
	if !slices.Equal(before, n.state.Forwarding) {
		change = "" // not all that changes
	}
	if err := n.sync(ctx, r, change, job); err != nil {
		return err
	}
	return n.connect(r, job, rec, ns, n.house.mtu)
}

// freeSlot finds a pair of addresses that nobody on this machine has. Rigs of other names begin elsewhere in the same pool.
func (n *Networks) freeSlot(r *rig) (int, error) {
	links, err := r.links.LinkList()
	if err != nil {
		return 0, fmt.Errorf("interfaces: %w", err)
	}
	used := map[int]bool{}
	for _, rec := range n.state.Jobs {
		used[rec.Slot] = true
	}
	all, first := slots(n.cfg.Pool), 0
	if n.cfg.Name != DefaultName {
		h := fnv.New32a()
		_, _ = h.Write([]byte(n.cfg.Name)) // a hash takes everything
		first = int(h.Sum32() % uint32(all))
	}
	for i := range all {
		slot := (first + i) % all
		gateway, addr := addresses(n.cfg.Pool, slot)
		// A network as wide as the pool, or wider, is not ours to judge: Check tells its owner.
		taken := slices.ContainsFunc(n.house.taken, func(p netip.Prefix) bool {
			return p.Bits() > n.cfg.Pool.Bits() && (p.Contains(gateway) || p.Contains(addr))
		})
		named := slices.ContainsFunc(links, func(l netlink.Link) bool { return l.Attrs().Name == n.linkName(slot) })
		if !used[slot] && !taken && !named {
			return slot, nil
		}
	}
	return 0, fmt.Errorf("no address left in %s: %w", n.cfg.Pool, runtime.ErrUnavailable)
}

// Detach removes all that a job has here and returns its last count. A job that is not known is no error.
func (n *Networks) Detach(ctx context.Context, job string) (Traffic, error) {
	if err := runtime.ValidateID(job); err != nil {
		return Traffic{}, err
	}
	var last Traffic
	err := n.locked(ctx, func(r *rig) (err error) {
		last, err = n.detach(ctx, r, job)
		return err
	})
	if err != nil {
		return last, fmt.Errorf("detach job %s: %w", job, err)
	}
	return last, nil
}

func (n *Networks) detach(ctx context.Context, r *rig, job string) (Traffic, error) {
	rec := n.state.Jobs[job]
	// Without its link nothing more is counted.
	if err := n.disconnect(r, job, rec); err != nil {
		return Traffic{}, err
	}
	if rec == nil {
		return Traffic{}, n.forgetRules(ctx, r, job)
	}
	if err := n.count(r); err != nil {
		return Traffic{}, err
	}
	last := Traffic{In: rec.In, Out: rec.Out}
	gone := n.tableJob(job)
	delete(n.state.Jobs, job)
	if err := n.sync(ctx, r, n.table().removing(gone)); err != nil {
		n.state.Jobs[job] = rec // to be tried again
		return last, err
	}
	if err := n.forget(r, gone.addr); err != nil {
		return last, err
	}
	if err := n.save(true); err != nil {
		return last, err
	}
	_, err := n.reshape(r, "")
	return last, err
}

// forgetRules replaces a table that knows a job of which there is no record.
func (n *Networks) forgetRules(ctx context.Context, r *rig, job string) error {
	counters, err := r.counters(n.cfg.Name)
	if err != nil {
		return err
	}
	if _, known := counters[counterIn(job)]; !known {
		return nil
	}
	n.state.Listing = ""
	return n.ready(ctx, r)
}
