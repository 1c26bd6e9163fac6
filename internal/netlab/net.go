//go:build linux

package netlab

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Family says which versions of IP something speaks.
type Family uint8

// The families.
const (
	Both Family = iota
	OnlyV4
	OnlyV6
)

func (f Family) v4() bool { return f != OnlyV6 }
func (f Family) v6() bool { return f != OnlyV4 }

// Net is an internet. One goroutine at a time builds and changes it; the commands of its hosts may run at once.
type Net struct {
	remove func(space string) error // outlives the context in which it was made
	core   string                   // the namespace that forwards between all that is attached
	prefix string                   // of every namespace's name
	spaces []string
	links  int
	hosts  int // addresses given on the internet
}

const (
	// namePrefix begins the name of every namespace, before the id of the process that made it.
	namePrefix = "hgn"
	netnsDir   = "/run/netns"
)

// New makes an internet with nothing on it. What runs of other processes left behind is swept first. Close must be called.
func New(ctx context.Context) (*Net, error) {
	if err := sweep(ctx); err != nil {
		return nil, err
	}
	// This process may have others, and they must not meet.
	n := &Net{prefix: fmt.Sprintf("%s%dx%08x-", namePrefix, os.Getpid(), rand.Uint32())}
	n.remove = func(space string) error { return remove(context.WithoutCancel(ctx), space) }
	core, err := n.space(ctx, "core")
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	n.core = core
	if err := forward(ctx, core); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// Close removes all namespaces. Programs that still run in one are killed, and named in the error.
func (n *Net) Close() error {
	var errs []error
	for i := len(n.spaces) - 1; i >= 0; i-- {
		errs = append(errs, n.remove(n.spaces[i]))
	}
	n.spaces = nil
	return errors.Join(errs...)
}

// space makes a namespace whose loopback is up.
func (n *Net) space(ctx context.Context, name string) (string, error) {
	full := n.prefix + name
	if err := ip(ctx, "", "netns add "+full); err != nil {
		return "", err
	}
	n.spaces = append(n.spaces, full)
	// An address of ours is nobody else's: there is nothing to wait for before it is used.
	// And the first of two addresses may go without the second.
	if err := set(ctx, full, "net/ipv6/conf/default/accept_dad=0", "net/ipv6/conf/all/accept_dad=0", "net/ipv4/conf/all/promote_secondaries=1"); err != nil {
		return "", err
	}
	return full, ip(ctx, full, "link set lo up")
}

// Public puts a host on the internet, with public addresses and no router before it. Every one is in a /16 and a /32 of its own,
// as strangers' machines are.
func (n *Net) Public(ctx context.Context, name string, family Family) (*Host, error) {
	space, err := n.space(ctx, name)
	if err != nil {
		return nil, err
	}
	h := &Host{space: space, Device: "eth0", family: family, at: n}
	return h, n.attach(ctx, h)
}

// attach links a host to the internet.
func (n *Net) attach(ctx context.Context, h *Host) error {
	n.links++
	h.port = "v" + strconv.Itoa(n.links)
	if err := cable(ctx, h.space, h.Device, n.core, h.port); err != nil {
		return err
	}
	lines := []string{"link set " + h.port + " up"}
	if h.family.v4() {
		lines = append(lines, "addr add "+gateway4+"/32 dev "+h.port)
	}
	if h.family.v6() {
		lines = append(lines, "addr add "+gateway6+"/64 dev "+h.port)
	}
	if err := ip(ctx, n.core, lines...); err != nil {
		return err
	}
	return n.address(ctx, h)
}

// Every link of the internet ends at the same two addresses, which are good on that link only.
const (
	gateway4 = "169.254.1.1"
	gateway6 = "fe80::1"
)

// address gives a host the next public addresses in place of those it has.
func (n *Net) address(ctx context.Context, h *Host) error {
	n.hosts++
	inside := []string{"link set " + h.Device + " up"}
	var core []string
	if h.family.v4() {
		// A block of home lines' addresses: the libraries take test networks for what they are.
		h.V4 = netip.AddrFrom4([4]byte{45, byte(n.hosts), 0, 1})
		inside = append(inside, fmt.Sprintf("addr add %s/32 dev %s", h.V4, h.Device),
			"route replace "+gateway4+" dev "+h.Device+" scope link", "route replace default via "+gateway4+" dev "+h.Device+" onlink")
		core = append(core, fmt.Sprintf("route add %s/32 dev %s", h.V4, h.port))
	}
	if h.family.v6() {
		h.V6 = netip.MustParseAddr(fmt.Sprintf("2a0d:%x::1", n.hosts))
		inside = append(inside, fmt.Sprintf("addr add %s/128 dev %s", h.V6, h.Device),
			"route replace ::/0 via "+gateway6+" dev "+h.Device)
		core = append(core, fmt.Sprintf("route add %s/128 dev %s", h.V6, h.port))
		if h.behind6.IsValid() { // what a router has been given for its LAN comes by the same link
			core = append(core, fmt.Sprintf("route replace %s via %s dev %s onlink", h.behind6, h.V6, h.port))
		}
	}
	if err := ip(ctx, h.space, inside...); err != nil {
		return err
	}
	return ip(ctx, n.core, core...)
}

// sweep removes namespaces whose process is gone, with what runs in them.
func sweep(ctx context.Context) error {
	entries, err := filepath.Glob(filepath.Join(netnsDir, namePrefix+"*x*-*"))
	if err != nil {
		return err
	}
	for _, path := range entries {
		name := filepath.Base(path)
		text, _, _ := strings.Cut(strings.TrimPrefix(name, namePrefix), "x")
		pid, err := strconv.Atoi(text)
		if err != nil || pid <= 0 || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue // not ours, or still in use
		}
		if err := end(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
