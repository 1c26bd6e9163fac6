//go:build linux

package p2p_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"haggle/market"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

// insideVariable tells a test that it runs inside the network namespace that it made.
const insideVariable = "HAGGLE_TEST_NAMESPACE"

// inNamespace runs the test once more, inside a network namespace of its own in which commands have been run first. It returns true
// there, and false outside, where the test has passed or failed by then.
func inNamespace(t *testing.T, setup ...string) bool {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("network namespaces need root")
		}
		t.Skip("network namespaces need root")
	}
	name := "hgp2p" + strconv.Itoa(os.Getpid()%100_000) + market.HashOf([]byte(t.Name())).String()[:4]
	ip := func(ctx context.Context, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	ip(t.Context(), "netns", "add", name)
	t.Cleanup(func() { ip(context.Background(), "netns", "delete", name) })
	for _, line := range append([]string{"link set lo up"}, setup...) {
		ip(t.Context(), append([]string{"-n", name}, strings.Fields(line)...)...)
	}
	cmd := exec.CommandContext(t.Context(), "ip", "netns", "exec", name, os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "5m")
	cmd.Env = append(os.Environ(), insideVariable+"="+name)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

func TestFiveHostsOnOneLANFindEachOtherWithNoConfiguration(t *testing.T) {
	if !inNamespace(t, "link add lan0 type veth peer name lan1", "addr add 192.168.77.1/24 dev lan0", "link set lan1 up", "link set lan0 up",
		"route add default dev lan0") {
		return
	}
	const hosts = 5
	begin := time.Now()
	var nodes []*p2p.Node
	for i := range hosts {
		nodes = append(nodes, p2ptest.Start(t, p2p.Config{
			Key: p2ptest.Key(t), Network: market.NetworkMain, Mode: p2p.ModeAuto, // rigs: nobody public is there, so none serves the DHT
			Listen:   []string{fmt.Sprintf("/ip4/0.0.0.0/tcp/%d", 4701+i), fmt.Sprintf("/ip4/0.0.0.0/udp/%d/quic-v1", 4701+i)},
			Handlers: offers([]byte("an offer")), Sources: p2p.Sources{LAN: true},
		}))
	}
	agent := p2ptest.Start(t, p2p.Config{Key: p2ptest.Key(t), Network: market.NetworkMain, Mode: p2p.ModeClient, Sources: p2p.Sources{LAN: true}})
	until(t, "all know each other", func() bool {
		return !slices.ContainsFunc(append(nodes, agent), func(n *p2p.Node) bool { return len(n.Peers()) < hosts })
	})
	t.Logf("all %d found each other in %s", hosts+1, time.Since(begin).Round(time.Millisecond))
	for _, n := range nodes {
		find(t, agent, "any", n.ID())
		if got, err := agent.FetchOffers(soon(t), n.ID()); err != nil || len(got) != 1 {
			t.Errorf("got %d offers, %v", len(got), err)
		}
	}
	if r := report(agent, p2p.SourceLAN); !r.On || r.Connected != hosts || r.Reason != "" {
		t.Errorf("the agent says %+v", r)
	}
}

func TestWithoutMulticastTheReportSaysSo(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	n := p2ptest.Start(t, p2p.Config{
		Key: p2ptest.Key(t), Network: "open", Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Sources: p2p.Sources{LAN: true},
	})
	until(t, "it is told", func() bool { return report(n, p2p.SourceLAN).Reason != "" })
}

// publicly starts a node that stands at a public address of the namespace.
func publicly(t *testing.T, addr string, boot []string, change func(*p2p.Config)) *p2p.Node {
	cfg := p2p.Config{
		Key: p2ptest.Key(t), Network: "open", Mode: p2p.ModeServer,
		Listen:  []string{"/ip4/" + addr + "/tcp/4701", "/ip4/" + addr + "/udp/4701/quic-v1"},
		Sources: p2p.Sources{Public: true, PublicBootstrap: boot},
	}
	change(&cfg)
	return p2ptest.Start(t, cfg)
}

func TestNodesThatKnowNobodyMeetInThePublicDHTOfAStockKubo(t *testing.T) {
	kubo := kuboProgram(t)
	addrs := []string{"11.1.0.1", "12.1.0.1", "13.1.0.1", "14.1.0.1", "15.1.0.1", "16.1.0.1"}
	var setup []string
	for _, a := range addrs {
		setup = append(setup, "addr add "+a+"/32 dev lo")
	}
	if !inNamespace(t, setup...) {
		return
	}
	var boot []string
	for _, a := range addrs[:3] {
		boot = append(boot, startKubo(t, kubo, a, boot))
	}
	first := publicly(t, addrs[3], boot[:1], func(c *p2p.Config) { c.Handlers = offers([]byte("an offer")) })
	until(t, "the first is announced", func() bool { return !report(first, p2p.SourcePublic).Announced.IsZero() })
	begin := time.Now()
	second := publicly(t, addrs[4], boot[2:], func(*p2p.Config) {})
	agent := publicly(t, addrs[5], boot[1:2], func(c *p2p.Config) { c.Mode = p2p.ModeClient })
	for _, n := range []*p2p.Node{second, agent} {
		if err := n.Ready(soon(t)); err != nil {
			t.Fatalf("%v; %+v", err, n.Sources())
		}
	}
	t.Logf("a node that knew nobody was ready after %s", time.Since(begin).Round(time.Millisecond))
	first.Announce([]string{"any"})
	find(t, agent, "any", first.ID())
	for _, n := range []*p2p.Node{first, second, agent} {
		for _, p := range n.Peers() {
			if p.Key != first.ID() && p.Key != second.ID() && p.Key != agent.ID() {
				t.Errorf("a member of the public DHT got to a node of ours: %+v", p)
			}
		}
	}
}

// kuboProgram returns the path of the stock kubo that scripts/kubo.sh builds.
func kuboProgram(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../scripts/kubo.sh", "path").Output()
	path := strings.TrimSpace(string(out))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("kubo is not built: %v", err)
		}
		t.Skipf("kubo is not built (scripts/kubo.sh builds it): %v", err)
	}
	return path
}

// startKubo runs a kubo that knows the members of boot and serves the public DHT at an address, and returns where it is called.
func startKubo(t *testing.T, program, addr string, boot []string) string {
	t.Helper()
	repo := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = kuboEnv(repo)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("kubo %s: %v: %s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "--empty-repo")
	set := func(key string, value any) {
		t.Helper()
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		run("config", "--json", key, string(text))
	}
	swarm := []string{"/ip4/" + addr + "/tcp/4001", "/ip4/" + addr + "/udp/4001/quic-v1"}
	if boot == nil {
		boot = []string{}
	}
	for key, value := range map[string]any{
		"AutoConf.Enabled": false, "Bootstrap": boot, "DNS.Resolvers": map[string]string{}, "Routing.Type": "dhtserver",
		"Routing.DelegatedRouters": []string{}, "Ipns.DelegatedPublishers": []string{}, "Discovery.MDNS.Enabled": false, "Addresses.Swarm": swarm,
		"Addresses.API": "/ip4/127.0.0.1/tcp/0", "Addresses.Gateway": "/ip4/127.0.0.1/tcp/0", "AutoTLS.Enabled": false,
		"Swarm.DisableNatPortMap": true, "Internal.Libp2pForceReachability": "public",
	} {
		set(key, value)
	}
	id := run("config", "Identity.PeerID")
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "daemon")
	cmd.Env = kuboEnv(repo)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	ready, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was told to end
	})
	awaitLine(t, ready, "Daemon is ready")
	return swarm[0] + "/p2p/" + id
}

// kuboEnv keeps a kubo away from everything but its repo, and its telemetry off.
func kuboEnv(repo string) []string {
	return []string{"IPFS_PATH=" + repo, "HOME=" + repo, "PATH=" + os.Getenv("PATH"), "IPFS_TELEMETRY=off", "GOLOG_LOG_LEVEL=error"}
}

// awaitLine reads a program's output up to a line that begins with some words; the rest is read and dropped.
func awaitLine(t *testing.T, out io.Reader, begins string) {
	t.Helper()
	lines, seen := bufio.NewScanner(out), make(chan bool, 1)
	go func() {
		found := false
		for lines.Scan() {
			if !found && strings.HasPrefix(lines.Text(), begins) {
				found = true
				seen <- true
			}
		}
		if !found {
			seen <- false
		}
	}()
	select {
	case ok := <-seen:
		if !ok {
			t.Fatalf("the program ended before it said %q", begins)
		}
	case <-soon(t).Done():
		t.Fatalf("the program never said %q", begins)
	}
}
