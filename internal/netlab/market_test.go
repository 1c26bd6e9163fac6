//go:build linux

package netlab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"haggle/internal/netlab"
)

// network is what the tests' members call their network.
const network = "netlab"

// rig is a rig on a network that is no lab, with a driver's library and a node of ours in place of a card.
type rig struct {
	seat
	name   string
	home   string
	serves *work
}

// cardNodes counts the nodes of cards. No real card has numbers as high as these.
var cardNodes atomic.Int64

// fakeDriver is our library in place of the driver's. It is built once.
var fakeDriver = sync.OnceValues(func() (string, error) {
	module, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		return "", err
	}
	path := filepath.Join(buildDir, "libnvidia-ml.so.1")
	out, err := exec.CommandContext(context.Background(), "gcc", "-shared", "-fPIC", "-O1", "-Wno-deprecated-declarations", "-DFAKE_FULL",
		"-I"+filepath.Join(strings.TrimSpace(string(module)), "pkg/nvml"), "-o", path,
		"../../nvml/nvidia/testdata/fakenvml/fakenvml.c", "-ldl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the library: %w\n%s", err, out)
	}
	return path, os.WriteFile(path+".state", []byte("driver 550.163.01\ncards RTX4090\n"), 0o600)
})

// firstCard is what our library calls its first card.
const firstCard = "GPU-00000000-0000-4000-8000-000000000000"

// startRig starts a rig with one card. Each setting is KEY=VALUE, as for `haggled init`.
func startRig(t *testing.T, h *netlab.Host, name string, settings ...string) *rig {
	t.Helper()
	require(t, "containerd", "containerd-shim-runc-v2", "runc", "gcc", "rsync")
	dir := shortDir(t)
	r := &rig{seat: seat{t: t, host: h, dir: dir}, name: name, home: filepath.Join(dir, "rig")}
	r.env = []string{"HAGGLED_HOME=" + r.home}
	minor := 200 + cardNodes.Add(1)
	node, cdi := fmt.Sprintf("/dev/nvidia9%d", minor), filepath.Join(dir, "cdi")
	machine := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	machine("mknod", "-m", "0666", node, "c", "195", fmt.Sprint(minor))
	t.Cleanup(func() { machine("rm", "-f", node) })
	write(t, filepath.Join(cdi, "cards.json"), fmt.Sprintf(
		`{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [{"name": %q, "containerEdits": {"deviceNodes": [{"path": %q}]}}]}`, firstCard, node))
	args := []string{"init"}
	for _, s := range append([]string{
		"name=" + name, "cards.library=" + must[string](t)(fakeDriver()), "cards.cdi=" + cdi, "images=tools=" + must[string](t)(toolImage()),
		"prices.slot=0.36", "rules.min=1s", "rules.notice=10s", "rules.first=1s", "rules.interval=1s",
	}, settings...) {
		args = append(args, "--set", s)
	}
	r.run("haggled", args...)
	hand := filepath.Join(r.home, "haggled.toml")
	text := must[[]byte](t)(os.ReadFile(hand))
	write(t, hand, string(text)+"\n[pay.hand]\ntext = \"Send {amount} {currency} to Ada, reference {reference}.\"\n")
	r.serves = r.start(r.command("haggled", "serve"))
	t.Cleanup(r.down)
	return r
}

func (r *rig) down() {
	if r.t.Failed() {
		text := r.serves.err.String()
		r.t.Logf("the end of what rig %s says:\n%s", r.name, text[max(0, len(text)-6000):])
	}
	r.serves.stop()
	r.run("haggled", "purge", "--yes")
}

// renter is a person with an agent.
type renter struct {
	seat
	home string
}

// newRenter sits somebody down at a host, with lines of a configuration.
func newRenter(t *testing.T, h *netlab.Host, config ...string) *renter {
	t.Helper()
	dir := shortDir(t)
	r := &renter{seat: seat{t: t, host: h, dir: dir}, home: filepath.Join(dir, "renter")}
	r.env = []string{"HAGGLE_HOME=" + r.home}
	write(t, filepath.Join(r.home, "config.toml"), strings.Join(config, "\n")+"\n")
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(r.home, "agent.log")) // it may never have been
			t.Logf("the end of what the agent says:\n%s", text[max(0, len(text)-6000):])
		}
		r.run("haggle", "agent", "stop", "--force")
	})
	return r
}

// decode runs a command that prints JSON and reads that.
func decode[T any](s *seat, name string, args ...string) (v T, ok bool) {
	s.t.Helper()
	w := s.start(s.command(name, append(args, "--json")...))
	<-w.ended
	return v, json.Unmarshal([]byte(w.out.String()), &v) == nil
}

// offer is an offer as `haggle offers` lists it.
type offer struct {
	Rig      string `json:"rig"`
	Reach    string `json:"reach"`
	Free     int    `json:"free"`
	Rentable bool   `json:"rentable"`
	Pays     []any  `json:"pays"`
	Images   []string
}

// awaitOffer waits until a rig's card is listed and free, with its image in place.
func (r *renter) awaitOffer(rig string) (found offer) {
	r.t.Helper()
	await(r.t, "the offer of "+rig, func() bool {
		list, _ := decode[[]offer](&r.seat, "haggle", "offers")
		i := slices.IndexFunc(list, func(o offer) bool {
			return o.Rig == rig && o.Rentable && o.Free > 0 && len(o.Images) > 0 && len(o.Pays) > 0
		})
		if i >= 0 {
			found = list[i]
		}
		return i >= 0
	})
	return found
}

// lease is a lease as `haggle leases` lists it.
type lease struct {
	ID     string `json:"id"`
	State  string `json:"state"`
	Reason string `json:"reason"`
	Debt   string `json:"debt"`
	Signed struct {
		Micro int64 `json:"micro"`
	} `json:"signed"`
	Pay *struct {
		Payments int `json:"payments"`
		Asked    any `json:"asked"`
	} `json:"pay"`
}

func (r *renter) lease(id string) (found lease) {
	r.t.Helper()
	list, _ := decode[[]lease](&r.seat, "haggle", "leases", "--all")
	for _, v := range list {
		if v.ID == id {
			found = v
		}
	}
	return found
}

// rent bids for a job of a rig that is paid by hand, and has the rig's owner say that the money came. It returns the lease once
// the job runs.
func (r *renter) rent(from *rig, more ...string) string {
	r.t.Helper()
	args := append([]string{"bid", "--offer", from.name, "--image", "tools", "--name", "box", "--for", "10m", "--budget", "1.00", "--pay", "hand"}, more...)
	id := strings.TrimSpace(r.run("haggle", append(args, "--", "/bin/sleep", "infinity")...))
	paid := 0
	await(r.t, "a job that runs", func() bool {
		v := r.lease(id)
		if v.State == "ended" || v.State == "refused" {
			r.t.Fatalf("lease %s is %s: %s", id, v.State, v.Reason)
		}
		if v.Pay != nil && v.Pay.Asked != nil && v.Pay.Payments == paid {
			w := from.start(from.command("haggled", "confirm", id))
			<-w.ended // it may have been too early
		}
		return v.State == "running"
	})
	return id
}

// settles ends a lease and wants both sides to sign its end, and anyone to agree with the bill.
func (r *renter) settles(id string) {
	r.t.Helper()
	r.run("haggle", "stop", id)
	await(r.t, "the final receipt, signed by both", func() bool { return r.lease(id).Debt == "final" })
	if v := r.lease(id); v.Signed.Micro == 0 || v.Pay == nil || v.Pay.Payments == 0 {
		r.t.Errorf("after its end the lease is %+v", v)
	}
	file := filepath.Join(r.dir, "evidence")
	r.run("haggle", "export", id, "-o", file)
	r.run("haggle", "verify", file)
}

// path tells how the renter's agent is connected with a rig: direct, relayed, or "" where it is not.
func (r *renter) path(to *rig) string {
	r.t.Helper()
	key := to.key()
	peers, _ := decode[[]struct {
		Key   string   `json:"key"`
		Addrs []string `json:"addrs"`
	}](&r.seat, "haggle", "peers")
	for _, p := range peers {
		if p.Key != key {
			continue
		}
		if slices.ContainsFunc(p.Addrs, func(a string) bool { return !strings.Contains(a, "/p2p-circuit") }) {
			return "direct"
		}
		return "relayed"
	}
	return ""
}

// key is the rig's own key.
func (r *rig) key() string {
	r.t.Helper()
	s, ok := decode[struct {
		Network struct {
			Key string `json:"key"`
		} `json:"network"`
	}](&r.seat, "haggled", "status")
	if !ok || s.Network.Key == "" {
		r.t.Fatalf("rig %s does not tell its key", r.name)
	}
	return s.Network.Key
}

// settings are those of a rig that joins by some peers.
func settings(bootstrap string) []string {
	return []string{"network=" + network, "bootstrap=" + bootstrap}
}

// config is the configuration of a renter that does.
func config(bootstrap string) string {
	return fmt.Sprintf("network = %q\nbootstrap = [\"%s\"]", network, strings.ReplaceAll(bootstrap, ",", `", "`))
}
