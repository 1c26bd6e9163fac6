//go:build linux

package jobnet_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// socket is a UDP socket in some namespace. It is read by whoever waits, so that what has arrived is seen at once.
type socket struct {
	t    *testing.T
	fd   int
	seen []datagram
}

type datagram struct {
	text string
	from unix.Sockaddr
	tos  int
}

func (w *world) socket(ns netns.NsHandle, port int) *socket {
	w.t.Helper()
	return w.bound(ns, unix.AF_INET, &unix.SockaddrInet4{Port: port})
}

func (w *world) socket6(ns netns.NsHandle, port int) *socket {
	w.t.Helper()
	return w.bound(ns, unix.AF_INET6, &unix.SockaddrInet6{Port: port})
}

func (w *world) bound(ns netns.NsHandle, family int, addr unix.Sockaddr) *socket {
	w.t.Helper()
	s := &socket{t: w.t}
	in(w.t, ns, func() (err error) {
		if s.fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		if family == unix.AF_INET {
			err = unix.SetsockoptInt(s.fd, unix.IPPROTO_IP, unix.IP_RECVTOS, 1)
		} else {
			err = unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
		}
		return errors.Join(err, unix.Bind(s.fd, addr))
	})
	w.t.Cleanup(func() { _ = unix.Close(s.fd) })
	return s
}

// send may fail: a refusal of an earlier datagram is reported with the next.
func (s *socket) send(to string, port int, text string) {
	addr := &unix.SockaddrInet4{Port: port, Addr: [4]byte(net.ParseIP(to).To4())}
	for range 3 {
		if err := unix.Sendto(s.fd, []byte(text), 0, addr); err == nil {
			return
		}
	}
}

// reply answers as the internet's host, on a socket of the outside that hears for all of its addresses.
func (s *socket) reply(d datagram, text string) {
	s.t.Helper()
	as := unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: [4]byte(net.ParseIP(internet).To4())})
	if err := unix.Sendmsg(s.fd, []byte(text), as, d.from, 0); err != nil {
		s.t.Fatal(err)
	}
}

// drain takes what has arrived.
func (s *socket) drain() {
	buf, control := make([]byte, 2048), make([]byte, 256)
	for {
		n, c, _, from, err := unix.Recvmsg(s.fd, buf, control, unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EINTR) {
			continue // of an earlier datagram
		} else if err != nil {
			return
		}
		d := datagram{text: string(buf[:n]), from: from}
		if list, err := unix.ParseSocketControlMessage(control[:c]); err == nil && len(list) > 0 && len(list[0].Data) > 0 {
			d.tos = int(list[0].Data[0])
		}
		s.seen = append(s.seen, d)
	}
}

func (s *socket) find(text string) (datagram, bool) {
	s.drain()
	for i, d := range s.seen {
		if d.text == text {
			s.seen = append(s.seen[:i], s.seen[i+1:]...)
			return d, true
		}
	}
	return datagram{}, false
}

// arrives waits so long for a datagram with this text.
func (s *socket) arrives(text string, wait time.Duration) bool {
	_, ok := s.await(text, wait)
	return ok
}

func (s *socket) await(text string, wait time.Duration) (datagram, bool) {
	end := time.Now().Add(wait)
	for {
		if d, ok := s.find(text); ok {
			return d, true
		}
		left := time.Until(end)
		if left <= 0 {
			return datagram{}, false
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}, int(left/time.Millisecond)+1)
	}
}

func (s *socket) wait(text string) datagram {
	s.t.Helper()
	d, ok := s.await(text, patience)
	if !ok {
		s.t.Fatalf("%q did not arrive", text)
	}
	return d
}

// count is how many datagrams with this text have arrived so far, at least as many as wanted or until patience ends.
func (s *socket) count(text string, want int, wait time.Duration) int {
	n := 0
	for n < want && s.arrives(text, wait) {
		n++
	}
	return n
}

// wireSocket sends and receives whole frames on an interface.
func (w *world) wireSocket(ns netns.NsHandle, link string) *frames {
	w.t.Helper()
	f := &frames{t: w.t}
	in(w.t, ns, func() (err error) {
		i, err := net.InterfaceByName(link)
		if err != nil {
			return err
		}
		f.index, f.mac = i.Index, i.HardwareAddr
		f.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(swap(unix.ETH_P_ALL)))
		if err != nil {
			return err
		}
		return unix.Bind(f.fd, &unix.SockaddrLinklayer{Protocol: swap(unix.ETH_P_ALL), Ifindex: i.Index})
	})
	w.t.Cleanup(func() { _ = unix.Close(f.fd) })
	return f
}

type frames struct {
	t     *testing.T
	fd    int
	index int
	mac   net.HardwareAddr
}

func swap(v uint16) uint16 { return v<<8 | v>>8 }

func (f *frames) send(to net.HardwareAddr, kind uint16, payload []byte) {
	f.t.Helper()
	frame := append(append([]byte{}, to...), f.mac...)
	frame = append(binary.BigEndian.AppendUint16(frame, kind), payload...)
	if err := unix.Sendto(f.fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: f.index}); err != nil {
		f.t.Fatal(err)
	}
}

// answer waits for a reply of ARP and returns whose address it tells.
func (f *frames) answer() (ip string, mac net.HardwareAddr) {
	f.t.Helper()
	buf := make([]byte, 2048)
	for end := time.Now().Add(patience); ; {
		if left := time.Until(end); left > 0 {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(f.fd), Events: unix.POLLIN}}, int(left/time.Millisecond)+1)
		}
		n, _, err := unix.Recvfrom(f.fd, buf, unix.MSG_DONTWAIT)
		if err != nil {
			f.t.Fatalf("no answer of ARP: %v", err)
		}
		if n >= 42 && binary.BigEndian.Uint16(buf[12:]) == unix.ETH_P_ARP && binary.BigEndian.Uint16(buf[20:]) == 2 {
			return net.IP(buf[28:32]).String(), net.HardwareAddr(append([]byte{}, buf[22:28]...))
		}
	}
}

// who asks by ARP for an address.
func (f *frames) who(own, ip string) {
	f.t.Helper()
	p := []byte{0, 1, 8, 0, 6, 4, 0, 1}
	p = append(append(p, f.mac...), net.ParseIP(own).To4()...)
	p = append(append(p, 0, 0, 0, 0, 0, 0), net.ParseIP(ip).To4()...)
	f.send(net.HardwareAddr{255, 255, 255, 255, 255, 255}, unix.ETH_P_ARP, p)
}

func udp(port int, text string) []byte {
	p := binary.BigEndian.AppendUint16(nil, 4000)
	p = binary.BigEndian.AppendUint16(p, uint16(port))
	p = binary.BigEndian.AppendUint16(p, uint16(8+len(text)))
	return append(append(p, 0, 0), text...)
}

// packet4 is an IPv4 datagram from whoever it claims.
func packet4(from, to string, port int, text string) []byte {
	body := udp(port, text)
	p := []byte{0x45, 0, 0, 0, 0, 1, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
	p = append(append(p, net.ParseIP(from).To4()...), net.ParseIP(to).To4()...)
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)+len(body)))
	binary.BigEndian.PutUint16(p[10:], checksum(p))
	return append(p, body...)
}

// packet6 is an IPv6 datagram from whoever it claims.
func packet6(from, to string, port int, text string) []byte {
	body := udp(port, text)
	addrs := append(append([]byte{}, net.ParseIP(from).To16()...), net.ParseIP(to).To16()...)
	pseudo := append(append([]byte{}, addrs...), 0, 0, 0, byte(len(body)), 0, 0, 0, unix.IPPROTO_UDP)
	binary.BigEndian.PutUint16(body[6:], checksum(append(pseudo, body...)))
	p := []byte{0x60, 0, 0, 0, 0, byte(len(body)), unix.IPPROTO_UDP, 64}
	return append(append(p, addrs...), body...)
}

func checksum(b []byte) uint16 {
	if len(b)%2 == 1 {
		b = append(append([]byte{}, b...), 0)
	}
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// stream is a connection that echoes lines.
type stream struct {
	net.Conn
	lines *bufio.Reader
}

func (w *world) stream(j *job) *stream {
	w.t.Helper()
	w.listen(w.out, internet+":8000")
	return w.redial(j)
}

// redial is stream once somebody listens there.
func (w *world) redial(j *job) *stream {
	w.t.Helper()
	c, err := j.dial(internet + ":8000")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	s := &stream{c, bufio.NewReader(c)}
	if _, err := s.lines.ReadString('\n'); err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (s *stream) echo(text string) error {
	if err := s.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := io.WriteString(s, text+"\n"); err != nil {
		return err
	}
	got, err := s.lines.ReadString('\n')
	if err == nil && got != text+"\n" {
		err = fmt.Errorf("echo is %q", got)
	}
	return err
}
