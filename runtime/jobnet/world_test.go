//go:build linux

package jobnet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"haggle/runtime"
	"haggle/runtime/jobnet"
)

const (
	holdEnv  = "HAGGLE_JOBNET_HOLD"
	patience = 10 * time.Second

	internet  = "8.9.9.9"
	rejected  = "8.9.9.10"
	avoided   = "8.9.9.11"
	lanHost   = "192.168.77.2"
	rigLAN    = "192.168.77.10"
	neighbour = "11.22.33.2" // in a public network that the rig is in
	rigPublic = "11.22.33.10"
	metadata  = "169.254.169.254"
	farInside = "10.99.0.1" // private, behind the router
	outsideV6 = "fd77::2"

	trapPort = 5000
	markPort = 6000
)

// TestMain is also the process of a job: it holds a network namespace until its input ends.
func TestMain(m *testing.M) {
	if os.Getenv(holdEnv) != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func requireNetworks(t *testing.T) {
	t.Helper()
	var missing []string
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		missing = append(missing, "nft")
	}
	if len(missing) == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("needs %s", strings.Join(missing, ", "))
	}
	t.Skipf("needs %s", strings.Join(missing, ", "))
}

// in runs do on a thread that is in the namespace.
func in(t *testing.T, ns netns.NsHandle, do func() error) {
	t.Helper()
	if err := tryIn(ns, do); err != nil {
		t.Fatal(err)
	}
}

func tryIn(ns netns.NsHandle, do func() error) error {
	done := make(chan error, 1)
	go func() { // A thread that did not come home stays locked, and ends with the goroutine.
		goruntime.LockOSThread()
		home, err := netns.Get()
		if err != nil {
			done <- err
			return
		}
		defer home.Close()
		if err := netns.Set(ns); err != nil {
			done <- err
			return
		}
		err = do()
		if netns.Set(home) == nil {
			goruntime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

func newNamespace(t *testing.T) netns.NsHandle {
	t.Helper()
	ns := netns.None()
	own, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	in(t, own, func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			ns, err = netns.Get()
		}
		return err
	})
	if !ns.IsOpen() {
		t.Fatal("no network namespace to have")
	}
	t.Cleanup(func() { _ = ns.Close() })
	return ns
}

// world is a rig, and outside it, in one namespace, everyone that a job may meet.
type world struct {
	t        *testing.T
	rig, out netns.NsHandle
	cfg      jobnet.Config
	nets     *jobnet.Networks
	stop     func()
	trap     *socket // of the outside, for what should not arrive there
	mark     *socket // of the outside, for what does
	rigTrap  *socket
	holes    bool // a protection is left out: what should not arrive is waited for
}

func newWorld(t *testing.T, change func(*jobnet.Config)) *world {
	t.Helper()
	requireNetworks(t)
	w := &world{t: t, rig: newNamespace(t), out: newNamespace(t)}
	for _, ns := range []netns.NsHandle{w.rig, w.out} { // Addresses of IPv6 are usable at once.
		in(t, ns, func() error { return sysctl("ipv6/conf/default/accept_dad", "0") })
	}
	w.wire("lan", "up0", []string{"192.168.77.1/24", lanHost + "/24", outsideV6 + "/64"}, []string{rigLAN + "/24", "fd77::10/64"})
	w.wire("pub", "pub0", []string{neighbour + "/24"}, []string{rigPublic + "/24"})
	w.address(w.out, "lo", internet+"/32", rejected+"/32", avoided+"/32", metadata+"/32", farInside+"/32")
	w.address(w.rig, "lo")
	in(t, w.rig, func() error {
		return errors.Join(
			netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP("192.168.77.1")}),
			sysctl("ipv4/icmp_ratelimit", "0"), sysctl("ipv4/conf/all/rp_filter", "0"), sysctl("ipv6/conf/all/forwarding", "1"))
	})
	in(t, w.out, func() error {
		return errors.Join(
			netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(rigLAN), Dst: &net.IPNet{IP: net.IPv4(10, 213, 97, 0), Mask: net.CIDRMask(24, 32)}}),
			sysctl("ipv4/conf/all/rp_filter", "0"), sysctl("ipv4/conf/lan/rp_filter", "0"), sysctl("ipv4/conf/pub/rp_filter", "0"))
	})
	w.trap, w.mark = w.socket(w.out, trapPort), w.socket(w.out, markPort)
	w.rigTrap = w.socket(w.rig, trapPort)

	w.cfg = jobnet.Config{
		Netns: fmt.Sprintf("/proc/self/fd/%d", int(w.rig)),
		Dir:   t.TempDir(),
		Profile: jobnet.Profile{
			LineUp: 100e6, LineDown: 200e6, NewConnsPerSecond: 5, NewConnsBurst: 60, MaxConns: 30,
			Reject: []netip.Prefix{netip.MustParsePrefix(rejected + "/32")},
		},
	}
	if change != nil {
		change(&w.cfg)
	}
	w.holes = len(w.cfg.Without) > 0
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

func sysctl(path, value string) error { return os.WriteFile("/proc/sys/net/"+path, []byte(value), 0) }

// wire joins the outside and the rig.
func (w *world) wire(outside, rig string, outsideAddrs, rigAddrs []string) {
	w.t.Helper()
	in(w.t, w.out, func() error {
		veth := netlink.NewVeth(netlink.NewLinkAttrs())
		veth.Name, veth.PeerName, veth.PeerNamespace = outside, rig, netlink.NsFd(int(w.rig))
		return netlink.LinkAdd(veth)
	})
	w.address(w.out, outside, outsideAddrs...)
	w.address(w.rig, rig, rigAddrs...)
}

func (w *world) address(ns netns.NsHandle, link string, addrs ...string) {
	w.t.Helper()
	in(w.t, ns, func() error {
		l, err := netlink.LinkByName(link)
		if err != nil {
			return err
		}
		for _, a := range addrs {
			addr, err := netlink.ParseAddr(a)
			if err != nil {
				return err
			}
			if addr.IP.To4() == nil {
				addr.Flags = unix.IFA_F_NODAD
			}
			if err := netlink.AddrAdd(l, addr); err != nil {
				return fmt.Errorf("%s %s: %w", link, a, err)
			}
		}
		return netlink.LinkSetUp(l)
	})
}

// start begins to keep the networks, as after a start of the daemon.
func (w *world) start() {
	w.t.Helper()
	nets, err := jobnet.New(w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.nets = nets
	ctx, cancel := context.WithCancel(w.t.Context())
	var keeper sync.WaitGroup
	keeper.Go(func() {
		if err := nets.Run(ctx); err != nil {
			w.t.Errorf("run: %v", err)
		}
	})
	w.stop = sync.OnceFunc(func() { cancel(); keeper.Wait() })
}

// nft runs nft in the rig.
func (w *world) nft(args ...string) string {
	w.t.Helper()
	var out []byte
	in(w.t, w.rig, func() (err error) {
		out, err = exec.CommandContext(w.t.Context(), "nft", args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("nft %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return err
	})
	return string(out)
}

// job is a process in a user and a network namespace of its own, as runc makes them.
type job struct {
	jobnet.Attached
	w    *world
	id   string
	pid  int
	ns   netns.NsHandle
	mark *socket
	trap *socket
	end  func()
}

// process starts a job without a network.
func (w *world) process(id string) *job {
	w.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.CommandContext(w.t.Context(), exe)
	cmd.Env = append(os.Environ(), holdEnv+"=1")
	input, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 200000, Size: 65536}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET, UidMappings: ids, GidMappings: ids,
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	ns, err := netns.GetFromPid(cmd.Process.Pid)
	if err != nil {
		w.t.Fatal(err)
	}
	j := &job{w: w, id: id, pid: cmd.Process.Pid, ns: ns}
	j.end = sync.OnceFunc(func() { _ = ns.Close(); _ = input.Close(); _ = cmd.Wait() })
	w.t.Cleanup(j.end)
	return j
}

// attach starts a job and gives it a network and a known flow to the outside, for marks.
func (w *world) attach(id string) *job {
	w.t.Helper()
	j := w.process(id)
	made, err := w.nets.Attach(w.t.Context(), id, j.pid, runtime.Network{Mode: runtime.NetworkInternet})
	if err != nil {
		w.t.Fatal(err)
	}
	j.Attached = made
	j.mark, j.trap = w.socket(j.ns, 0), w.socket(j.ns, trapPort)
	j.roundTrip()
	return j
}

// roundTrip sends a mark out and waits for its answer: what was sent before has arrived by then, or never will.
func (j *job) roundTrip() {
	j.w.t.Helper()
	j.mark.send(internet, markPort, "mark")
	d := j.w.mark.wait("mark")
	j.w.mark.reply(d, "answer")
	j.mark.wait("answer")
}

// caught says whether a token arrived at a socket where it should not.
func (j *job) caught(s *socket, token string) bool {
	j.w.t.Helper()
	if j.w.holes {
		return s.arrives(token, patience)
	}
	j.roundTrip()
	return s.arrives(token, 0)
}

// dial connects from inside the job.
func (j *job) dial(addr string) (net.Conn, error) { return dialIn(j.ns, "", addr) }

func dialIn(ns netns.NsHandle, from, to string) (conn net.Conn, err error) {
	err = tryIn(ns, func() (err error) {
		d := net.Dialer{Timeout: 3 * time.Second}
		if from != "" {
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
		}
		conn, err = d.Dial("tcp4", to)
		return err
	})
	return conn, err
}

// listen accepts TCP connections in a namespace and tells each who it is.
func (w *world) listen(ns netns.NsHandle, addr string) {
	w.t.Helper()
	var l net.Listener
	in(w.t, ns, func() (err error) {
		l, err = new(net.ListenConfig).Listen(w.t.Context(), "tcp4", addr)
		return err
	})
	w.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
				_, _ = fmt.Fprintf(c, "%s\n", host)
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	clock := time.NewTicker(20 * time.Millisecond)
	defer clock.Stop()
	for end := time.Now().Add(patience); !yes(); <-clock.C {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
