//go:build linux

package netlab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Host is a machine: a namespace with one cable.
type Host struct {
	Device string     // of its cable
	V4, V6 netip.Addr // its addresses; invalid where it has none

	space   string
	port    string // the far end of its cable
	family  Family
	at      place
	behind6 netip.Prefix // of a router: what it has for its LAN
}

// place is where a cable leads: the internet, or a router's LAN.
type place interface {
	// address gives a host new addresses beside those that it has.
	address(ctx context.Context, h *Host) error
	// forget takes back the way to some addresses of a host.
	forget(ctx context.Context, h *Host, v4, v6 netip.Addr) error
	// farEnd is the namespace of the far end of a cable.
	farEnd() string
}

func (n *Net) farEnd() string { return n.core }

// forget implements place.
func (n *Net) forget(ctx context.Context, _ *Host, v4, v6 netip.Addr) error {
	var lines []string
	if v4.IsValid() {
		lines = append(lines, fmt.Sprintf("route del %s/32", v4))
	}
	if v6.IsValid() {
		lines = append(lines, fmt.Sprintf("route del %s/128", v6))
	}
	return ip(ctx, n.core, lines...)
}

// Namespace is the path of the host's network namespace.
func (h *Host) Namespace() string { return filepath.Join(netnsDir, h.space) }

// Command makes a command that runs on the host. It sees the machine's files.
func (h *Host) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return in(ctx, h.space, name, args...)
}

// Run runs a command on the host and returns what it wrote.
func (h *Host) Run(ctx context.Context, name string, args ...string) (string, error) {
	out, err := h.Command(ctx, name, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s on %s: %w: %s", name, h.space, err, out)
	}
	return string(out), nil
}

// Readdress gives the host other addresses in place of its own, as an internet provider does at night: first the new ones come, then
// the old ones go. What was open to the old ones is cut without a word.
func (h *Host) Readdress(ctx context.Context) error {
	v4, v6 := h.V4, h.V6
	if err := h.at.address(ctx, h); err != nil {
		return err
	}
	if err := h.at.forget(ctx, h, v4, v6); err != nil {
		return err
	}
	var lines []string
	if v4.IsValid() {
		lines = append(lines, fmt.Sprintf("addr del %s dev %s", h.at4(v4), h.Device))
	}
	if v6.IsValid() {
		lines = append(lines, fmt.Sprintf("addr del %s dev %s", h.at6(v6), h.Device))
	}
	return ip(ctx, h.space, lines...)
}

// SetLink plugs the host's cable in or out.
func (h *Host) SetLink(ctx context.Context, up bool) error {
	state := "down"
	if up {
		state = "up"
	}
	return ip(ctx, h.at.farEnd(), "link set "+h.port+" "+state)
}

// Traffic counts the bytes that the host has received and sent by its cable.
func (h *Host) Traffic(ctx context.Context) (received, sent int64, err error) {
	out, err := h.Command(ctx, "cat", "/proc/net/dev").Output()
	if err != nil {
		return 0, 0, fmt.Errorf("count the traffic of %s: %w", h.space, err)
	}
	for line := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(line, ":")
		if f := strings.Fields(rest); strings.TrimSpace(name) == h.Device && len(f) > 8 {
			if received, err = strconv.ParseInt(f[0], 10, 64); err != nil {
				return 0, 0, err
			}
			sent, err = strconv.ParseInt(f[8], 10, 64)
			return received, sent, err
		}
	}
	return 0, 0, fmt.Errorf("count the traffic of %s: there is no %s: %w", h.space, h.Device, os.ErrNotExist)
}
