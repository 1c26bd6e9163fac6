package inside

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// answerTime is how long an attempt waits for an answer.
const answerTime = 700 * time.Millisecond

// scanTime is how long a scanner waits for all its knocks, which a slow machine takes a while to send.
const scanTime = 5 * time.Second

func netWeapons() []weapon {
	return []weapon{
		{"tcp", func(args []string) verdict { return reach("tcp", args) }},
		{"udp", func(args []string) verdict { return reach("udp", args) }},
		{"internet", internet},
		{"gateway", gateway},
		{"raw-socket", func([]string) verdict { return rawSockets() }},
		{"odd-sockets", oddSockets},
		{"ipv6", func([]string) verdict { return ipv6() }},
		{"net-admin", netAdmin},
		{"spoof", spoof},
		{"rebind", rebind},
		{"scan", scan},
		{"listen", listen},
	}
}

// reach wants that none of the HOST:PORTs answers. For UDP a datagram is sent, and an answer is what counts.
func reach(network string, args []string) verdict {
	answers := make([]error, len(args))
	var all sync.WaitGroup
	for i, a := range args {
		all.Go(func() { answers[i] = ask(network, a) })
	}
	all.Wait()
	var tries []try
	for i, a := range args {
		tries = append(tries, try{network + " " + a, func() error {
			if errors.Is(answers[i], unix.ECONNREFUSED) { // the host itself says that the port is closed: it was reached
				return nil
			}
			return answers[i]
		}})
	}
	return allFail(tries...)
}

// ask returns nil when there is an answer.
func ask(network, address string) error {
	c, err := net.DialTimeout(network, address, answerTime) //nolint:noctx // the time is what bounds it
	if err != nil {
		return err
	}
	defer c.Close()
	if network != "udp" {
		return nil
	}
	if err := c.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("haggle?")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 64))
	return err
}

// internet is no attack: it wants that what a job may reach answers, or a wall that stops everything would pass every test.
func internet(args []string) verdict {
	for _, a := range args {
		network, address, ok := strings.Cut(a, "/")
		if !ok {
			network, address = "tcp", a
		}
		if err := ask(network, address); err != nil {
			return broke("%s does not answer: %v", a, err)
		}
	}
	return held("%d of %d answer", len(args), len(args))
}

// gateway knocks at ports of the machine that carries the job's packets on.
func gateway(args []string) verdict {
	b, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return broke("no routes: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 8 || f[1] != "00000000" {
			continue
		}
		n, err := strconv.ParseUint(f[2], 16, 32)
		if err != nil {
			return broke("route %q: %v", line, err)
		}
		address := net.IPv4(byte(n), byte(n>>8), byte(n>>16), byte(n>>24)).String()
		var targets []string
		for _, port := range args {
			targets = append(targets, net.JoinHostPort(address, port))
		}
		return reach("tcp", targets)
	}
	return broke("there is no gateway, so nothing was tried")
}

func rawSockets() verdict {
	open := func(what string, family, kind, protocol int) try {
		return try{what, func() error {
			fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}}
	}
	const everything = 0x0300 // ETH_P_ALL in the network's order
	return allRefused(
		open("packet socket", unix.AF_PACKET, unix.SOCK_RAW, everything),
		open("cooked packet socket for ARP", unix.AF_PACKET, unix.SOCK_DGRAM, 0x0608),
		open("raw socket for ICMP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
		open("raw socket for any IP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW),
		open("raw socket for ICMPv6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6),
	)
}

// oddSockets are families in which holes were found and that no job needs. A kernel without one refuses as well.
func oddSockets([]string) verdict {
	open := func(what string, family, kind int) try {
		return try{what, func() error {
			fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}}
	}
	return allFail(
		open("vsock to the hypervisor", unix.AF_VSOCK, unix.SOCK_STREAM),
		open("kernel cryptography", unix.AF_ALG, unix.SOCK_SEQPACKET),
		open("bluetooth", unix.AF_BLUETOOTH, unix.SOCK_RAW),
		open("express data path", unix.AF_XDP, unix.SOCK_RAW),
		open("CAN", unix.AF_CAN, unix.SOCK_RAW),
		open("TIPC", unix.AF_TIPC, unix.SOCK_SEQPACKET),
		open("RDS", unix.AF_RDS, unix.SOCK_SEQPACKET),
		open("AppleTalk", unix.AF_APPLETALK, unix.SOCK_DGRAM),
	)
}

// ipv6 wants that no neighbour can be met over IPv6: no address, no route.
func ipv6() verdict {
	list, err := net.Interfaces()
	if err != nil {
		return broke("list interfaces: %v", err)
	}
	for _, i := range list {
		addresses, err := i.Addrs()
		if err != nil || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() == nil {
				return broke("%s has the address %s", i.Name, a)
			}
		}
		for _, all := range []string{"ff02::1", "ff02::2"} { // every neighbour, every router
			if err := ask("udp", fmt.Sprintf("[%s%%%s]:9", all, i.Name)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				return broke("a datagram to %s left through %s", all, i.Name)
			}
		}
	}
	c, err := net.Dial("udp", "[2001:4860:4860::8888]:53") //nolint:noctx // a connected datagram socket sends nothing
	if err == nil {
		_ = c.Close()
		return broke("there is a route to the IPv6 internet")
	}
	return held("no address beside loopback's; %s", reason(err))
}

// netAdmin tries to change the job's own interface: its bandwidth limit hangs there.
func netAdmin([]string) verdict {
	list, err := net.Interfaces()
	if err != nil {
		return broke("list interfaces: %v", err)
	}
	var tries []try
	for _, i := range list {
		tries = append(tries, try{"set the size of packets of " + i.Name, func() error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			request, err := unix.NewIfreq(i.Name)
			if err != nil {
				return err
			}
			request.SetUint32(uint32(i.MTU))
			_, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFMTU, uintptr(unsafe.Pointer(request)))
			if no != 0 {
				return no
			}
			return nil
		}})
	}
	return allRefused(tries...)
}

// spoof sends from args[0], an address of somebody else's, to args[1].
func spoof(args []string) verdict {
	from, to := net.ParseIP(word(args, 0, "")).To4(), net.ParseIP(word(args, 1, "")).To4()
	if from == nil || to == nil {
		return broke("no two addresses")
	}
	send := func(option int) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.SetsockoptInt(fd, unix.SOL_IP, option, 1); err != nil {
			return err
		}
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte(from)}); err != nil {
			return err
		}
		return unix.Sendto(fd, []byte("spoofed"), 0, &unix.SockaddrInet4{Addr: [4]byte(to), Port: 7})
	}
	return allFail(
		try{"send from " + from.String() + " as a proxy may", func() error { return send(unix.IP_TRANSPARENT) }},
		try{"send from " + from.String() + " as a free socket", func() error { return send(unix.IP_FREEBIND) }},
	)
}

// rebind asks the job's own resolver for the name args[0] and goes where it points, to the port args[1].
func rebind(args []string) verdict {
	name, port := word(args, 0, "rebind.test"), word(args, 1, "80")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) //nolint:forbidigo // the first context of a program
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return broke("%s was not resolved, so nothing was tried: %v", name, err)
	}
	var targets []string
	for _, a := range addresses {
		targets = append(targets, net.JoinHostPort(a, port))
	}
	v := reach("tcp", targets)
	v.found = name + " is " + strings.Join(addresses, ", ") + "; " + v.found
	return v
}

// scan knocks at number args[1] of ports of args[0] at once and counts those that answered, open or closed. More than args[2]
// is what a scanner gets.
func scan(args []string) verdict {
	host, ports, most := word(args, 0, ""), number(args, 1, 100), number(args, 2, 0)
	var answered atomic.Int64
	var all sync.WaitGroup
	for p := range ports {
		all.Go(func() {
			c, err := net.DialTimeout("tcp", net.JoinHostPort(host, fmt.Sprint(10000+p)), scanTime) //nolint:noctx // the time is what bounds it
			if err == nil {
				_ = c.Close()
			}
			if err == nil || errors.Is(err, unix.ECONNREFUSED) {
				answered.Add(1)
			}
		})
	}
	all.Wait()
	n := answered.Load()
	return verdict{n <= most, fmt.Sprintf("%d of %d ports answered, %d may", n, ports, most), n}
}

// listen waits on a port for callers until args[1] seconds are over or it is told to go. Nobody may come.
func listen(args []string) verdict {
	l, err := net.Listen("tcp4", ":"+word(args, 0, "4444")) //nolint:noctx // closed below
	if err != nil {
		return broke("listen: %v", err)
	}
	var callers atomic.Int64
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			callers.Add(1)
			_ = c.Close()
		}
	}()
	tell(os.Stdout, Result{Name: "listening", Holds: true, Found: l.Addr().String()})
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, unix.SIGTERM)
	select {
	case <-stop:
	case <-time.After(min(time.Duration(number(args, 1, 15))*time.Second, attackLimit-time.Second)):
	}
	_ = l.Close()
	n := callers.Load()
	return verdict{n == 0, fmt.Sprintf("%d connections came in", n), n}
}
