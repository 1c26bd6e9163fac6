package config_test

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/internal/config"
)

const someKey = "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"

func TestWhoMayCallIsConfigured(t *testing.T) {
	want := config.Access{
		Allow: []string{someKey}, Block: []string{someKey}, BlockOwners: []string{someKey},
		BlockNets: []string{"203.0.113.0/24", "2001:db8::/32", "198.51.100.7"},
	}
	text := `
[access]
allow = ["` + someKey + `"]
block = ["` + someKey + `"]
block_owners = ["` + someKey + `"]
block_nets = ["203.0.113.0/24", "2001:db8::/32", "198.51.100.7"]
`
	r, err := config.LoadRig(config.Flags{Home: home(t, "haggled.toml", text), Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	a, err := config.LoadAgent(config.Flags{Home: home(t, "config.toml", text), Env: variables()})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []config.Access{r.Access, a.Access} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestWhatIsNoKeyAndNoNetworkIsRefused(t *testing.T) {
	for _, text := range []string{
		`allow = ["Ada"]`, `block = ["12D3KooW"]`, `block_owners = ["` + someKey + `x"]`,
		`block_nets = ["203.0.113.7/24"]`, `block_nets = ["300.0.0.0/8"]`, `block_nets = ["fe80::1%eth0"]`, `block_nets = ["example.org"]`,
		`block_nets = ["::ffff:203.0.113.0/120"]`, `block_nets = [""]`, `deny = []`,
	} {
		_, err := config.LoadRig(config.Flags{Home: home(t, "haggled.toml", "[access]\n"+text+"\n"), Env: variables()})
		var e *config.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func FuzzNetworksAreReadOrRefused(f *testing.F) {
	for _, seed := range []string{"203.0.113.0/24", "::/0", "::1", "10.0.0.1", "1.2.3.4/33", "fe80::%x/10", "::ffff:1.2.3.4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		net, err := config.ParseNet(text)
		if err != nil {
			return
		}
		if !net.IsValid() || net != net.Masked() || net.Addr().Zone() != "" || net.Addr().Is4In6() {
			t.Errorf("%q became %s", text, net)
		}
		if again, err := config.ParseNet(net.String()); err != nil || again != net {
			t.Errorf("%s is read as %s, %v", net, again, err)
		}
		if addr, err := netip.ParseAddr(text); err == nil && !net.Contains(addr.Unmap()) {
			t.Errorf("%s does not hold %s", net, addr)
		}
	})
}
