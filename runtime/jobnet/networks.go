//go:build linux

package jobnet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	beat       = time.Second // between looks at the counters and the rules
	saveEvery  = 5           // beats
	surveyEach = 10          // beats; a change of addresses or routes is noticed at once
)

// Networks are the networks of a rig's jobs. Its methods may be called concurrently. All that it makes stays until Detach or
// Purge, and a new one with the same Dir and Netns goes on with it.
type Networks struct {
	cfg    Config
	prefix string

	mu       sync.Mutex // guards all below, and the namespace against our own second hand
	opened   bool
	state    state
	dirty    bool
	house    house
	surveyed bool
	avoid    []netip.Prefix
	gen      uint32 // of the rules when they were last known to be right
}

// New checks the configuration. It touches nothing.
func New(cfg Config) (*Networks, error) {
	cfg.Profile.Reject = slices.Clone(cfg.Profile.Reject)
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("networks: %w", err)
	}
	return &Networks{cfg: cfg, prefix: interfacePrefix(cfg.Name)}, nil
}

func (n *Networks) has(protection string) bool { return !slices.Contains(n.cfg.Without, protection) }

// Run installs the table and keeps it: rules that someone removes or changes are put back, the networks that the rig comes
// into are closed to jobs, and counters are read and stored. It returns when ctx ends, and leaves everything in place.
// An error is returned only when the table cannot be installed at first; later ones are logged and tried again.
func (n *Networks) Run(ctx context.Context) error {
	r, err := openRig(n.cfg.Netns)
	if err != nil {
		return err
	}
	defer r.close()
	rules, err := nl.SubscribeAt(r.ns, netns.None(), unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		return fmt.Errorf("watch the rules: %w", err)
	}
	routes, err := nl.SubscribeAt(r.ns, netns.None(), unix.NETLINK_ROUTE,
		unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE)
	if err != nil {
		rules.Close()
		return fmt.Errorf("watch the routes: %w", err)
	}
	rulesMoved, routesMoved := make(chan struct{}, 1), make(chan struct{}, 1)
	var watchers sync.WaitGroup
	watchers.Go(func() { poke(rules, rulesMoved) })
	watchers.Go(func() { poke(routes, routesMoved) })
	defer watchers.Wait()
	defer routes.Close()
	defer rules.Close()

	if err := n.look(ctx, r, true); err != nil && ctx.Err() == nil {
		return err
	}
	return n.keep(ctx, r, rulesMoved, routesMoved)
}

// keep looks again and again until ctx ends.
func (n *Networks) keep(ctx context.Context, r *rig, rulesMoved, routesMoved <-chan struct{}) error {
	clock := time.NewTicker(beat)
	defer clock.Stop()
	beats, survey, failing := 0, false, false
	for {
		select {
		case <-ctx.Done():
			return n.remember(r)
		case <-rulesMoved:
		case <-routesMoved:
			survey = true
		case <-clock.C:
			beats++
			survey = survey || beats%surveyEach == 0
		}
		err := n.look(ctx, r, survey)
		if err == nil && beats >= saveEvery {
			beats, err = 0, n.remember(r)
		}
		if err != nil && ctx.Err() == nil && !failing {
			n.cfg.Log.Warn("networks of jobs are not as they should be", "err", err)
		}
		survey, failing = survey && err != nil, err != nil
	}
}

// poke wakes the keeper whenever the kernel has something to say. What it says does not matter, nor whether it was lost.
func poke(s *nl.NetlinkSocket, wake chan<- struct{}) {
	for {
		if _, _, err := s.Receive(); err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EAGAIN) &&
			!errors.Is(err, unix.EINTR) {
			return // closed
		}
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// look counts, and puts right what is not as it should be.
func (n *Networks) look(ctx context.Context, r *rig, survey bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	first := !n.opened
	if err := n.open(); err != nil {
		return err
	}
	if survey {
		n.surveyed = false
	}
	if err := n.count(r); err != nil {
		return err
	}
	if !first && !n.has(Repair) {
		return nil
	}
	return n.ready(ctx, r)
}

// remember stores the counters.
func (n *Networks) remember(r *rig) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.open(); err != nil {
		return err
	}
	if err := n.count(r); err != nil {
		return err
	}
	return n.save(false)
}

// open reads the state once. The caller holds the lock, here and below.
func (n *Networks) open() error {
	if n.opened {
		return nil
	}
	s, err := loadState(n.cfg.Dir)
	if err != nil {
		return err
	}
	n.state, n.opened = s, true
	return nil
}

func (n *Networks) save(always bool) error {
	if !n.dirty && !always {
		return nil
	}
	if err := n.state.save(n.cfg.Dir); err != nil {
		return err
	}
	n.dirty = false
	return nil
}

// count takes over what the kernel has counted, and begins a new month with a new sum.
func (n *Networks) count(r *rig) error {
	if month := n.cfg.Clock().Format("2006-01"); month != n.state.Month {
		n.state.Month, n.state.MonthBytes, n.state.Spent, n.dirty = month, 0, 0, true
	}
	if len(n.state.Jobs) == 0 {
		return nil
	}
	now, err := r.counters(n.cfg.Name)
	if err != nil {
		return err
	}
	for id, rec := range n.state.Jobs {
		more := uint64(0)
		if v, ok := now[counterIn(id)]; ok {
			more += count(&rec.In, &rec.RawIn, v)
		}
		if v, ok := now[counterOut(id)]; ok {
			more += count(&rec.Out, &rec.RawOut, v)
		}
		if more > 0 {
			n.state.MonthBytes += more
			n.dirty = true
		}
	}
	return n.countMonth(r)
}

// countMonth asks the kernel whether the month's traffic is used up. What has passed stays just below the cap, since the packet
// that would have gone over it did not pass.
func (n *Networks) countMonth(r *rig) error {
	if !n.table().capped() {
		return nil
	}
	used, err := r.quotas(n.cfg.Name)
	if err != nil {
		return err
	}
	if most := n.cfg.Profile.MonthlyBytes; used["month"] >= uint64(most) {
		n.state.Spent, n.dirty = most, true
		n.cfg.Log.Warn("jobs have used up the month's traffic", "month", n.state.Month, "bytes", most)
	}
	return nil
}

// ready brings the rig's namespace into the state that jobs need: ways out, settings, rules.
func (n *Networks) ready(ctx context.Context, r *rig) error {
	if !n.surveyed {
		h, err := r.survey(n.prefix)
		if err != nil {
			return err
		}
		n.house, n.surveyed = h, true
	}
	if len(n.state.Jobs) > 0 {
		if err := n.routeForJobs(r); err != nil {
			return err
		}
	}
	return n.sync(ctx, r, "")
}

// routeForJobs switches on forwarding where it is off, also when someone has switched it off since.
func (n *Networks) routeForJobs(r *rig) error {
	ours, err := r.openWays(n.house.uplinks, n.state.Forwarding)
	if err != nil {
		return err
	}
	if !slices.Equal(ours, n.state.Forwarding) {
		n.state.Forwarding, n.dirty = ours, true
	}
	links, err := n.ownLinks(r)
	if err != nil {
		return err
	}
	return inside(r.ns, func() error {
		for _, l := range links {
			// A link may vanish meanwhile, with its job.
			if err := apply([]setting{{forwardingOf(l.Attrs().Name), "1"}}, gone); err != nil {
				return err
			}
		}
		return nil
	})
}

// Avoid sets more that jobs must not reach, beside Profile.Reject, such as the house's own address as the internet sees it,
// through which a router may let them back in. Each call replaces the one before.
func (n *Networks) Avoid(ctx context.Context, networks []netip.Prefix) error {
	return n.locked(ctx, func(r *rig) error {
		n.avoid = slices.Clone(networks)
		return n.ready(ctx, r)
	})
}

// locked runs do with the rig's namespace open and the state read.
func (n *Networks) locked(ctx context.Context, do func(r *rig) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	r, err := openRig(n.cfg.Netns)
	if err != nil {
		return err
	}
	defer r.close()
	if err := n.open(); err != nil {
		return err
	}
	return do(r)
}
