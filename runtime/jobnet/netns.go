//go:build linux

package jobnet

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"haggle/runtime"
)

// openOwn opens the namespace of the process. It asks for that of the thread, which is a clean one: /proc/self would be the
// first thread, and somebody may just have sent that one into a job's namespace.
func openOwn() (netns.NsHandle, error) {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	return netns.Get()
}

// inside runs do on a thread that is in the namespace. It must not start goroutines that need it too.
func inside(ns netns.NsHandle, do func() error) error {
	done := make(chan error, 1)
	go func() {
		goruntime.LockOSThread()
		home, err := netns.Get()
		if err != nil {
			goruntime.UnlockOSThread()
			done <- fmt.Errorf("own network namespace: %w", err)
			return
		}
		defer home.Close()
		if err := netns.Set(ns); err != nil {
			goruntime.UnlockOSThread()
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		err = do()
		if netns.Set(home) == nil {
			goruntime.UnlockOSThread()
		} // Otherwise the thread is spoilt: it ends with this goroutine, since it stays locked.
		done <- err
	}()
	return <-done
}

// rig is an open hold on the rig's namespace: the namespace, its links, and its packet filter.
type rig struct {
	ns     netns.NsHandle
	id     string
	links  *netlink.Handle
	filter *nl.SocketHandle
}

func openRig(path string) (*rig, error) {
	open := func() (netns.NsHandle, error) { return netns.GetFromPath(path) }
	if path == "" {
		open = openOwn
	}
	ns, err := open()
	if err != nil {
		return nil, fmt.Errorf("open network namespace %s: %w", path, err)
	}
	r := &rig{ns: ns}
	if r.id, err = namespaceID(ns); err != nil {
		return nil, errors.Join(err, r.close())
	}
	if r.links, err = netlink.NewHandleAt(ns, unix.NETLINK_ROUTE, unix.NETLINK_NETFILTER); err != nil {
		return nil, errors.Join(fmt.Errorf("open links of %s: %w", path, err), r.close())
	}
	s, err := nl.GetNetlinkSocketAt(ns, netns.None(), unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open packet filter of %s: %w", path, err), r.close())
	}
	r.filter = &nl.SocketHandle{Socket: s}
	if err := errors.Join(s.SetSendTimeout(&nl.SocketTimeoutTv), s.SetReceiveTimeout(&nl.SocketTimeoutTv)); err != nil {
		return nil, errors.Join(fmt.Errorf("packet filter of %s: %w", path, err), r.close())
	}
	return r, nil
}

func (r *rig) close() error {
	if r.filter != nil {
		r.filter.Close()
	}
	if r.links != nil {
		r.links.Close()
	}
	return r.ns.Close()
}

// namespaceID tells namespaces apart for as long as they live.
func namespaceID(ns netns.NsHandle) (string, error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(ns), &s); err != nil {
		return "", fmt.Errorf("network namespace: %w", err)
	}
	return fmt.Sprintf("%d:%d", s.Dev, s.Ino), nil
}

// openJob opens the namespace of a process. It refuses the rig's own and this process's: a job's network there would cut off
// the machine, and a process that has ended may have left its number to one of the machine's own.
func openJob(pid int, r *rig) (netns.NsHandle, string, error) {
	if pid < 1 {
		return netns.None(), "", fmt.Errorf("process %d: %w", pid, runtime.ErrInvalidSpec)
	}
	ns, err := netns.GetFromPid(pid)
	if errors.Is(err, os.ErrNotExist) {
		return netns.None(), "", fmt.Errorf("process %d is gone: %w", pid, runtime.ErrConflict)
	} else if err != nil {
		return netns.None(), "", fmt.Errorf("network namespace of process %d: %w", pid, err)
	}
	id, err := namespaceID(ns)
	if err != nil {
		return netns.None(), "", errors.Join(err, ns.Close())
	}
	own, err := openOwn()
	if err != nil {
		return netns.None(), "", errors.Join(fmt.Errorf("own network namespace: %w", err), ns.Close())
	}
	defer own.Close()
	ownID, err := namespaceID(own)
	if err != nil {
		return netns.None(), "", errors.Join(err, ns.Close())
	}
	if id == r.id || id == ownID {
		return netns.None(), "", errors.Join(ns.Close(),
			fmt.Errorf("process %d has no network of its own: %w", pid, runtime.ErrConflict))
	}
	return ns, id, nil
}

// stillJob says whether a process is still in the namespace that was opened for it.
func stillJob(pid int, id string) error {
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("process %d is gone: %w", pid, runtime.ErrConflict)
	}
	defer ns.Close()
	if now, err := namespaceID(ns); err != nil || now != id {
		return fmt.Errorf("process %d is another one now: %w", pid, runtime.ErrConflict)
	}
	return nil
}

const sysctlDir = "/proc/sys/net/"

// setting is one sysctl below net/, with a value that this package wants.
type setting struct{ path, value string }

// apply writes what differs. The caller is inside the namespace. A sysctl that the kernel does not have is no error where
// optional says so: without IPv6 in the kernel nothing has to be switched off.
func apply(settings []setting, optional func(path string) bool) error {
	for _, s := range settings {
		have, err := os.ReadFile(sysctlDir + s.path)
		if errors.Is(err, os.ErrNotExist) && optional(s.path) {
			continue
		} else if err != nil {
			return fmt.Errorf("sysctl net/%s: %w", s.path, err)
		}
		if strings.Join(strings.Fields(string(have)), " ") == s.value {
			continue
		}
		if err := os.WriteFile(sysctlDir+s.path, []byte(s.value), 0); err != nil {
			return fmt.Errorf("sysctl net/%s=%s: %w", s.path, s.value, err)
		}
	}
	return nil
}

func isIPv6(path string) bool { return strings.HasPrefix(path, "ipv6/") }

// sysctlOn reads a switch. The caller is inside the namespace.
func sysctlOn(path string) (bool, error) {
	b, err := os.ReadFile(sysctlDir + path)
	if err != nil {
		return false, fmt.Errorf("sysctl net/%s: %w", path, err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	return n != 0, err
}
