//go:build linux

package jobnet

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// shares divides a line among jobs: equally, none above its own limit, and what one leaves goes to the others. Limits and the
// total are bits a second; 0 means no bound, in the result too.
func shares(total int64, limits []int64) []int64 {
	given := slices.Clone(limits)
	if total == 0 {
		return given
	}
	order := make([]int, len(limits))
	for i := range order {
		order[i] = i
	}
	// The modest first: what they do not take is known before the others are served. No limit is the highest.
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(uint64(limits[a]-1), uint64(limits[b]-1))
	})
	for served, i := range order {
		part := max(total/int64(len(order)-served), 1)
		if limits[i] == 0 || limits[i] > part {
			given[i] = part
		}
		total = max(total-given[i], 0)
	}
	return given
}

// part is so many thousandths of a line.
func part(line, permille int64) int64 {
	hi, lo := bits.Mul64(uint64(line), uint64(permille))
	q, _ := bits.Div64(hi, lo, 1000) // hi is below 1000: a line is at most maxRate
	return int64(q)
}

const (
	minBurst = 16 << 10 // bytes: holds a few full packets at any rate
	minQueue = 16 << 10 // bytes
	maxTBF   = 1 << 41  // bits a second: above it the kernel's sizes overflow, and no link is that fast
)

// shape bounds what leaves through a link, in bits a second; 0 lifts the bound. A burst is what the rate carries in 20 ms, the
// queue what it carries in 100 ms: longer queues would only delay the job's own packets.
func shape(h *netlink.Handle, link netlink.Link, rate int64) error {
	attrs := netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	if rate <= 0 || rate > maxTBF {
		have, err := h.QdiscList(link)
		if err != nil {
			return fmt.Errorf("bandwidth of %s: %w", link.Attrs().Name, err)
		}
		for _, q := range have {
			if _, ours := q.(*netlink.Tbf); ours {
				err = h.QdiscDel(q)
			}
		}
		if err != nil {
			return fmt.Errorf("lift the bandwidth of %s: %w", link.Attrs().Name, err)
		}
		return nil
	}
	bytes := max(uint64(rate)/8, 1)
	burst := uint32(min(max(bytes/50, minBurst), 1<<30))
	tbf := &netlink.Tbf{
		QdiscAttrs: attrs,
		Rate:       bytes,
		Limit:      uint32(min(max(bytes/10, minQueue), 1<<30)),
		Buffer:     netlink.Xmittime(bytes, burst),
	}
	if err := h.QdiscReplace(tbf); err != nil {
		return fmt.Errorf("bandwidth of %s: %w", link.Attrs().Name, err)
	}
	return nil
}

// reshape divides the line among the jobs that there are, and returns what one of them has now.
func (n *Networks) reshape(r *rig, job string) (Attached, error) {
	ids := slices.Sorted(maps.Keys(n.state.Jobs))
	ups, downs := make([]int64, len(ids)), make([]int64, len(ids))
	for i, id := range ids {
		ups[i], downs[i] = n.state.Jobs[id].Up, n.state.Jobs[id].Down
	}
	p := n.cfg.Profile
	ups = shares(part(p.LineUp, p.ShareUpPermille), ups)
	downs = shares(part(p.LineDown, p.ShareDownPermille), downs)
	var one Attached
	for i, id := range ids {
		rec := n.state.Jobs[id]
		if !n.has(Bandwidth) {
			ups[i], downs[i] = 0, 0
		}
		err := n.shapeJob(r, rec, ups[i], downs[i])
		if id == job {
			gateway, addr := addresses(n.cfg.Pool, rec.Slot)
			one = Attached{
				Interface: n.linkName(rec.Slot), Address: addr, Gateway: gateway, UpBits: ups[i], DownBits: downs[i],
			}
			if err != nil {
				return Attached{}, err
			}
		} else if err != nil && !missing(err) {
			n.cfg.Log.Warn("bandwidth of a job could not be changed", "job", id, "err", err)
		}
	}
	return one, nil
}

// shapeJob bounds both directions: what comes in on the rig's end, what goes out on the job's end, where it waits inside the job.
func (n *Networks) shapeJob(r *rig, rec *record, up, down int64) error {
	outer, err := r.links.LinkByName(n.linkName(rec.Slot))
	if err != nil {
		return fmt.Errorf("interface %s: %w", n.linkName(rec.Slot), err)
	}
	if err := shape(r.links, outer, down); err != nil {
		return err
	}
	ns, id, err := openJob(rec.Pid, r)
	if errors.Is(err, runtime.ErrConflict) {
		return fmt.Errorf("%w: %w", unix.ENODEV, err)
	} else if err != nil {
		return err
	}
	defer ns.Close()
	if id != rec.Netns {
		return fmt.Errorf("process %d is another one now: %w", rec.Pid, unix.ENODEV)
	}
	inner, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("links of the job: %w", err)
	}
	defer inner.Close()
	link, err := inner.LinkByName(jobLink)
	if err != nil {
		return fmt.Errorf("interface of the job: %w", err)
	}
	if link.Attrs().ParentIndex != outer.Attrs().Index {
		return fmt.Errorf("the job's interface is not ours: %w", runtime.ErrConflict)
	}
	return shape(inner, link, up)
}
