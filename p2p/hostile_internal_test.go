package p2p

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/multiformats/go-multiaddr"
	madns "github.com/multiformats/go-multiaddr-dns"

	"haggle/market"
)

// endless answers with text that does not end, and counts what was taken of it.
func endless(t *testing.T, begin string) (url string, taken *atomic.Int64) {
	t.Helper()
	taken = &atomic.Int64{}
	part := strings.Repeat("x", 64<<10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && begin == "" {
			fmt.Fprint(w, description)
			return
		}
		fmt.Fprint(w, "<?xml version=\"1.0\"?>"+begin+"<a>")
		for range 1024 {
			n, err := w.Write([]byte(part))
			taken.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/d.xml", taken
}

const description = `<?xml version="1.0"?><root xmlns="urn:schemas-upnp-org:device-1-0"><device>
<deviceType>urn:schemas-upnp-org:device:WANConnectionDevice:2</deviceType><serviceList><service>
<serviceType>urn:schemas-upnp-org:service:WANIPv6FirewallControl:1</serviceType><serviceId>a</serviceId>
<controlURL>/c</controlURL><eventSubURL>/e</eventSubURL><SCPDURL>/s</SCPDURL></service></serviceList></device></root>`

func TestARouterThatNeverStopsTalkingIsCutOff(t *testing.T) {
	boundRouters()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	at, taken := endless(t, "<root>")
	if _, err := gatesAt(ctx, at); err == nil {
		t.Error("an endless description was read")
	}
	if n := taken.Load(); n > 32<<20 {
		t.Errorf("%d bytes of a description were taken", n)
	}
	at, taken = endless(t, "")
	gates, err := gatesAt(ctx, at)
	if err != nil || len(gates) != 1 {
		t.Fatalf("%d firewalls, %v", len(gates), err)
	}
	if _, _, err := gates[0].GetFirewallStatusCtx(ctx); err == nil {
		t.Error("an endless answer was read")
	}
	if n := taken.Load(); n > 32<<20 {
		t.Errorf("%d bytes of an answer were taken", n)
	}
}

func TestARouterHasNobodyAskAnotherMachine(t *testing.T) {
	elsewhere := strings.Replace(description, "/c<", "http://192.0.2.1:80/c<", 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, elsewhere) }))
	defer srv.Close()
	gates, err := gatesAt(t.Context(), srv.URL)
	if err != nil || len(gates) != 0 {
		t.Errorf("%d firewalls, %v", len(gates), err)
	}
}

// phone is a resolver for whom every name leads to one address.
type phone string

func (p phone) LookupIPAddr(context.Context, string) ([]net.IPAddr, error) {
	return []net.IPAddr{{IP: net.ParseIP(string(p))}}, nil
}

func (p phone) LookupTXT(context.Context, string) ([]string, error) {
	return []string{"dnsaddr=/ip4/" + string(p) + "/tcp/80"}, nil
}

func TestANameOfAStrangerLeadsIntoNoPrivateNetwork(t *testing.T) {
	for _, c := range []struct {
		name, address, network string
		home, own              bool
		want                   int
	}{
		{"to a router of the LAN", "192.168.1.1", market.NetworkMain, false, false, 0},
		{"to this machine", "127.0.0.1", market.NetworkMain, false, false, 0},
		{"to a public address", "8.8.4.4", market.NetworkMain, false, false, 1},
		{"to a LAN, at home", "192.168.1.1", market.NetworkMain, true, false, 1},
		{"to a LAN, by the user's own word", "192.168.1.1", market.NetworkMain, false, true, 1},
		{"to a LAN, in a network of one's own", "192.168.1.1", "ours", false, false, 1},
	} {
		plain, err := madns.NewResolver(madns.WithDefaultResolver(phone(c.address)))
		if err != nil {
			t.Fatal(err)
		}
		var r network.MultiaddrDNSResolver = believingResolver{
			MultiaddrDNSResolver: swarm.ResolverFromMaDNS{Resolver: plain}, network: c.network,
			home: func() bool { return c.home }, own: map[string]bool{"rig.example.org": c.own},
		}
		got, err := r.ResolveDNSComponent(t.Context(), multiaddr.StringCast("/dns4/rig.example.org/tcp/4701"), 8)
		if err != nil || len(got) != c.want {
			t.Errorf("a name %s: %v, %v", c.name, got, err)
		}
		got, err = r.ResolveDNSAddr(t.Context(), "", multiaddr.StringCast("/dnsaddr/rig.example.org"), 4, 8)
		if err != nil || len(got) != c.want {
			t.Errorf("a dnsaddr %s: %v, %v", c.name, got, err)
		}
	}
}

func TestNobodyIsCalledWhereCloudsTellSecrets(t *testing.T) {
	g := gater{access: newAccess(Access{}, false)}
	for text, want := range map[string]bool{
		"/ip4/169.254.169.254/tcp/80": false, "/ip6/fd00:ec2::254/tcp/80": false, "/ip4/100.100.100.200/tcp/80": false,
		"/ip6/::ffff:169.254.169.254/tcp/80": false, "/ip4/169.254.7.7/tcp/4701": true, "/ip4/8.8.4.4/tcp/4701": true,
	} {
		if got := g.InterceptAddrDial("", multiaddr.StringCast(text)); got != want {
			t.Errorf("%s may be called: %t", text, got)
		}
	}
}
