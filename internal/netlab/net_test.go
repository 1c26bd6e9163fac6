//go:build linux

package netlab_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"haggle/internal/netlab"
)

// socket is a UDP socket on a host.
type socket struct {
	t *testing.T
	*net.UDPConn
}

// listen opens a socket on a host. A port of 0 is any.
func listen(t *testing.T, h *netlab.Host, port uint16) socket {
	t.Helper()
	var c *net.UDPConn
	within(t, h, func() {
		var err error
		if c, err = net.ListenUDP("udp", &net.UDPAddr{Port: int(port)}); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() { _ = c.Close() })
	return socket{t, c}
}

// within runs a function in a host's network: sockets stay in the network that they were made in.
func within(t *testing.T, h *netlab.Host, do func()) {
	t.Helper()
	runtime.LockOSThread()
	own := must[*os.File](t)(os.Open("/proc/thread-self/ns/net"))
	defer own.Close()
	other := must[*os.File](t)(os.Open(h.Namespace()))
	defer other.Close()
	if err := unix.Setns(int(other.Fd()), unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); err != nil {
			t.Fatal(err) // the thread stays locked, and ends with its goroutine
		}
		runtime.UnlockOSThread()
	}()
	do()
}

func (s socket) port() uint16 { return s.LocalAddr().(*net.UDPAddr).AddrPort().Port() }

func (s socket) send(to netip.AddrPort, text string) {
	s.t.Helper()
	if _, err := s.WriteToUDPAddrPort([]byte(text), to); err != nil {
		s.t.Fatal(err)
	}
}

// receive waits for the next packet.
func (s socket) receive() (text string, from netip.AddrPort) {
	s.t.Helper()
	_ = s.SetReadDeadline(time.Now().Add(patience)) // a socket of ours has deadlines
	data := make([]byte, 100)
	n, from, err := s.ReadFromUDPAddrPort(data)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data[:n]), netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
}

// seen sends a packet and returns where it came from, as the other side sees it.
func (s socket) seen(to socket, at netip.Addr) netip.AddrPort {
	s.t.Helper()
	s.send(netip.AddrPortFrom(at, to.port()), "hello")
	text, from := to.receive()
	if text != "hello" {
		s.t.Fatalf("%s received %q", at, text)
	}
	return from
}

// wantUnasked wants a packet that nobody asked for to be dropped on its way: of two that are sent, the one that was asked for is
// the first that comes.
func wantUnasked(t *testing.T, inside, asked, stranger socket, at netip.AddrPort) {
	t.Helper()
	stranger.send(at, "unasked")
	asked.send(at, "asked")
	if text, _ := inside.receive(); text != "asked" {
		t.Errorf("the router lets in a packet that is %s", text)
	}
}

func TestAHomeRouterKeepsPortsAndACarrierDoesNot(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	ctx := t.Context()
	first, second := must[*netlab.Host](t)(n.Public(ctx, "first", netlab.Both)), must[*netlab.Host](t)(n.Public(ctx, "second", netlab.Both))
	stranger := must[*netlab.Host](t)(n.Public(ctx, "stranger", netlab.Both))
	one, two, three := listen(t, first, 0), listen(t, second, 0), listen(t, stranger, 0)

	home := must[*netlab.Router](t)(n.Router(ctx, "home", netlab.PortPreserving, netlab.Both))
	inside := listen(t, must[*netlab.Host](t)(home.Host(ctx, "inside")), 4701)
	at := inside.seen(one, first.V4)
	if want := netip.AddrPortFrom(home.Outside().V4, 4701); at != want || inside.seen(two, second.V4) != want {
		t.Errorf("a home router shows %s, want %s", at, want)
	}
	wantUnasked(t, inside, one, three, at)
	if at := inside.seen(one, first.V6); at.Addr() == home.Outside().V6 || !at.Addr().Is6() || at.Port() != 4701 {
		t.Errorf("a host with IPv6 shows %s", at)
	} else {
		wantUnasked(t, inside, one, three, at)
	}

	carrier := must[*netlab.Router](t)(n.Carrier(ctx, "carrier", netlab.Symmetric))
	customer := must[*netlab.Router](t)(carrier.Router(ctx, "customer", netlab.PortPreserving))
	deep := listen(t, must[*netlab.Host](t)(customer.Host(ctx, "deep")), 4701)
	a, b := deep.seen(one, first.V4), deep.seen(two, second.V4)
	if a.Addr() != carrier.Outside().V4 || b.Addr() != a.Addr() {
		t.Errorf("a customer's packets come from %s and %s, not the carrier's %s", a, b, carrier.Outside().V4)
	}
	if a.Port() == b.Port() { // by chance once in 64 000 runs
		t.Errorf("a symmetric router takes port %d twice", a.Port())
	}
	wantUnasked(t, deep, one, three, a)
}

func TestALANIsReachedFromItselfOnly(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	ctx := t.Context()
	lan := must[*netlab.Router](t)(n.LAN(ctx, "lan", netlab.Both))
	a, b := must[*netlab.Host](t)(lan.Host(ctx, "a")), must[*netlab.Host](t)(lan.Host(ctx, "b"))
	one, two := listen(t, a, 0), listen(t, b, 0)
	if from := one.seen(two, b.V4); from.Addr() != a.V4 {
		t.Errorf("a's packet comes from %s, not %s", from, a.V4)
	}
	if from := one.seen(two, b.V6); from.Addr() != a.V6 {
		t.Errorf("a's packet comes from %s, not %s", from, a.V6)
	}
	public := must[*netlab.Host](t)(n.Public(ctx, "public", netlab.Both))
	for _, h := range []*netlab.Host{a, public} {
		within(t, h, func() {
			c, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp4", "9.9.9.9:53") // nobody, on this internet
			if err == nil {
				_ = c.Close()
			}
			if !errors.Is(err, unix.ENETUNREACH) && !errors.Is(err, unix.EHOSTUNREACH) {
				t.Errorf("on the way out of this internet: %v", err)
			}
		})
	}
}

func TestAHostWithANewAddressIsReachedThere(t *testing.T) {
	t.Parallel()
	n := newNet(t)
	ctx := t.Context()
	public := must[*netlab.Host](t)(n.Public(ctx, "public", netlab.Both))
	home := must[*netlab.Router](t)(n.Router(ctx, "home", netlab.PortPreserving, netlab.Both))
	h := must[*netlab.Host](t)(home.Host(ctx, "h"))
	in, out := listen(t, h, 0), listen(t, public, 0)
	for _, moved := range []*netlab.Host{home.Outside(), h, public} {
		v4, v6, seen := moved.V4, moved.V6, in.seen(out, public.V4)
		if err := moved.Readdress(ctx); err != nil {
			t.Fatal(err)
		}
		if moved.V4 == v4 || moved.V6 == v6 {
			t.Errorf("the addresses are still %s and %s", v4, v6)
		}
		now := in.seen(out, public.V4)
		if moved == home.Outside() && now.Addr() == seen.Addr() {
			t.Errorf("packets still come from %s", now)
		}
		in.seen(out, public.V6)
	}
	received, sent, err := h.Traffic(ctx)
	if err != nil || received == 0 || sent == 0 {
		t.Errorf("%d bytes came and %d went, %v", received, sent, err)
	}
	if err := h.SetLink(ctx, false); err != nil {
		t.Fatal(err)
	}
	if state, err := h.Run(ctx, "cat", "/proc/net/route"); err != nil || strings.Contains(state, "0.0.0.0") {
		t.Errorf("without a cable there is a route:\n%s, %v", state, err)
	}
	if err := h.SetLink(ctx, true); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsLeftInANetIsNamedAndWhatADeadRunLeftIsSwept(t *testing.T) {
	t.Parallel()
	newNet(t) // or there is nothing to test here
	n, err := netlab.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Close() }() // again, should the test end early
	h := must[*netlab.Host](t)(n.Public(t.Context(), "h", netlab.Both))
	left := h.Command(t.Context(), "sleep", "86398")
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "a process on the host", func() bool {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", left.Process.Pid))
		return err == nil && strings.HasPrefix(string(line), "sleep")
	})
	if err := n.Close(); err == nil || !strings.Contains(err.Error(), "sleep 86398") {
		t.Errorf("of a process that was left Close says %v", err)
	}
	_ = left.Wait() // it was killed
	dead := exec.CommandContext(t.Context(), "true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("hgn%dx1-left", dead.Process.Pid)
	if out, err := exec.CommandContext(t.Context(), "ip", "netns", "add", name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	newNet(t)
	if _, err := os.Stat("/run/netns/" + name); err == nil {
		t.Errorf("namespace %s of a dead run is still there", name)
		_ = exec.CommandContext(context.WithoutCancel(t.Context()), "ip", "netns", "del", name).Run()
	}
}
