//go:build linux

package jobnet_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haggle/runtime"
	"haggle/runtime/jobnet"
)

func find(all []runtime.Protection, name string) []runtime.Protection {
	var found []runtime.Protection
	for _, p := range all {
		if p.Name == name {
			found = append(found, p)
		}
	}
	return found
}

func TestCheckFindsNothingOnAGoodMachine(t *testing.T) {
	w := newWorld(t, nil)
	w.attach("job")
	all := w.nets.Check(t.Context())
	if len(all) != 7 {
		t.Errorf("%d answers", len(all))
	}
	for _, p := range all {
		if !p.Holds || p.Found == "" || p.Fix != "" {
			t.Errorf("%+v", p)
		}
	}
}

func TestCheckExplainsFirewallsThatRefuseJobs(t *testing.T) {
	for _, c := range []struct {
		name, rules, by, fix string
		allow                []string // what the remedy does, for nft
	}{
		{
			"Docker",
			`table ip filter {
				chain FORWARD { type filter hook forward priority filter; policy drop; jump DOCKER-USER; oifname "docker0" accept; }
				chain DOCKER-USER { return; }
			}`,
			"Docker", "iptables -I DOCKER-USER -i haggle-+ -j ACCEPT",
			[]string{
				`insert rule ip filter DOCKER-USER iifname "haggle-*" accept`,
				`insert rule ip filter DOCKER-USER oifname "haggle-*" ct state established,related accept`,
			},
		},
		{
			"ufw",
			`table ip filter {
				chain FORWARD { type filter hook forward priority filter; policy drop; jump ufw-before-forward; }
				chain ufw-before-forward { ct state established,related accept; icmp type echo-request accept; }
			}`,
			"ufw", "iptables -I ufw-before-forward -i haggle-+ -j ACCEPT",
			[]string{`insert rule ip filter ufw-before-forward iifname "haggle-*" accept`},
		},
		{
			"firewalld",
			`table inet firewalld {
				chain filter_FWD_public { }
				chain filter_FWD_trusted { accept; }
				chain filter_FORWARD_ZONES { iifname "up0" goto filter_FWD_public; }
				chain filter_FORWARD {
					type filter hook forward priority filter + 10; policy accept;
					ct state { established, related } accept
					ct state invalid drop
					jump filter_FORWARD_ZONES
					reject with icmpx admin-prohibited
				}
			}`,
			"firewalld", "firewall-cmd --permanent --zone=trusted --add-interface=haggle-+",
			[]string{`insert rule inet firewalld filter_FORWARD_ZONES iifname "haggle-*" goto filter_FWD_trusted`},
		},
		{
			"a hand-made table",
			`table inet mine {
				chain fw { type filter hook forward priority 0; policy drop; iifname { "eth1", "eth2" } accept; }
			}`,
			"another firewall", `nft 'insert rule inet mine fw iifname "haggle-*" accept`,
			[]string{
				`insert rule inet mine fw iifname "haggle-*" accept`,
				`insert rule inet mine fw oifname "haggle-*" ct state established,related accept`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.nft(c.rules)
			j := w.process("job")
			made, err := w.nets.Attach(t.Context(), "job", j.pid, runtime.Network{Mode: runtime.NetworkInternet})
			if err != nil {
				t.Fatal(err)
			}
			j.Attached, j.mark = made, w.socket(j.ns, 0)
			w.listen(w.out, internet+":8000")
			found := find(w.nets.Check(t.Context()), jobnet.CheckFirewall)
			if len(found) != 1 || found[0].Holds || !strings.HasPrefix(found[0].Found, c.by+" ") || !strings.Contains(found[0].Fix, c.fix) {
				t.Fatalf("%+v", found)
			}
			j.mark.send(internet, markPort, "blocked")
			for _, rule := range c.allow {
				w.nft(rule)
			}
			if found := find(w.nets.Check(t.Context()), jobnet.CheckFirewall); len(found) != 1 || !found[0].Holds {
				t.Errorf("after the remedy: %+v", found)
			}
			j.roundTrip()
			if w.mark.arrives("blocked", 0) {
				t.Error("the firewall was no obstacle")
			}
		})
	}
}

func TestCheckFindsWhatElseIsWrong(t *testing.T) {
	w := newWorld(t, nil)
	if err := w.nets.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.stop()
	w.nft("delete", "table", "inet", "haggle")
	w.address(w.rig, "up0", "10.213.97.65/26")
	all := w.nets.Check(t.Context())
	for _, name := range []string{jobnet.CheckRules, jobnet.CheckPool} {
		if p := find(all, name); len(p) != 1 || p[0].Holds || p[0].Fix == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	lost := *w
	lost.cfg.Netns = "/proc/self/fd/99999"
	nets, err := jobnet.New(lost.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if all := nets.Check(t.Context()); len(all) != 1 || all[0].Holds {
		t.Errorf("no namespace: %+v", all)
	}
}

func TestTheOldPacketFilterIsReadToo(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"nothing", "", false},
		{"a policy that accepts", "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n", false},
		{"a policy that drops", "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\nCOMMIT\n", true},
		{"a last rule that refuses", "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j REJECT --reject-with icmp-host-prohibited\n", true},
		{"another table", "*mangle\n:FORWARD DROP [0:0]\nCOMMIT\n*filter\n:FORWARD ACCEPT [0:0]\n", false},
		{"half of the remedy", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i haggle-+ -j ACCEPT\n", true},
		{
			"the remedy",
			"*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i haggle-+ -j ACCEPT\n" +
				"-A FORWARD -o haggle-+ -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n", false,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, got := jobnet.LegacyObstacle(c.text, "haggle-"); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func FuzzRulesets(f *testing.F) {
	f.Add([]byte(`{"nftables":[{"chain":{"family":"ip","table":"a","name":"b","hook":"forward","policy":"drop"}},
		{"rule":{"family":"ip","table":"a","chain":"b","expr":[{"match":{"op":"==","left":{"meta":{"key":"iifname"}},"right":"x*"}},
		{"jump":{"target":"b"}}]}},{"rule":{"family":"ip","table":"a","chain":"b","expr":["notrack",{"xt":null}]}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		rs, err := jobnet.ParseRuleset(text)
		if err != nil {
			return
		}
		jobnet.Obstacles(rs)
	})
}

func TestOutermostPrefixesDoNotOverlap(t *testing.T) {
	var list, want []netip.Prefix
	for _, p := range []string{"11.0.0.5/32", "11.0.0.0/24", "fd00::/8", "::ffff:12.0.0.0/104", "11.0.0.9/24", "9.0.0.0/8"} {
		list = append(list, netip.MustParsePrefix(p))
	}
	for _, p := range []string{"9.0.0.0/8", "11.0.0.0/24", "12.0.0.0/8"} {
		want = append(want, netip.MustParsePrefix(p))
	}
	if diff := cmp.Diff(want, jobnet.Outermost(list), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}
