//go:build linux

package hostile_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Addresses of the world.
const (
	lanHost    = "192.168.77.2"  // a machine of the household
	rigLAN     = "192.168.77.10" // the rig on the household's network
	rigPublic  = "203.0.113.10"  // the rig on its provider's network
	gateway    = "203.0.113.1"
	publicHost = "203.0.113.77" // a neighbour on the provider's network
	internet   = "8.9.9.9"
	internet2  = "8.9.9.10"
	// ownersReject is on the internet too, but this rig's owner wants no jobs there.
	ownersReject = "8.9.9.66"
	metadata     = "169.254.169.254"
)

// world is a rig, its household, its provider and the internet, each a network namespace:
//
//	jobs - rig - lan (192.168.77.0/24)
//	         \ - net (203.0.113.0/24, and beyond it 8.9.9.9 and the metadata address)
//
// Every machine answers on TCP 22, 25 and 80 and echoes on UDP 7. 8.9.9.9 is a resolver as well.
type world struct {
	rig, lan, net string // names of namespaces
	closers       []func() error

	mu      sync.Mutex
	senders map[string]string // what datagrams said, and from where the last one of each came
}

func (h *house) buildWorld() error {
	prefix := fmt.Sprintf("hgh%d-", os.Getpid())
	w := &world{rig: prefix + "rig", lan: prefix + "lan", net: prefix + "net", senders: map[string]string{}}
	h.world = w
	for _, ns := range []string{w.rig, w.lan, w.net} {
		if err := ip("netns", "add", ns); err != nil {
			return err
		}
		w.closers = append(w.closers, func() error { return ip("netns", "delete", ns) })
		if err := ip("-n", ns, "link", "set", "lo", "up"); err != nil {
			return err
		}
	}
	for _, line := range []string{
		"link add lan0 netns RIG type veth peer name eth0 netns LAN",
		"link add up0 netns RIG type veth peer name eth0 netns NET",
		"-n RIG addr add " + rigLAN + "/24 dev lan0", "-n RIG link set lan0 up",
		"-n RIG addr add " + rigPublic + "/24 dev up0", "-n RIG link set up0 up",
		"-n LAN addr add " + lanHost + "/24 dev eth0", "-n LAN link set eth0 up", "-n LAN route add default via " + rigLAN,
		"-n NET addr add " + gateway + "/24 dev eth0", "-n NET addr add " + publicHost + "/24 dev eth0", "-n NET link set eth0 up",
		"-n NET addr add " + internet + "/32 dev lo", "-n NET addr add " + internet2 + "/32 dev lo", "-n NET addr add " + ownersReject + "/32 dev lo", "-n NET addr add " + metadata + "/32 dev lo",
		"-n RIG route add default via " + gateway,
		// The provider would carry a job's own address back, if the rig let it out unchanged.
		"-n NET route add 10.0.0.0/8 via " + rigPublic, "-n LAN route add 10.0.0.0/8 via " + rigLAN,
	} {
		line = strings.NewReplacer("RIG", w.rig, "LAN", w.lan, "NET", w.net).Replace(line)
		if err := ip(strings.Fields(line)...); err != nil {
			return err
		}
	}
	for _, ns := range []string{w.rig, w.lan, w.net} {
		if err := w.serve(ns); err != nil {
			return err
		}
	}
	return within(w.net, w.resolve)
}

func (w *world) takeDown() error {
	if w == nil {
		return nil
	}
	var errs []error
	for i := len(w.closers) - 1; i >= 0; i-- {
		errs = append(errs, w.closers[i]())
	}
	w.closers = nil
	return errors.Join(errs...)
}

func ip(args ...string) error {
	if out, err := exec.CommandContext(context.Background(), "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// within calls do in a network namespace, named or by path. A thread that cannot come back ends with its goroutine.
func within(ns string, do func() error) error {
	if !strings.HasPrefix(ns, "/") {
		ns = "/run/netns/" + ns
	}
	done := make(chan error, 1)
	go func() {
		goruntime.LockOSThread()
		done <- func() error {
			own, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(own)
			other, err := unix.Open(ns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(other)
			if err := unix.Setns(other, unix.CLONE_NEWNET); err != nil {
				return err
			}
			err = do()
			if back := unix.Setns(own, unix.CLONE_NEWNET); back != nil {
				return errors.Join(err, back)
			}
			goruntime.UnlockOSThread()
			return err
		}()
	}()
	return <-done
}

// serve answers in one namespace for all its machines.
func (w *world) serve(ns string) error {
	var listen net.ListenConfig
	return within(ns, func() error {
		for _, port := range []string{"22", "25", "80"} {
			l, err := listen.Listen(context.Background(), "tcp4", ":"+port)
			if err != nil {
				return err
			}
			w.closers = append(w.closers, l.Close)
			go func() {
				for c, err := l.Accept(); err == nil; c, err = l.Accept() {
					_, _ = c.Write([]byte("here\n"))
					_ = c.Close()
				}
			}()
		}
		for _, a := range echoes(ns) { // each its own socket, so that the answer comes from the address that was asked
			c, err := listen.ListenPacket(context.Background(), "udp4", a+":7")
			if err != nil {
				return err
			}
			w.closers = append(w.closers, c.Close)
			go w.echo(c)
		}
		return nil
	})
}

func echoes(ns string) []string {
	switch {
	case strings.HasSuffix(ns, "-rig"):
		return []string{rigLAN, rigPublic}
	case strings.HasSuffix(ns, "-lan"):
		return []string{lanHost}
	}
	return []string{internet, internet2, metadata, publicHost, gateway}
}

func (w *world) echo(c net.PacketConn) {
	b := make([]byte, 512)
	for {
		n, from, err := c.ReadFrom(b)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.senders[string(b[:n])] = from.String()
		w.mu.Unlock()
		_, _ = c.WriteTo(b[:n], from)
	}
}

// sender tells from where a datagram with this text came last.
func (w *world) sender(text string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.senders[text]
}

// resolve is a resolver whose names point where a page would like its visitor's browser to go.
func (w *world) resolve() error {
	names := map[string]string{"lan.test": lanHost, "rig.test": rigLAN, "metadata.test": metadata, "good.test": internet, "loopback.test": "127.0.0.1"}
	c, err := new(net.ListenConfig).ListenPacket(context.Background(), "udp4", internet+":53")
	if err != nil {
		return err
	}
	w.closers = append(w.closers, c.Close)
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			if answer := answerTo(b[:n], names); answer != nil {
				_, _ = c.WriteTo(answer, from)
			}
		}
	}()
	return nil
}

// answerTo answers one question for an IPv4 address; of other kinds there is none.
func answerTo(query []byte, names map[string]string) []byte {
	if len(query) < 17 {
		return nil
	}
	var labels []string
	at := 12
	for at < len(query) && query[at] != 0 && at+1+int(query[at]) <= len(query) {
		labels = append(labels, string(query[at+1:at+1+int(query[at])]))
		at += 1 + int(query[at])
	}
	if at+5 > len(query) {
		return nil
	}
	kind := binary.BigEndian.Uint16(query[at+1:])
	address := net.ParseIP(names[strings.ToLower(strings.Join(labels, "."))]).To4()
	answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:at+5]...)
	const typeA = 1
	if address == nil {
		answer[3] = 0x83 // no such name
	} else if kind == typeA {
		answer[7] = 1
		answer = append(answer, 0xc0, 12, 0, typeA, 0, 1, 0, 0, 0, 1, 0, 4)
		answer = append(answer, address...)
	}
	return answer
}
