//go:build linux

package netlab_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"haggle/internal/netlab"
)

// patience bounds every wait of these tests. A run that is right never comes near it.
const patience = 60 * time.Second

// missing names what an internet needs and this machine does not have.
func missing() []string {
	var names []string
	if os.Geteuid() != 0 {
		names = append(names, "root")
	}
	for _, name := range []string{"ip", "nft", "nsenter"} {
		if _, err := exec.LookPath(name); err != nil {
			names = append(names, name)
		}
	}
	return names
}

// newNet makes an internet for a test, and wants it to be left empty.
func newNet(t *testing.T) *netlab.Net {
	t.Helper()
	names := strings.Join(missing(), ", ")
	switch {
	case names == "":
	case os.Getenv("CI") == "true":
		t.Fatalf("network namespaces need %s", names)
	default:
		t.Skipf("network namespaces need %s", names)
	}
	n, err := netlab.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// must returns a value that must have come without an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// await asks again and again until the answer is yes. what says in the failure what did not come.
func await(t *testing.T, what string, ask func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ask() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited in vain for this: %s", what)
		}
	}
}
