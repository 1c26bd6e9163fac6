//go:build linux

package containerd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"haggle/runtime"
	"haggle/runtime/jobnet"
)

const outside = "8.9.9.9"

// newNetworks makes a rig and an internet of one address, each a network namespace, and the networks of jobs in between.
func newNetworks(t *testing.T) *jobnet.Networks {
	t.Helper()
	n, _ := newNetworksOf(t)
	return n
}

func newNetworksOf(t *testing.T) (*jobnet.Networks, *jobnet.Config) {
	t.Helper()
	if _, err := exec.LookPath("nft"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs nft")
		}
		t.Skip("needs nft")
	}
	rig, internet := fmt.Sprintf("hgct%d-rig", os.Getpid()), fmt.Sprintf("hgct%d-net", os.Getpid())
	for _, ns := range []string{rig, internet} {
		ip(t, "netns", "add", ns)
		t.Cleanup(func() { ip(t, "netns", "delete", ns) })
	}
	for _, line := range []string{
		"link add up0 netns RIG type veth peer name eth0 netns NET",
		"-n RIG addr add 203.0.113.10/24 dev up0", "-n RIG link set up0 up", "-n RIG link set lo up",
		"-n NET addr add 203.0.113.1/24 dev eth0", "-n NET link set eth0 up", "-n NET link set lo up",
		"-n NET addr add " + outside + "/32 dev lo", "-n RIG route add default via 203.0.113.1",
	} {
		ip(t, strings.Fields(strings.NewReplacer("RIG", rig, "NET", internet).Replace(line))...)
	}
	serve(t, internet)
	cfg := jobnet.Config{Netns: "/run/netns/" + rig, Name: "hgct", Dir: t.TempDir()}
	n, err := jobnet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n, &cfg
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %q: %v: %s", args, err, out)
	}
}

// serve says 1000 bytes to everyone who asks in a network namespace.
func serve(t *testing.T, ns string) {
	t.Helper()
	made := make(chan net.Listener)
	go func() {
		goruntime.LockOSThread() // the thread ends with this goroutine
		defer close(made)
		fd, err := unix.Open("/run/netns/"+ns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		if unix.Setns(fd, unix.CLONE_NEWNET) != nil {
			return
		}
		if l, err := net.Listen("tcp4", outside+":80"); err == nil { //nolint:noctx // it does not wait
			made <- l
		}
	}()
	l, ok := <-made
	if !ok {
		t.Fatal("no server")
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = c.Write([]byte(strings.Repeat("x", 1000)))
			_ = c.Close()
		}
	}()
}

func TestAJobReachesTheInternetIsCountedAndLeavesNothing(t *testing.T) {
	networks := newNetworks(t)
	w := newWorld(t)
	w.end()
	w.cfg.Networks = networks
	w.open(t)
	ctx, image := w.context(t), w.image(t)
	run := func(id string, args ...string) {
		t.Helper()
		spec := runtime.Spec{ID: id, Image: image, Args: args, Network: runtime.Network{Mode: runtime.NetworkInternet}}
		if err := errors.Join(w.engine.Create(ctx, spec), w.engine.Start(ctx, id)); err != nil {
			t.Fatal(err)
		}
	}
	run("fetcher", "fetch", outside+":80")
	if out, _ := w.read(t, "fetcher", 0, ""); len(out) != 1000 {
		t.Errorf("it heard %q", out)
	}
	w.awaitExit(t, "fetcher")
	u, err := w.engine.Usage(ctx, "fetcher")
	if err != nil || u.NetInBytes < 1000 || u.NetInBytes > 4000 || u.NetOutBytes < 100 {
		t.Errorf("usage %+v: %v", u, err)
	}
	run("reader", "cat", "/etc/hostname", "/etc/hosts", "/etc/resolv.conf")
	if out, _ := w.read(t, "reader", 0, ""); !strings.HasPrefix(out, "reader\n127.0.0.1 localhost\n") || !strings.Contains(out, "nameserver") {
		t.Errorf("it reads %q", out)
	}
	run("writer", "write", "/etc/resolv.conf", "x")
	if st := w.awaitExit(t, "writer"); st.Exit == nil || st.Exit.Code != 1 {
		t.Errorf("writing ended as %+v", st.Exit)
	}
	run("stays", "stubborn")
	if jobs, err := networks.Jobs(ctx); err != nil || !slices.Contains(jobs, "stays") || slices.Contains(jobs, "fetcher") {
		t.Errorf("jobs with a network are %q: %v", jobs, err)
	}
	if err := w.engine.Remove(ctx, "stays"); err != nil {
		t.Fatal(err)
	}
	jobs, err := networks.Jobs(ctx)
	for _, id := range jobs { // those that have ended lose theirs as soon as their end is recorded
		err = errors.Join(err, w.engine.Remove(ctx, id))
	}
	if jobs, more := networks.Jobs(ctx); errors.Join(err, more) != nil || len(jobs) > 0 {
		t.Errorf("left %q: %v", jobs, errors.Join(err, more))
	}
}

func TestAJobThatWasMadeInPartIsFinishedByTheNextEngine(t *testing.T) {
	networks := newNetworks(t)
	w := newWorld(t)
	w.end()
	w.cfg.Networks = networks
	w.open(t)
	ctx := w.context(t)
	spec := runtime.Spec{
		ID: "job", Image: w.image(t), Args: []string{"fetch", outside + ":80"}, Network: runtime.Network{Mode: runtime.NetworkInternet},
	}
	if err := w.engine.Create(ctx, spec); err != nil {
		t.Fatal(err)
	}
	w.end()
	// What an engine that was killed before the last step of a creation would have left.
	if _, err := networks.Detach(ctx, "job"); err != nil {
		t.Fatal(err)
	}
	mkfifo(t, w.cfg.LogDir+"/job.log.out")
	w.open(t)
	if names := w.files(t); !slices.Equal(names, []string{"job.log"}) {
		t.Errorf("there are %q", names)
	}
	if err := w.engine.Start(ctx, "job"); err != nil {
		t.Fatal(err)
	}
	if out, _ := w.read(t, "job", 0, ""); len(out) != 1000 {
		t.Errorf("it heard %q", out)
	}
}

func TestWithoutNetworksNoJobIsPromisedOne(t *testing.T) {
	w := newWorld(t)
	spec := runtime.Spec{ID: "job", Image: w.image(t), Network: runtime.Network{Mode: runtime.NetworkInternet}}
	if err := w.engine.Create(w.context(t), spec); !errors.Is(err, runtime.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
