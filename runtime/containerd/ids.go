//go:build linux

package containerd

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/containerd/containerd/v2/core/mount"

	"haggle/runtime"
)

// Every job has a range of user and group ids of its own on the host, so that two jobs do not own each other's files and
// processes even where a wall between them falls.
//
// The default ranges lie where nobody's convention puts users (systemd's UIDS-GIDS document): 524288…1879048191 is taken by
// systemd-nspawn, 100000…600100000 by the sub-ids of Docker, Podman and LXC, 200000…2000200000 by SSSD for users of a
// directory, 2147352576…2147418111 by systemd for foreign images, and from 2³¹ on programs that take ids for signed numbers
// fail. 2000224256…2147352575 is free, which is room for 2245 jobs at a time.
const (
	idsPerJob     = 1 << 16
	defaultIDBase = 0x7739_0000 // 2000224256
	idLimit       = 0x7ffe_0000 // 2147352576: the first id past the ranges
)

// idRanges gives ranges to jobs. What it knows follows from the labels of containers. The zero value lacks base.
type idRanges struct {
	base uint32

	mu     sync.Mutex
	jobs   map[string]uint32   // the first id of each job
	spaces map[uint32]*os.File // a user namespace of each range that was ever used
}

// take gives a job the lowest free range. A job that has one keeps it.
func (r *idRanges) take(job string) (uint32, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if first, ok := r.jobs[job]; ok {
		return first, nil
	}
	taken := make(map[uint32]bool, len(r.jobs))
	for _, first := range r.jobs {
		taken[first] = true
	}
	for first := uint64(r.base); first < idLimit; first += idsPerJob {
		if !taken[uint32(first)] {
			r.set(job, uint32(first))
			return uint32(first), nil
		}
	}
	return 0, fmt.Errorf("%w: all ranges of user ids are taken", runtime.ErrNoRoom)
}

// adopt notes the range of a job that is there already.
func (r *idRanges) adopt(job string, first uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(job, first)
}

func (r *idRanges) set(job string, first uint32) {
	if r.jobs == nil {
		r.jobs = map[string]uint32{}
	}
	r.jobs[job] = first
}

// holders names the jobs that have a range.
func (r *idRanges) holders() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.jobs))
}

// release takes the range of a job of which nothing is left.
func (r *idRanges) release(job string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, job)
}

// namespace returns a user namespace that maps 0 and what follows to a range. It belongs to r.
func (r *idRanges) namespace(first uint32) (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.spaces[first]; f != nil {
		return f, nil
	}
	mapping := fmt.Sprintf("0:%d:%d", first, idsPerJob)
	f, err := mount.GetUsernsFD(mapping, mapping)
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	if r.spaces == nil {
		r.spaces = map[uint32]*os.File{}
	}
	r.spaces[first] = f
	return f, nil
}

func (r *idRanges) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.spaces {
		_ = f.Close() // only a name for a namespace
	}
	r.spaces = nil
}
