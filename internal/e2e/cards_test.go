//go:build linux

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/view"
)

// Numbers of the nodes that stand in for two cards: below /dev/nvidia, where no real card has such a number.
const (
	firstNode  = "/dev/nvidia9235"
	secondNode = "/dev/nvidia9234"
)

// realRig is a rig on a network that is no lab, with a driver's library and nodes of ours in place of cards. It has a network
// namespace to itself.
type realRig struct {
	t         *testing.T
	netns     string
	dir, home string
	api       *api.RigClient
	serves    []*program // those that were started
}

// newRealRig starts one with two cards, of which the driver's description names those in described.
func newRealRig(t *testing.T, described ...int) *realRig {
	t.Helper()
	requireLab(t)
	r := &realRig{t: t, dir: shortDir(t), netns: fmt.Sprintf("hge2e%d", os.Getpid())}
	r.home = filepath.Join(r.dir, "rig")
	r.run("ip", "netns", "add", r.netns)
	t.Cleanup(func() { r.run("ip", "netns", "del", r.netns) })
	r.run("ip", "-n", r.netns, "link", "set", "lo", "up")
	for node, minor := range map[string]string{firstNode: "235", secondNode: "234"} {
		r.run("mknod", "-m", "0666", node, "c", "10", minor)
		t.Cleanup(func() { r.run("rm", "-f", node) })
	}
	library, image, descriptions := fakeDriver(t, r.dir, "RTX4090 RTX4090"), filepath.Join(r.dir, "lab.tar"), filepath.Join(r.dir, "cdi")
	start(t, nil, "haggle", "lab", "image", "-o", image).wants(0)
	start(t, r.env(), "haggled", "init", "--set", "network=attic", "--set", "name=attic", "--set", "cards.library="+library, "--set", "cards.cdi="+descriptions,
		"--set", "prices.slot=0.25", "--set", "rules.min=1s", "--set", "rules.notice=10s", "--set", "images=lab="+image,
		"--set", "listen=/ip4/127.0.0.1/tcp/4701").wants(0)
	paths, err := config.RigPaths(r.home)
	if err != nil {
		t.Fatal(err)
	}
	r.api = api.DialRig(paths.Socket)
	t.Cleanup(r.down)
	r.describe(descriptions, described)
	r.serve()
	return r
}

// serve starts the daemon.
func (r *realRig) serve() *program {
	r.t.Helper()
	p := r.inside(r.env(), "haggled", "serve")
	r.serves = append(r.serves, p)
	return p
}

func (r *realRig) env() []string { return []string{"HAGGLED_HOME=" + r.home} }

// inside starts a program in the rig's network namespace.
func (r *realRig) inside(env []string, name string, args ...string) *program {
	r.t.Helper()
	return startIn(r.t, r.netns, env, name, args...)
}

func (r *realRig) run(name string, args ...string) {
	r.t.Helper()
	if out, err := exec.CommandContext(context.WithoutCancel(r.t.Context()), name, args...).CombinedOutput(); err != nil {
		r.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// describe writes the CDI file of some of the cards, by the ids that the driver tells.
func (r *realRig) describe(folder string, described []int) {
	r.t.Helper()
	probe := r.serve()
	cards := r.cards(2)
	_ = probe.cmd.Process.Signal(os.Interrupt) // one that has ended already fails below
	probe.wants(0)
	var devices []string
	for _, n := range described {
		devices = append(devices, fmt.Sprintf(`{"name": %q, "containerEdits": {"deviceNodes": [{"path": %q}]}}`, cards[n].UUID, []string{firstNode, secondNode}[n]))
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		r.t.Fatal(err)
	}
	write(r.t, filepath.Join(folder, "cards.json"), `{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [`+strings.Join(devices, ",")+`]}`)
}

// cards waits until the rig has read so many of its cards.
func (r *realRig) cards(count int) (cards []view.Card) {
	r.t.Helper()
	await(r.t, "the first reading of the cards", func() bool {
		var err error
		cards, err = r.api.Cards(r.t.Context())
		read := func(c view.Card) bool { return c.PowerW != nil }
		return err == nil && len(cards) == count && !slices.ContainsFunc(cards, func(c view.Card) bool { return !read(c) })
	})
	return cards
}

// passable waits until the engine has said of so many of the cards that it can pass them to jobs.
func (r *realRig) passable(count int) (cards []view.Card) {
	r.t.Helper()
	defer func() {
		if r.t.Failed() {
			doctor := r.inside(r.env(), "haggled", "doctor")
			<-doctor.ended
			r.t.Logf("%s", doctor.out.String())
		}
	}()
	await(r.t, fmt.Sprintf("%d cards that reach a job", count), func() bool {
		n := 0
		for _, c := range r.cards(2) {
			if c.Passable {
				n++
			}
		}
		return n == count
	})
	return r.cards(2)
}

func (r *realRig) down() {
	for _, p := range r.serves {
		_ = p.cmd.Process.Signal(os.Interrupt) // one that has ended already is fine
		<-p.ended
	}
	r.run("nsenter", "--net=/run/netns/"+r.netns, programPath("haggled"), "purge", "--yes", "--home", r.home)
}

// startIn is start in a network namespace.
func startIn(t *testing.T, netns string, env []string, name string, args ...string) *program {
	t.Helper()
	return startCommand(t, env, name, exec.CommandContext(context.WithoutCancel(t.Context()), "nsenter",
		append([]string{"--net=/run/netns/" + netns, programPath(name)}, args...)...))
}

func TestRealCardsAreRentedToOwnersWhomTheRigsOwnerTrusts(t *testing.T) {
	r := newRealRig(t, 0, 1)
	cards := r.passable(2)
	if cards[0].Model != "RTX_4090" || cards[0].Simulated {
		t.Fatalf("cards %+v", cards)
	}
	var status view.RigStatus
	await(t, "a rig with its image", func() bool {
		var err error
		status, err = r.api.Status(t.Context())
		return err == nil && len(status.Images) > 0 && len(status.Network.Addrs) > 0
	})
	renter := renterOf(t, r.dir, "attic", status.Network.Addrs)
	defer func() { r.inside(renter, "haggle", "agent", "stop").wants(0) }()
	var offers []view.Offer
	await(t, "the rig's offer", func() bool {
		p := r.inside(renter, "haggle", "offers", "gpu_name=RTX_4090", "--json")
		<-p.ended
		return json.Unmarshal([]byte(p.out.String()), &offers) == nil && len(offers) == 1 && offers[0].Rentable
	})
	if o := offers[0]; o.Simulated || o.Free != 2 || o.Bidders != "trusted" {
		t.Errorf("offer %+v", o)
	}
	order := []string{"run", "gpu_name=RTX_4090", "--image", "lab", "--for", "10m", "--budget", "1.00", "--"}
	stranger := r.inside(renter, "haggle", append(order, "train", "--steps", "1")...)
	stranger.wants(125)
	wantSaid(t, stranger, "takes bids only from owners that its owner trusts", "send that key")

	key := r.key(renter)
	r.inside(r.env(), "haggled", "trust", key, "--name", "ann").wants(0)
	await(t, "the renter's agent is let in", func() bool {
		p := r.inside(renter, "haggle", append(order, "train", "--steps", "2")...)
		<-p.ended
		return p.cmd.ProcessState.ExitCode() == 0 && strings.Contains(p.out.String(), "step 2/2")
	})
	open := r.inside(renter, "haggle", append(order, "inside", "attack", "open-device="+firstNode, "open-device="+secondNode)...)
	<-open.ended
	if out := open.out.String(); strings.Count(out, `"holds":true`) != 1 || strings.Count(out, `"holds":false`) != 1 {
		t.Errorf("of two cards one is leased; opening both says\n%s%s", out, open.err.String())
	}
	r.inside(r.env(), "haggled", "trust", key, "--remove").wants(0)
	again := r.inside(renter, "haggle", append(order, "train", "--steps", "1")...)
	again.wants(125)
	wantSaid(t, again, "takes bids only from owners that its owner trusts", "send that key")
}

func TestACardThatReachesNoJobIsNotOfferedAndItsOwnerIsToldWhy(t *testing.T) {
	r := newRealRig(t, 1)
	cards := r.passable(1)
	if cards[0].Passable || cards[0].Why == "" || !cards[1].Passable {
		t.Errorf("cards %+v", cards)
	}
	await(t, "one card of two is free", func() bool {
		s, err := r.api.Status(t.Context())
		return err == nil && s.Free == 1
	})
	list := start(t, r.env(), "haggled", "cards")
	list.wants(0)
	if !strings.Contains(list.out.String(), cards[0].Why) {
		t.Errorf("the list says\n%s", list.out.String())
	}
}

// key is the renter's public key, as its agent tells it.
func (r *realRig) key(renter []string) string {
	r.t.Helper()
	p := r.inside(renter, "haggle", "status", "--json")
	p.wants(0)
	var s view.AgentStatus
	if err := json.Unmarshal([]byte(p.out.String()), &s); err != nil {
		r.t.Fatal(err)
	}
	return s.Network.Key
}

// renterOf makes the home of a renter who knows a rig's addresses, and returns its environment.
func renterOf(t *testing.T, dir, network string, members []string) []string {
	t.Helper()
	home := filepath.Join(dir, "renter")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("network = %q\nbootstrap = [%q]\n", network, members[0])
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"HAGGLE_HOME=" + home}
}

// fakeDriver builds our library in place of the driver's, with cards of some kinds.
func fakeDriver(t *testing.T, dir, cards string) string {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(dir, "libnvidia-ml.so.1")
	out, err := exec.CommandContext(t.Context(), "gcc", "-shared", "-fPIC", "-O1", "-Wno-deprecated-declarations", "-DFAKE_FULL",
		"-I"+filepath.Join(strings.TrimSpace(string(module)), "pkg/nvml"), "-o", library,
		"../../nvml/nvidia/testdata/fakenvml/fakenvml.c", "-ldl").CombinedOutput()
	if err != nil {
		t.Fatalf("build the library: %v\n%s", err, out)
	}
	if err := os.WriteFile(library+".state", []byte("driver 550.163.01\ncards "+cards+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return library
}
