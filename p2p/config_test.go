package p2p_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"haggle/market"
	"haggle/p2p"
	"haggle/p2p/p2ptest"
)

func TestABadConfigurationIsRefusedWithItsReason(t *testing.T) {
	good := p2p.Config{Key: p2ptest.Key(t), Network: "lab-config"}
	for name, c := range map[string]struct {
		change func(*p2p.Config)
		want   string
	}{
		"no key":                            {func(c *p2p.Config) { c.Key = nil }, "identity key"},
		"a network with a slash":            {func(c *p2p.Config) { c.Network = "a/b" }, "network"},
		"an address that is none":           {func(c *p2p.Config) { c.Listen = []string{"127.0.0.1:1"} }, "listen address"},
		"a lab that leaves the machine":     {func(c *p2p.Config) { c.Listen = []string{"/ip4/0.0.0.0/tcp/0"} }, "loopback"},
		"a bootstrap without its key":       {func(c *p2p.Config) { c.Bootstrap = []string{"/ip4/127.0.0.1/tcp/1"} }, "bootstrap address"},
		"a handler for an unknown protocol": {func(c *p2p.Config) { c.Handlers = map[p2p.Protocol]p2p.Handler{"/x": offers()[p2p.OffersProtocol]} }, "/x"},
		"a mode that is none":               {func(c *p2p.Config) { c.Mode = 9 }, "mode"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			n, err := p2p.New(cfg)
			if err == nil {
				_ = n.Close()
				t.Fatal("it was taken")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %q, which does not name %q", err, c.want)
			}
		})
	}
}

func TestAPortThatIsTakenIsAnError(t *testing.T) {
	first, err := p2p.New(p2p.Config{Key: p2ptest.Key(t), Network: "lab-port"})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	var quic string
	for _, addr := range first.Addrs() {
		if before, _, ok := strings.Cut(addr, "/p2p/"); ok && strings.Contains(addr, "quic") {
			quic = before
		}
	}
	second, err := p2p.New(p2p.Config{Key: p2ptest.Key(t), Network: "lab-port", Listen: []string{"/ip4/127.0.0.1/tcp/0", quic}})
	if err == nil {
		_ = second.Close()
		t.Fatalf("%s was listened on twice", quic)
	}
}

func TestAKeyIsMadeOnceAndKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "key")
	first, err := p2p.LoadOrCreateKey(path)
	if err != nil {
		t.Fatal(err)
	}
	second, err := p2p.LoadOrCreateKey(path)
	if err != nil || !first.Equal(second) {
		t.Fatalf("the key changed (%v)", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 && goruntime.GOOS != "windows" {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".key-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestProgramsThatMakeTheKeyAtOnceShareIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	var starts sync.WaitGroup
	keys := make([]market.Key, 16)
	for i := range keys {
		starts.Go(func() {
			private, err := p2p.LoadOrCreateKey(path)
			if err != nil {
				t.Error(err)
				return
			}
			keys[i] = market.KeyOf(private)
		})
	}
	starts.Wait()
	for _, k := range keys {
		if k != keys[0] {
			t.Fatal("two programs got different keys")
		}
	}
}

func TestAKeyFileThatIsNotSafeOrNotAKeyIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if _, err := p2p.LoadOrCreateKey(path); err != nil {
		t.Fatal(err)
	}
	if goruntime.GOOS != "windows" {
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		var fault *p2p.Fault
		if _, err := p2p.LoadOrCreateKey(path); !errors.As(err, &fault) || !strings.Contains(fault.Hint, "chmod 600") {
			t.Errorf("a key that the group can read: %v", err)
		}
	}
	for name, text := range map[string]string{
		"empty": "", "garbage": "hello", "another": "-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n",
	} {
		bad := filepath.Join(dir, name)
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := p2p.LoadOrCreateKey(bad); err == nil {
			t.Errorf("%s: it was taken", name)
		}
		if now, _ := os.ReadFile(bad); string(now) != text {
			t.Errorf("%s: the file was overwritten", name)
		}
	}
	if _, err := p2p.LoadOrCreateKey(dir); err == nil {
		t.Error("a folder was taken")
	}
}

func TestCloseBeforeRunIsClean(t *testing.T) {
	n, err := p2p.New(p2p.Config{Key: p2ptest.Key(t), Network: "lab-close"})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if err := n.Ready(context.Background()); market.CodeOf(err) != market.CodeNoPeers {
		t.Errorf("a closed node: %v", err)
	}
}

func TestAClientOfAPublicNetworkStartsWithItsReachOptions(t *testing.T) {
	n, err := p2p.New(p2p.Config{Key: p2ptest.Key(t), Network: market.NetworkMain, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

func TestAPortThatAnotherNodeListensOnIsRefused(t *testing.T) {
	first, err := p2p.New(p2p.Config{Key: p2ptest.Key(t), Network: "lab-port", Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	address, _, _ := strings.Cut(first.Addrs()[0], "/p2p/")
	var fault *p2p.Fault
	_, err = p2p.New(p2p.Config{Key: p2ptest.Key(t), Network: "lab-port", Listen: []string{address}})
	if !errors.As(err, &fault) || !strings.Contains(fault.Problem, address+" is in use") || fault.Hint == "" {
		t.Errorf("got %v", err)
	}
}
