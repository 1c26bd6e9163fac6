//go:build linux

package jobnet_test

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"haggle/runtime/jobnet"
)

// attack is something that a job, or someone who means it no good, tries. It reports whether it worked.
type attack struct {
	name       string
	protection string // that alone stands in the way; empty where several do
	try        func(w *world, j *job) bool
}

// datagramTo tries to reach someone outside.
func datagramTo(addr string, port int) func(w *world, j *job) bool {
	return func(w *world, j *job) bool {
		s, text := w.socket(j.ns, 0), "to "+addr
		s.send(addr, port, text)
		trap := w.trap
		if port != trapPort {
			trap = w.socket(w.out, port)
			s.send(addr, port, text)
		}
		return j.caught(trap, text)
	}
}

// datagramToRig tries to reach the rig on an address.
func datagramToRig(addr string) func(w *world, j *job) bool {
	return func(w *world, j *job) bool {
		to := addr
		if to == "" {
			to = j.Gateway.String()
		}
		w.socket(j.ns, 0).send(to, trapPort, "rig "+to)
		return j.caught(w.rigTrap, "rig "+to)
	}
}

// connectionTo tries to open a connection to someone outside who would answer.
func connectionTo(addr string, port int) func(w *world, j *job) bool {
	return func(w *world, j *job) bool {
		to := net.JoinHostPort(addr, strconv.Itoa(port))
		w.listen(w.out, to)
		return connects(j, to)
	}
}

func connects(j *job, to string) bool {
	c, err := j.dial(to)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

func attacks() []attack {
	return []attack{
		{"the metadata service by UDP", jobnet.ReservedRanges, datagramTo(metadata, trapPort)},
		{"the metadata service by TCP", jobnet.ReservedRanges, connectionTo(metadata, 80)},
		{"a private address behind the router", jobnet.ReservedRanges, datagramTo(farInside, trapPort)},
		{"the house's LAN by UDP", "", datagramTo(lanHost, trapPort)},
		{"the house's LAN by TCP, as a rebound name would", "", connectionTo(lanHost, 80)},
		{"the house's router", "", datagramTo("192.168.77.1", trapPort)},
		{"the LAN's broadcast address", "", datagramTo("192.168.77.255", trapPort)},
		{"a multicast group", "", datagramTo("224.0.0.251", trapPort)},
		{"a public network that the rig is in", jobnet.ConnectedSubnets, datagramTo(neighbour, trapPort)},
		{"an address that the owner rejects", jobnet.OwnerRejects, datagramTo(rejected, trapPort)},
		{"an address that is to be avoided", jobnet.OwnerRejects, datagramToAvoided},
		{"the rig by its gateway address", jobnet.RigItself, datagramToRig("")},
		{"the rig by its LAN address", jobnet.RigItself, datagramToRig(rigLAN)},
		{"the rig by its public address", jobnet.RigItself, datagramToRig(rigPublic)},
		{"a service of the rig by TCP", jobnet.RigItself, connectionToRig},
		{"ARP for the rig's other addresses", jobnet.SilentARP, askARP},
		{"a forged sender", jobnet.OwnAddress, forgeSender},
		{"IPv6 to a neighbour", jobnet.NoIPv6, sendIPv6},
		{"another job", "", datagramToOtherJob},
		{"a new connection from outside", jobnet.NothingInbound, connectionFromOutside},
		{"a datagram from the rig", jobnet.NothingInbound, datagramFromRig},
		{"the connections of the job before", jobnet.NothingInherited, inheritFlow},
		{"mail by UDP", jobnet.BlockedPorts, datagramTo(internet, 25)},
		{"mail by TCP", jobnet.BlockedPorts, connectionTo(internet, 25)},
		{"a scan", jobnet.ConnectionRate, scan},
		{"a thousand connections", jobnet.ConnectionCount, manyFlows},
		{"the whole line", jobnet.Bandwidth, unshaped},
		{"the household's priority", jobnet.LowPriority, highPriority},
		{"a way through the rig for the LAN", jobnet.RouteGuard, routeThroughRig},
		{"rules that stay flushed", jobnet.Repair, flushRules},
	}
}

func datagramToAvoided(w *world, j *job) bool {
	if err := w.nets.Avoid(w.t.Context(), []netip.Prefix{netip.MustParsePrefix(avoided + "/32")}); err != nil {
		w.t.Fatal(err)
	}
	return datagramTo(avoided, trapPort)(w, j)
}

func connectionToRig(w *world, j *job) bool {
	w.listen(w.rig, "0.0.0.0:8080")
	return connects(j, net.JoinHostPort(j.Gateway.String(), "8080"))
}

func askARP(w *world, j *job) bool {
	f := w.wireSocket(j.ns, "eth0")
	f.who(j.Address.String(), rigLAN)
	f.who(j.Address.String(), j.Gateway.String()) // which is answered, and not before the first
	ip, _ := f.answer()
	return ip != j.Gateway.String()
}

// gatewayMAC is the rig's end of the job's link.
func (j *job) gatewayMAC(f *frames) net.HardwareAddr {
	f.who(j.Address.String(), j.Gateway.String())
	_, mac := f.answer()
	return mac
}

func forgeSender(w *world, j *job) bool {
	f := w.wireSocket(j.ns, "eth0")
	f.send(j.gatewayMAC(f), unix.ETH_P_IP, packet4("8.8.4.4", internet, trapPort, "forged"))
	return j.caught(w.trap, "forged")
}

func sendIPv6(w *world, j *job) bool {
	trap, f := w.socket6(w.out, trapPort), w.wireSocket(j.ns, "eth0")
	f.send(j.gatewayMAC(f), unix.ETH_P_IPV6, packet6("fd66::2", outsideV6, trapPort, "six"))
	return j.caught(trap, "six")
}

func datagramToOtherJob(w *world, j *job) bool {
	other := w.attach("other-" + j.id)
	w.socket(j.ns, 0).send(other.Address.String(), trapPort, "neighbour")
	return j.caught(other.trap, "neighbour")
}

func connectionFromOutside(w *world, j *job) bool {
	w.listen(j.ns, "0.0.0.0:8081")
	c, err := dialIn(w.out, internet, net.JoinHostPort(j.Address.String(), "8081"))
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

func datagramFromRig(w *world, j *job) bool {
	w.socket(w.rig, 0).send(j.Address.String(), trapPort, "from the rig")
	return j.caught(j.trap, "from the rig")
}

// inheritFlow starts a job on the address of one before, and lets the outside answer that one.
func inheritFlow(w *world, _ *job) bool {
	before := w.attach("before")
	old := w.socket(before.ns, 5555)
	old.send(internet, trapPort, "from before")
	d := w.trap.wait("from before")
	if _, err := w.nets.Detach(w.t.Context(), "before"); err != nil {
		w.t.Fatal(err)
	}
	before.end()
	after := w.attach("after")
	if after.Address != before.Address {
		w.t.Fatalf("the address is not used again: %s, %s", before.Address, after.Address)
	}
	trap := w.socket(after.ns, 5555)
	w.trap.reply(d, "late answer")
	return after.caught(trap, "late answer")
}

// scan sends much that nobody answers.
func scan(w *world, _ *job) bool {
	const tries = 200
	j := w.attach("scanner")
	s := w.socket(j.ns, 0)
	for range tries {
		s.send(internet, trapPort, "scan")
	}
	j.roundTrip()
	return w.trap.count("scan", tries, 0) > tries*3/4
}

// manyFlows opens more connections than a job may have, and no more than it may open at once.
func manyFlows(w *world, _ *job) bool {
	const flows = 50
	j := w.attach("hoarder")
	for range flows {
		w.socket(j.ns, 0).send(internet, trapPort, "flow")
	}
	j.roundTrip()
	return w.trap.count("flow", flows, 0) > 30
}

// unshaped looks whether some direction of the job's link is without a bound.
func unshaped(w *world, j *job) bool {
	up, down := w.rates(j)
	return up == 0 || down == 0
}

// rates are the bounds that the kernel keeps, in bits a second; 0 for none.
func (w *world) rates(j *job) (up, down int64) {
	w.t.Helper()
	rate := func(name string) (bits int64, err error) {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return 0, err
		}
		list, err := netlink.QdiscList(link)
		for _, q := range list {
			if tbf, ok := q.(*netlink.Tbf); ok {
				bits = int64(tbf.Rate) * 8
			}
		}
		return bits, err
	}
	in(w.t, j.ns, func() (err error) { up, err = rate("eth0"); return err })
	in(w.t, w.rig, func() (err error) { down, err = rate(j.Interface); return err })
	return up, down
}

func highPriority(w *world, j *job) bool {
	w.socket(j.ns, 0).send(internet, trapPort, "marked")
	return w.trap.wait("marked").tos != 0x20 // CS1
}

// routeThroughRig lets a host of the LAN use the rig as a router to a network that it is in.
func routeThroughRig(w *world, j *job) bool {
	var rigMAC net.HardwareAddr
	in(w.t, w.rig, func() error {
		l, err := netlink.LinkByName("up0")
		if err == nil {
			rigMAC = l.Attrs().HardwareAddr
		}
		return err
	})
	f := w.wireSocket(w.out, "lan")
	f.send(rigMAC, unix.ETH_P_IP, packet4("192.168.77.50", neighbour, trapPort, "transit"))
	return j.caught(w.trap, "transit")
}

func flushRules(w *world, _ *job) bool {
	w.nft("flush", "ruleset")
	if err := w.nets.Look(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return w.nft("list", "tables") == ""
}

func TestAJobReachesTheInternetAndNothingOfTheHouse(t *testing.T) {
	w := newWorld(t, nil)
	j := w.attach("job")
	w.listen(w.out, internet+":8000")
	c, err := j.dial(internet + ":8000")
	if err != nil {
		t.Fatalf("the internet is out of reach: %v", err)
	}
	defer c.Close()
	buf := make([]byte, 64)
	n, err := c.Read(buf)
	if err != nil || string(buf[:n]) != rigLAN+"\n" {
		t.Errorf("the internet sees %q, not the rig: %v", buf[:n], err)
	}
	if !j.pings(internet) {
		t.Error("a ping is not answered")
	}
	if j.pings(lanHost) || j.pings(j.Gateway.String()) {
		t.Error("the house answers a ping")
	}
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			if a.try(w, j) {
				t.Error("it worked")
			}
		})
	}
}

func TestARefusalIsToldAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	j := w.attach("job")
	for _, to := range []string{lanHost + ":80", rigLAN + ":80", j.Gateway.String() + ":80", internet + ":25"} {
		if _, err := j.dial(to); !errors.Is(err, unix.EHOSTUNREACH) {
			t.Errorf("%s: %v", to, err)
		}
	}
	// What the internet itself refuses comes through as such.
	if _, err := j.dial(internet + ":9"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a closed port: %v", err)
	}
}

func TestEveryProtectionMatters(t *testing.T) {
	tested := map[string]bool{jobnet.MonthlyCap: true} // by TestTheMonthsTrafficIsBounded
	for _, a := range attacks() {
		if a.protection == "" {
			continue
		}
		tested[a.protection] = true
		t.Run(a.protection+"/"+a.name, func(t *testing.T) {
			w := newWorld(t, func(c *jobnet.Config) { c.Without = []string{a.protection} })
			if !a.try(w, w.attach("job")) {
				t.Error("it is refused without its protection")
			}
		})
	}
	for _, p := range jobnet.Protections() {
		if !tested[p] {
			t.Errorf("nothing shows that %s matters", p)
		}
	}
}

// pings says whether an echo is answered, by a socket that needs no privilege.
func (j *job) pings(addr string) bool {
	j.w.t.Helper()
	fd := -1
	in(j.w.t, j.ns, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		return err
	})
	defer unix.Close(fd)
	to := &unix.SockaddrInet4{Addr: [4]byte(net.ParseIP(addr).To4())}
	if err := unix.Sendto(fd, []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0}, 0, to); err != nil {
		j.w.t.Fatal(err)
	}
	wait := patience
	if addr != internet { // what does not come is not waited for
		j.roundTrip()
		wait = 0
	}
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(wait/time.Millisecond))
	buf := make([]byte, 64)
	if n < 1 {
		return false
	}
	got, _, err := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT)
	return err == nil && got >= 8 && buf[0] == 0
}
