//go:build linux

package hostile_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// online is a job with the internet.
func (h *house) online(e *engine, args ...string) runtime.Spec {
	s := h.spec(e, args...)
	s.Network.Mode = runtime.NetworkInternet
	return s
}

func TestAJobReachesTheInternetAndNothingOfTheHouse(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	attempts := []attempt{
		{"what it may reach does answer", fmt.Sprintf("internet=tcp/%[1]s:80,udp/%[1]s:7,tcp/%[2]s:22", internet, internet2)},
		{"a machine of the household is out of reach", "tcp=" + lanHost + ":80," + lanHost + ":22"},
		{"datagrams to the household are lost", "udp=" + lanHost + ":7"},
		{"the rig's address in the household is out of reach", "tcp=" + rigLAN + ":22," + rigLAN + ":80"},
		{"the rig's public address is out of reach", "tcp=" + rigPublic + ":22," + rigPublic + ":80"},
		{"the rig takes no datagrams either", "udp=" + rigLAN + ":7," + rigPublic + ":7"},
		{"its own gateway is out of reach", "gateway=22,80,53"},
		{"the metadata address is out of reach", "tcp=" + metadata + ":80," + metadata + ":22"},
		{"a neighbour on the provider's public network is out of reach", "tcp=" + publicHost + ":80," + gateway + ":80"},
		{"what the owner rejects is out of reach", "tcp=" + ownersReject + ":80"},
		{"mail is not taken", "tcp=" + internet + ":25," + internet2 + ":25"},
		{"a name that leads to the household leads nowhere", "rebind=lan.test,80"},
		{"a name that leads to the rig leads nowhere", "rebind=rig.test,22"},
		{"a name that leads to the metadata address leads nowhere", "rebind=metadata.test,80"},
		{"groups and broadcasts reach nobody", "udp=224.0.0.251:5353,255.255.255.255:7,192.168.77.255:7,203.0.113.255:7"},
		{"raw sockets are refused with a network as well", "raw-socket"},
		{"IPv6 neighbours and routers are not met", "ipv6"},
		{"its interface and the limit on it cannot be changed", "net-admin"},
		{"it cannot send with another's address", "spoof=" + lanHost + "," + internet},
		{"a scan gets as far as the bound on new connections", "scan=" + internet2 + ",600,320"},
	}
	spec := h.online(h.engine, append([]string{"/attacker", "attack"}, items(attempts)...)...)
	o := h.run(t, h.engine, spec)
	o.each(t, attempts)
	if r, _ := o.result("internet"); !r.Holds {
		t.Fatal("where nothing can be reached, no wall was tried")
	}
	t.Run("the internet sees the rig's address and not the job's", func(t *testing.T) {
		if from := h.world.sender("haggle?"); !strings.HasPrefix(from, rigPublic+":") {
			t.Errorf("it saw %q", from)
		}
		if from := h.world.sender("spoofed"); from != "" {
			t.Errorf("a datagram with another's address arrived from %s", from)
		}
	})
}

func TestNothingComesIntoAJob(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	spec := h.online(h.engine, "/attacker", "attack", "listen=4444,50")
	h.start(t, h.engine, spec)
	h.await(t, h.engine, spec.ID, `"listening"`)
	address := h.address(t, h.engine, spec.ID)
	for _, c := range h.callers() {
		t.Run("from "+c.name, func(t *testing.T) {
			if err := c.call(address + ":4444"); err == nil || errors.Is(err, unix.ECONNREFUSED) {
				t.Errorf("%s reached the job: %v", c.name, err)
			}
		})
	}
	t.Run("from another job", func(t *testing.T) {
		o := h.run(t, h.engine, h.online(h.engine, "/attacker", "attack", "tcp="+address+":4444"))
		o.held(t, "tcp")
	})
	if err := h.engine.Stop(deadline(t), spec.ID, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	o, err := h.finish(t, h.engine, spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	o.held(t, "listen")
}

// caller is somebody who would like to connect to a job.
type caller struct{ name, namespace, address string }

func (h *house) callers() []caller {
	return []caller{
		{"the household", h.world.lan, lanHost},
		{"the internet", h.world.net, internet},
		{"the provider's network", h.world.net, publicHost},
		{"the rig's address in the household", h.world.rig, rigLAN},
		{"the rig itself", h.world.rig, ""},
	}
}

// call connects to address.
func (c caller) call(address string) error {
	return within(c.namespace, func() error {
		d := net.Dialer{Timeout: 700 * time.Millisecond}
		if c.address != "" {
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(c.address)}
		}
		conn, err := d.Dial("tcp4", address)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
}

// address is a job's address on its own network.
func (h *house) address(t *testing.T, e *engine, id string) string {
	t.Helper()
	pid, err := h.pid(e, id)
	if err != nil {
		t.Fatal(err)
	}
	address := ""
	err = within(fmt.Sprintf("/proc/%d/ns/net", pid), func() error {
		all, err := net.InterfaceAddrs()
		for _, a := range all {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
				address = n.IP.String()
			}
		}
		return err
	})
	if err != nil || address == "" {
		t.Fatalf("job %s has no address: %v", id, err)
	}
	return address
}

func TestAPacketWithAnothersAddressGoesNowhereWhoeverSendsIt(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	if from := h.forge(t, h.engine); from != "" {
		t.Errorf("it arrived, from %s", from)
	}
}

// forge sends, as the host's root in a job's network, a datagram with an address of somebody else's, then one with the job's
// own. It returns from where the first one arrived.
func (h *house) forge(t *testing.T, e *engine) string {
	t.Helper()
	spec := h.online(e, "/attacker", "attack", "listen=4444,50")
	h.start(t, e, spec)
	h.await(t, e, spec.ID, `"listening"`)
	pid, err := h.pid(e, spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	own := h.address(t, e, spec.ID)
	forged, honest := "forged in "+spec.ID, "honest in "+spec.ID
	err = within(fmt.Sprintf("/proc/%d/ns/net", pid), func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		to := &unix.SockaddrInet4{Addr: [4]byte(net.ParseIP(internet).To4())}
		for source, text := range map[string]string{"198.51.100.7": forged, own: honest} {
			if err := unix.Sendto(fd, datagram(source, internet, text), 0, to); err != nil && source == own {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for ctx := deadline(t); h.world.sender(honest) == ""; { // the honest one was sent last or first; both are on one wire
		if ctx.Err() != nil {
			t.Fatal("not even the honest datagram arrived")
		}
	}
	return h.world.sender(forged)
}

// datagram is a UDP packet to port 7 without checksums, which the kernel fills in or does without.
func datagram(from, to, text string) []byte {
	b := make([]byte, 28, 28+len(text))
	b[0], b[8], b[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(b[2:], uint16(28+len(text)))
	copy(b[12:], net.ParseIP(from).To4())
	copy(b[16:], net.ParseIP(to).To4())
	binary.BigEndian.PutUint16(b[20:], 4000)
	binary.BigEndian.PutUint16(b[22:], 7)
	binary.BigEndian.PutUint16(b[24:], uint16(8+len(text)))
	return append(b, text...)
}

func TestTheRulesComeBackWhenSomebodyFlushesThem(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	spec := h.online(h.engine, "/probe", "count", "200")
	h.start(t, h.engine, spec)
	nft := func(args ...string) (string, error) {
		out, err := exec.CommandContext(deadline(t), "ip", append([]string{"netns", "exec", h.world.rig, "nft"}, args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := nft("flush", "ruleset"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for ctx := deadline(t); ; {
		if out, err := nft("list", "table", "inet", "hgh_full"); err == nil && strings.Contains(out, "192.168.0.0") {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the table did not come back")
		}
	}
	o := h.run(t, h.engine, h.online(h.engine, "/attacker", "attack", "tcp="+lanHost+":80", "internet=tcp/"+internet+":80"))
	o.held(t, "tcp")
	o.held(t, "internet")
}

func TestSocketsWithoutAFileOfTheHostAreOutOfReach(t *testing.T) {
	h := only.get(t)
	h.unharmed(t)
	var names []string
	for _, ns := range []string{"/proc/self/ns/net", h.world.rig} {
		name := fmt.Sprintf("hghost-%d", len(names))
		err := within(ns, func() error {
			l, err := new(net.ListenConfig).Listen(context.Background(), "unix", "@"+name)
			if err == nil {
				t.Cleanup(func() { _ = l.Close() })
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	h.run(t, h.engine, h.online(h.engine, "/attacker", "attack", "abstract-socket="+strings.Join(names, ","))).held(t, "abstract-socket")
}
