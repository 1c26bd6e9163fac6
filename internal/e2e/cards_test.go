//go:build linux

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"haggle/internal/api"
	"haggle/internal/config"
	"haggle/internal/view"
)

// TestRealCardsAreShownAndNotRented runs a rig whose driver's library is our own: the whole path from the driver to an offer
// that a renter sees, and the refusal of a bid for it.
func TestRealCardsAreShownAndNotRented(t *testing.T) {
	requireLab(t)
	dir := shortDir(t)
	library := fakeDriver(t, dir, "RTX4090 A100")
	home := filepath.Join(dir, "rig")
	env := []string{"HAGGLED_HOME=" + home}
	start(t, env, "haggled", "init", "--set", "network=lab-cards", "--set", "name=attic", "--set", "cards.library="+library).wants(0)
	serve := start(t, env, "haggled", "serve")
	defer func() {
		_ = serve.cmd.Process.Signal(os.Interrupt) // one that has ended already fails below
		serve.wants(0)
		start(t, env, "haggled", "purge", "--yes").wants(0)
	}()
	paths, err := config.RigPaths(home)
	if err != nil {
		t.Fatal(err)
	}
	rig := api.DialRig(paths.Socket)
	var status view.RigStatus
	await(t, "a rig with two slots", func() bool {
		status, err = rig.Status(t.Context())
		return err == nil && status.Free == 2
	})

	var cards []view.Card
	await(t, "the first reading of both cards", func() bool {
		cards, err = rig.Cards(t.Context())
		return err == nil && len(cards) == 2 && cards[0].PowerW != nil && cards[1].PowerW != nil
	})
	if cards[0].Model != "RTX_4090" || cards[1].Model != "A100_SXM" || cards[0].Simulated {
		t.Errorf("cards %+v", cards)
	}
	renter := renterOf(t, dir, "lab-cards", status.Network.Addrs)
	var offers []view.Offer
	await(t, "the rig's offer", func() bool {
		p := start(t, renter, "haggle", "offers", "gpu_name=A100*", "--json")
		<-p.ended
		return json.Unmarshal([]byte(p.out.String()), &offers) == nil && len(offers) == 1
	})
	if o := offers[0]; o.Rentable || o.Simulated || o.Model != "A100_SXM" || o.Free != 1 {
		t.Errorf("offer %+v", o)
	}
	list := start(t, renter, "haggle", "offers")
	list.wants(0)
	if out := list.out.String(); !strings.Contains(out, "NOT RENTABLE") || strings.Contains(out, "SIM") {
		t.Errorf("the list says\n%s", out)
	}
	start(t, renter, "haggle", "agent", "stop").wants(0)
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
